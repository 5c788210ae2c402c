"""Agents that see a state as a whole, to compare with. On clean pixels a hash of the frame is the same as the state."""

from collections import deque
from typing import Any

import numpy as np
from jaxtyping import Int

from acf.agents.agent import Policy

Key = tuple[int, ...]


class RMax:
    """Walks to the nearest action that was never tried, or to a known reward; one trial tells all (m = 1)."""

    def __init__(self, n_actions: int, *, seed: int = 0):
        self._order = [int(a) for a in np.random.default_rng(seed).permutation(n_actions)]
        self._next: dict[Key, dict[int, Key]] = {}
        self._rewarded: set[Key] = set()
        self._way: list[int] = []

    def act(self, levels: Int[np.ndarray, " K"]) -> int:
        if not self._way:
            self._way = self._nearest(_key(levels))
        return self._way.pop(0)

    def learn(
        self, levels: Int[np.ndarray, " K"], action: int, after: Int[np.ndarray, " K"], reached: bool, over: bool
    ) -> None:
        then = _key(after)
        self._next.setdefault(_key(levels), {})[action] = then
        if reached:
            self._rewarded.add(then)
        if over:
            self._way = []

    def _nearest(self, start: Key) -> list[int]:
        came: dict[Key, tuple[Key, int] | None] = {start: None}
        waiting = deque([start])
        while waiting:
            state = waiting.popleft()
            known = self._next.get(state, {})
            for action in self._order:
                if action not in known or known[action] in self._rewarded:
                    return _way(came, state, action)
            for action in self._order:
                if known[action] not in came:
                    came[known[action]] = state, action
                    waiting.append(known[action])
        return self._order[:1]

    def policy(self) -> Policy:
        best: dict[Key, int] = {}
        back: dict[Key, list[tuple[Key, int]]] = {}
        for state, known in self._next.items():
            for action, then in known.items():
                back.setdefault(then, []).append((state, action))
        waiting = deque(self._rewarded)
        while waiting:
            for state, action in back.get(waiting.popleft(), ()):
                if state not in best and state not in self._rewarded:
                    best[state] = action
                    waiting.append(state)
        return lambda levels: np.array([best.get(_key(row), 0) for row in levels])

    def describe(self) -> dict[str, Any]:
        return {"states": len(self._next)}


class QLearning:
    """Every action is worth a reward until it was tried. Step size 1, right for worlds without chance."""

    DISCOUNT = 0.97

    def __init__(self, n_actions: int, *, seed: int = 0):
        self._A, self._rng = n_actions, np.random.default_rng(seed)
        self._values: dict[Key, np.ndarray] = {}

    def _value(self, key: Key) -> np.ndarray:
        return self._values.setdefault(key, np.ones(self._A))

    def act(self, levels: Int[np.ndarray, " K"]) -> int:
        values = self._value(_key(levels))
        return int(self._rng.choice(np.flatnonzero(values == values.max())))

    def learn(
        self, levels: Int[np.ndarray, " K"], action: int, after: Int[np.ndarray, " K"], reached: bool, over: bool
    ) -> None:
        worth = 1.0 if reached else self.DISCOUNT * self._value(_key(after)).max()
        self._value(_key(levels))[action] = worth

    def policy(self) -> Policy:
        fresh = np.ones(self._A)
        return lambda levels: np.array([int(self._values.get(_key(row), fresh).argmax()) for row in levels])

    def describe(self) -> dict[str, Any]:
        return {"states": len(self._values)}


def _key(levels: Int[np.ndarray, " K"]) -> Key:
    return tuple(levels.tolist())


def _way(came: dict[Key, tuple[Key, int] | None], state: Key, action: int) -> list[int]:
    actions = [action]
    while (step := came[state]) is not None:
        state, action = step
        actions.append(action)
    return actions[::-1]
