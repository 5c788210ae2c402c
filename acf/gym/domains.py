"""The domains as Gymnasium environments: pictures as observations, the true factors in `info["factors"]`."""

from functools import partial
from typing import Any, ClassVar

import gymnasium as gym
import jax
import numpy as np
from jaxtyping import Array, Int, UInt8

from acf.domains import make
from acf.domains.base import Domain, State

STEPS = 100  # of an episode
IDS = {"lamp": "Lamp", "grid2d": "Grid2D", "taxi": "Taxi", "fourrooms": "FourRooms", "doorkey": "DoorKey"}


def register() -> None:
    for name, title in IDS.items():
        if f"acf/{title}-v0" not in gym.registry:
            where = "acf.gym.domains:DomainEnv"
            gym.register(f"acf/{title}-v0", entry_point=where, kwargs={"domain": name}, max_episode_steps=STEPS)


class DomainEnv(gym.Env[UInt8[np.ndarray, "32 32 3"], np.int64]):
    """A domain without a task: the reward is 0 and nothing ends. `start` is one of the domain's distributions."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 4}  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, domain: str | Domain, start: str = "episode", render_mode: str | None = None):
        self.domain = make(domain) if isinstance(domain, str) else domain
        self.domain.check_start(start)
        self.render_mode, self._start = render_mode, start
        shape = jax.eval_shape(lambda key: self.domain.render(self.domain.sample(key)), jax.random.key(0)).shape
        self.observation_space = gym.spaces.Box(0, 255, shape, np.uint8)
        self.action_space = gym.spaces.Discrete(self.domain.n_actions)

    def get_action_meanings(self) -> list[str]:
        return list(self.domain.action_names)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self._state, *shown = _sample(self.domain, self._start, self._seed())
        return self._show(*shown)

    def step(self, action: np.int64):
        self._state, *shown = _step(self.domain, self._state, np.int32(action), self._seed())
        observation, info = self._show(*shown)
        return observation, 0.0, False, False, info

    def render(self):
        return None if self.render_mode is None else self._frame

    def _seed(self) -> np.uint32:
        return self.np_random.integers(2**32, dtype=np.uint32)

    def _show(self, frame: Array, factors: Array):
        self._frame = np.array(frame)
        named = zip(self.domain.factor_names, np.asarray(factors).tolist(), strict=True)
        return self._frame.copy(), {"factors": dict(named)}


@partial(jax.jit, static_argnums=(0, 1))
def _sample(domain: Domain, start: str, seed: Int[Array, ""]) -> tuple[State, Array, Array]:
    state = domain.sample(jax.random.key(seed), start)
    return state, domain.render(state), domain.factors(state)


@partial(jax.jit, static_argnums=0)
def _step(domain: Domain, state: State, action: Int[Array, ""], seed: Int[Array, ""]) -> tuple[State, Array, Array]:
    state = domain.step(jax.random.key(seed), state, action)
    return state, domain.render(state), domain.factors(state)
