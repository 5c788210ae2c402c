"""The agent: learns what actions do factor by factor, tries what is new, and walks to the goal once it knows a way."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from jaxtyping import Bool, Int

from acf.agents.explore import Novelty, RewardSearch
from acf.agents.model import FactoredModel
from acf.agents.plan import FAR, Ranges, Reachable, steps_from, steps_to

Goal = Callable[[Int[np.ndarray, "n K"]], Bool[np.ndarray, " n"]]
Policy = Callable[[Int[np.ndarray, "n K"]], Int[np.ndarray, " n"]]

DISCOUNT = 0.9  # of what is worth a try, a step of the way


class Learner(Protocol):
    """What an experiment asks of an agent."""

    def act(self, levels: Int[np.ndarray, " K"]) -> int: ...

    def learn(
        self, levels: Int[np.ndarray, " K"], action: int, after: Int[np.ndarray, " K"], reached: bool, over: bool
    ) -> None:
        """`over`: the episode ends here, on the goal or at its limit."""
        ...

    def policy(self) -> Policy:
        """Greedily, with what is known now."""
        ...

    def describe(self) -> dict[str, Any]: ...


class Agent:
    """`goal` is the predicate to fulfil; None if it has to be found out from the rewards."""

    def __init__(
        self,
        n_factors: int,
        n_actions: int,
        *,
        noop: int = 0,
        units: tuple[str, ...] = (),
        goal: Goal | None = None,
        seed: int = 0,
    ):
        self.model = FactoredModel(n_factors, n_actions, noop, units)
        self.goal = goal
        self._rng = np.random.default_rng(seed)
        self._ranges: Ranges | None = None
        self._history: list[tuple[Int[np.ndarray, " K"], int, bool]] = []
        self._reset_counts()
        self._space: Reachable | None = None  # of this episode
        self._to_goal: Int[np.ndarray, " N+1"] | None = None  # None: what is known has changed
        self._way: list[int] = []
        self._surprise = 1.0

    def act(self, levels: Int[np.ndarray, " K"]) -> int:
        self._look(levels)
        if self._way:
            return self._way.pop(0)
        space, here = self._here(levels)
        best = self._towards_goal(space, here)
        if best is None:
            self._way = self._most_promising(space, here)
            return self._way.pop(0)
        return best

    def learn(
        self, levels: Int[np.ndarray, " K"], action: int, after: Int[np.ndarray, " K"], reached: bool, over: bool
    ) -> None:
        pairs = len(self.model.pairs)
        changed = self.model.add(levels, action, after)
        self._surprise += 0.02 * (changed - self._surprise)
        changed |= self._look(after)
        self._history.append((levels, action, reached))
        if len(self.model.pairs) != pairs:
            self._reset_counts()
            self._after.append(after)
            for (before, a, hit), then in zip(self._history, self._after, strict=True):
                self._count(before, a, then, hit)
        else:
            self._after.append(after)
            changed |= self._count(levels, action, after, reached)
        if changed or over:
            self._way, self._to_goal = [], None
        if over:
            self._space = None

    def policy(self) -> Policy:
        planned: dict[str, Any] = {}

        def policy(levels: Int[np.ndarray, "n K"]) -> Int[np.ndarray, " n"]:
            if self._ranges is None:
                return np.full(len(levels), self.model.noop)
            codes = self._ranges.code(levels)
            if not planned:
                space = Reachable(self.model, self._ranges, levels[codes >= 0]) if (codes >= 0).any() else None
                if space is None:
                    return np.full(len(levels), self.model.noop)
                planned["space"] = space
                planned["best"] = np.append(self._steps(space)[space.next].argmin(1), self.model.noop)
            return planned["best"][planned["space"].index(codes)]

        return policy

    def describe(self) -> dict[str, Any]:
        return {"leaves": self.model.leaves, "transitions": self.model.n_transitions}

    def _look(self, levels: Int[np.ndarray, " K"]) -> bool:
        """Takes note of levels not seen so far, which make states count differently."""
        if self._ranges is None:
            self._ranges = Ranges(levels[None])
            return True
        if self._ranges.widen(levels[None]):
            self._space = None
            return True
        return False

    def _reset_counts(self) -> None:
        n = self.model.K + len(self.model.pairs)
        self._novelty = Novelty(n, self.model.A)
        self._search = None if self.goal else RewardSearch(n)
        self._after: list[Int[np.ndarray, " K"]] = getattr(self, "_after", [])

    def _count(self, levels: Int[np.ndarray, " K"], action: int, after: Int[np.ndarray, " K"], reached: bool) -> bool:
        before, then = self.model.features(np.stack([levels, after]))
        self._novelty.add(before, action)
        return self._search.add(then, reached) if self._search else False

    def _here(self, levels: Int[np.ndarray, " K"]) -> tuple[Reachable, int]:
        assert self._ranges is not None
        code = self._ranges.code(levels[None])
        if self._space is not None and self._to_goal is None:
            self._space.update()
        if self._space is None or self._space.index(code)[0] == len(self._space.states):
            self._space, self._to_goal = Reachable(self.model, self._ranges, levels[None]), None
        if self._to_goal is None:
            self._to_goal = self._steps(self._space)
        return self._space, int(self._space.index(code)[0])

    def _steps(self, space: Reachable) -> Int[np.ndarray, " N+1"]:
        goal = self.goal(space.states) if self.goal else self._search.rewarded(self.model.features(space.states))
        return steps_to(np.asarray(goal), space.next)

    def _towards_goal(self, space: Reachable, here: int) -> int | None:
        assert self._to_goal is not None
        ahead = self._to_goal[space.next[here]]
        return int(ahead.argmin()) if ahead.min() < FAR else None

    def _most_promising(self, space: Reachable, here: int) -> list[int]:
        """The way to the action that promises most, and the action itself."""
        steps, way = steps_from(here, space.next)
        near = np.flatnonzero(steps < FAR)
        features = self.model.features(space.states[near])
        worth = self._novelty.score(features)
        if self._search:
            worth = worth * self._surprise
            following = space.next[near]
            there = np.minimum(following, len(space.states) - 1)
            chance = self._search.chance(self.model.features(space.states))
            worth = worth + np.where(following < len(space.states), chance[there], 0) * REWARD
        worth = worth * DISCOUNT ** steps[near][:, None]
        worth = worth + 1e-6 * self._rng.random(worth.shape)
        row, action = np.unravel_index(int(worth.argmax()), worth.shape)
        return [*way(int(near[row])), int(action)]


REWARD = 30.0
