"""What an agent lives in: levels in, an action out, and whether the goal is reached.

All worlds work on many episodes at once.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import jax
import numpy as np
from jaxtyping import Array, Bool, Int, UInt8

from acf.domains.base import Domain, Task
from acf.errors import AcfError

Encode = Callable[[UInt8[np.ndarray, "n H W C"]], Int[np.ndarray, "n K"]]
"""From frames to integers: where an agent's state comes from. `Trained.factors` is one."""


class World(Protocol):
    names: tuple[str, ...]
    """Of the levels."""
    action_names: tuple[str, ...]
    noop: int
    units: tuple[str, ...]
    limit: int
    """Steps of an episode."""

    def start(self, seed: int, n: int) -> tuple[Any, Int[np.ndarray, "n K"]]:
        """States of `n` episodes that begin, and their levels."""
        ...

    def step(
        self, seed: int, states: Any, actions: Int[np.ndarray, " n"]
    ) -> tuple[Any, Int[np.ndarray, "n K"], Bool[np.ndarray, " n"]]:
        """New states, their levels, and which have reached the goal."""
        ...


class DomainWorld:
    """A domain with one of its tasks, as its true levels or as what `encode` makes of its frames."""

    def __init__(self, domain: Domain, task: str, encode: Encode | None = None):
        self.domain, self.task_name, self.task, self.encode = domain, task, find_task(domain, task), encode
        self.action_names, self.noop, self.limit = domain.action_names, domain.noop, self.task.limit
        self.names, self.units = domain.level_names, domain.units
        if encode is not None:
            _, levels = self.start(0, 1)
            self.names, self.units = tuple(f"factor {k}" for k in range(levels.shape[1])), ()

    def start(self, seed: int, n: int) -> tuple[Any, Int[np.ndarray, "n K"]]:
        states, levels = _start(self.domain, n, np.uint32(seed))
        return states, self._see(states, levels)

    def step(
        self, seed: int, states: Any, actions: Int[np.ndarray, " n"]
    ) -> tuple[Any, Int[np.ndarray, "n K"], Bool[np.ndarray, " n"]]:
        states, levels = _step(self.domain, states, np.asarray(actions, np.int32), np.uint32(seed))
        reached = np.asarray(self.task.reached(np.asarray(levels)))
        return states, self._see(states, levels), reached

    def _see(self, states: Any, levels: Array) -> Int[np.ndarray, "n K"]:
        seen = levels if self.encode is None else self.encode(np.asarray(_render(self.domain, states)))
        return np.asarray(seen, np.int64)


def find_task(domain: Domain, task: str) -> Task:
    if not domain.tasks:
        raise AcfError(f"{domain.name} has no tasks: an agent plans from level to level, or nobody named one")
    if task not in domain.tasks:
        raise AcfError(f"{domain.name} has the tasks {', '.join(domain.tasks)}; got {task!r}")
    return domain.tasks[task]


@partial(jax.jit, static_argnums=(0, 1))
def _start(domain: Domain, n: int, seed: Int[Array, ""]) -> tuple[Any, Array]:
    keys = jax.random.split(jax.random.key(seed), n)
    states = jax.vmap(lambda key: domain.sample(key, "episode"))(keys)
    return states, jax.vmap(domain.levels)(states)


@partial(jax.jit, static_argnums=0)
def _step(domain: Domain, states: Any, actions: Int[Array, " n"], seed: Int[Array, ""]) -> tuple[Any, Array]:
    keys = jax.random.split(jax.random.key(seed), len(actions))
    states = jax.vmap(domain.step)(keys, states, actions)
    return states, jax.vmap(domain.levels)(states)


@partial(jax.jit, static_argnums=0)
def _render(domain: Domain, states: Any) -> Array:
    return jax.vmap(domain.render)(states)
