"""Wrappers whose observations are the latents of a trained run."""

from collections import deque
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, iterate
from jaxtyping import Bool, Float32

from acf.errors import AcfError
from acf.gym.encoder import Encoder, Frame


class LatentObservation(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Observations are latents `[K]` of a member of `run`. Frames are made (size, gray, stack, rendering) as they were
    when the run's data was collected."""

    def __init__(self, env: gym.Env, run: str | Path, member: int = 0):
        gym.utils.RecordConstructorArgs.__init__(self, run=str(run), member=member)
        gym.Wrapper.__init__(self, env)
        self._encode = Encoder(run, member)
        if self._encode.rendered and env.render_mode != "rgb_array":
            raise AcfError(f'{run} is of what the environment renders: make it with render_mode="rgb_array"')
        self._picture = self._encode.picture(env.observation_space)
        self._recent: deque[Frame] = deque(maxlen=self._encode.stack)
        self.observation_space = self._encode.space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        observation, info = self.env.reset(seed=seed, options=options)
        self._recent.extend([self._frame(observation)] * self._encode.stack)
        return self._encode([self._recent])[0], info

    def step(self, action: Any):
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._recent.append(self._frame(observation))
        return self._encode([self._recent])[0], reward, terminated, truncated, info

    def _frame(self, observation: Any) -> Frame:
        return self._picture.frame(self.env.render() if self._encode.rendered else observation)


class VectorLatentObservation(gym.vector.VectorWrapper):
    """`LatentObservation` for a vector environment: one call of the encoder for all its parts."""

    def __init__(self, env: gym.vector.VectorEnv, run: str | Path, member: int = 0):
        super().__init__(env)
        self._encode = Encoder(run, member)
        if self._encode.rendered:
            raise AcfError("a run on what the environment renders: wrap each part in LatentObservation instead")
        self._picture = self._encode.picture(env.single_observation_space)
        self._recent = [deque[Frame](maxlen=self._encode.stack) for _ in range(env.num_envs)]
        self._mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self._ended = np.zeros(env.num_envs, bool)
        self.single_observation_space = self._encode.space
        self.observation_space = batch_space(self._encode.space, env.num_envs)

    def reset(self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None):
        begins = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, bool)))  # the environment takes it
        observations, infos = self.env.reset(seed=seed, options=options)  # pyright: ignore[reportArgumentType] (a list is allowed)
        self._ended = np.zeros(self.num_envs, bool)
        self._look(observations, begins, only=begins)
        return self._encode(self._recent), infos

    def step(self, actions: Any):
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        ended = np.asarray(terminations) | np.asarray(truncations)
        if self._mode == AutoresetMode.SAME_STEP:
            infos = self._with_latent_ends(infos, ended)
        begins = {AutoresetMode.NEXT_STEP: self._ended, AutoresetMode.SAME_STEP: ended}.get(self._mode, ended & False)
        self._look(observations, begins, only=np.ones(self.num_envs, bool))
        self._ended = ended
        return self._encode(self._recent), rewards, terminations, truncations, infos

    def _look(self, observations: Any, begins: Bool[np.ndarray, " n"], only: Bool[np.ndarray, " n"]) -> None:
        for k, observation in enumerate(iterate(self.env.observation_space, observations)):
            if only[k]:
                frame = self._picture.frame(observation)
                self._recent[k].extend([frame] * (self._encode.stack if begins[k] else 1))

    def _with_latent_ends(self, infos: dict[str, Any], ended: Bool[np.ndarray, " n"]) -> dict[str, Any]:
        """Where an episode ended, `final_obs` holds its last observation."""
        if not ended.any():
            return infos
        ends: list[Float32[np.ndarray, " K"] | None] = [None] * self.num_envs
        for k in np.flatnonzero(ended):
            recent = self._recent[k].copy()
            recent.append(self._picture.frame(infos["final_obs"][k]))
            ends[k] = self._encode([recent])[0]
        latent = np.empty(self.num_envs, object)
        latent[:] = ends
        return infos | {"final_obs": latent}
