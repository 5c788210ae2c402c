"""One interface to a Gymnasium environment and to a vector of them: what each step shows, and where episodes begin."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from jaxtyping import Float32, UInt8

from acf.data.environments.factors import ReadFactors
from acf.data.environments.pictures import Picture
from acf.errors import AcfError


class Seen(NamedTuple):
    """A moment of one environment."""

    frame: UInt8[np.ndarray, "H W C"]
    factors: Float32[np.ndarray, " K"] | None
    observation: Any
    """As the environment gave it, for the policy."""


class Outcome(NamedTuple):
    """Of a step of one environment."""

    after: Seen | None
    """Where the action led; None where the environment was only reset, whatever the action."""
    start: Seen | None
    """The first moment of the next episode, where one has begun."""


class Worlds(Protocol):
    def reset(self, seed: int) -> list[Seen]: ...

    def step(self, actions: Sequence[int]) -> list[Outcome]: ...


class Single:
    """One environment: resets it when an episode ends, or after `horizon` steps."""

    def __init__(self, env: Any, picture: Picture, factors: ReadFactors | None, horizon: int | None):
        self._env, self._picture, self._factors, self._horizon = env, picture, factors, horizon

    def reset(self, seed: int | None) -> list[Seen]:
        self._steps = 0
        return [self._seen(*self._env.reset(seed=seed))]

    def step(self, actions: Sequence[int]) -> list[Outcome]:
        observation, _, terminated, truncated, info = self._env.step(actions[0])
        after = self._seen(observation, info)
        self._steps += 1
        ended = terminated or truncated or self._steps == self._horizon
        return [Outcome(after, self.reset(None)[0] if ended else None)]

    def _seen(self, observation: Any, info: dict[str, Any]) -> Seen:
        factors = self._factors(self._env, info) if self._factors else None
        return Seen(self._picture.frame(self._shown(observation)), factors, observation)

    def _shown(self, observation: Any) -> Any:
        return observation


class Rendered(Single):
    """One environment, seen as it renders itself."""

    def _shown(self, observation: Any) -> Any:
        drawn = self._env.render()
        if not isinstance(drawn, np.ndarray):
            raise AcfError(
                f"render: expected a picture, found {type(drawn).__name__}; make the environment with "
                'render_mode="rgb_array"'
            )
        return drawn


class Vector:
    """A vector environment, whichever way it resets its parts."""

    def __init__(self, env: Any, picture: Picture, factors: ReadFactors | None):
        self._env, self._picture, self._factors = env, picture, factors
        mode = env.metadata.get("autoreset_mode")
        self._mode = str(getattr(mode, "value", mode))
        if self._mode not in ("NextStep", "SameStep", "Disabled"):
            raise AcfError(
                f"{env}: expected metadata['autoreset_mode'] to say when it resets its parts, found {mode!r}; "
                "set it to one of gymnasium.vector.AutoresetMode"
            )

    def reset(self, seed: int) -> list[Seen]:
        self._ended = np.zeros(self._env.num_envs, bool)
        return self._seen(*self._env.reset(seed=seed))

    def step(self, actions: Sequence[int]) -> list[Outcome]:
        observation, _, terminated, truncated, info = self._env.step(np.asarray(actions, self._env.action_space.dtype))
        ended = np.asarray(terminated) | np.asarray(truncated)
        seen = self._seen(observation, info)
        if self._mode == "NextStep":  # this step was the reset of what the last one ended
            outcomes = [Outcome(None, s) if was else Outcome(s, None) for s, was in zip(seen, self._ended, strict=True)]
        elif self._mode == "SameStep":
            outcomes = [self._final(k, s, info) if ended[k] else Outcome(s, None) for k, s in enumerate(seen)]
        else:
            starts = self._reset_ended(ended) if ended.any() else seen
            outcomes = [Outcome(s, starts[k] if ended[k] else None) for k, s in enumerate(seen)]
        self._ended = ended
        return outcomes

    def _final(self, k: int, start: Seen, info: dict[str, Any]) -> Outcome:
        """The observation is the next episode's first one already; that of the end is in `info`."""
        after = self._one(info["final_obs"][k], _part(info.get("final_info", {}), k))
        return Outcome(after, start)

    def _reset_ended(self, ended: np.ndarray) -> list[Seen]:
        return self._seen(*self._env.reset(options={"reset_mask": ended}), only=ended)

    def _seen(self, observations: Any, info: dict[str, Any], only: np.ndarray | None = None) -> list[Any]:
        from gymnasium.vector.utils import iterate

        parts: Iterator[Any] = iterate(self._env.observation_space, observations)
        return [self._one(part, _part(info, k)) if only is None or only[k] else None for k, part in enumerate(parts)]

    def _one(self, observation: Any, info: dict[str, Any]) -> Seen:
        factors = self._factors(None, info) if self._factors else None
        return Seen(self._picture.frame(observation), factors, observation)


def _part(info: dict[str, Any], k: int) -> dict[str, Any]:
    """What a vector's info says of its k-th part; under `_key` stands which parts have the key at all."""
    own = {}
    for key, value in info.items():
        if key.startswith("_") or not np.asarray(info.get(f"_{key}", [True] * (k + 1)))[k]:
            continue
        own[key] = _part(value, k) if isinstance(value, dict) else value[k]
    return own
