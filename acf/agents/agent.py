"""The agent: learns what actions do factor by factor, tries what is new, and walks to the goal once it knows a way."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from jaxtyping import Bool, Int

from acf.agents.explore import Novelty, RewardSearch
from acf.agents.model import FactoredModel
from acf.agents.plan import FAR, Ranges, Reachable, richest_way, steps_to

Goal = Callable[[Int[np.ndarray, "n K"]], Bool[np.ndarray, " n"]]
Policy = Callable[[Int[np.ndarray, "n K"]], Int[np.ndarray, " n"]]

REWARD = 30.0  # how much more the chance of a reward is worth than that of an unforeseen effect
FORGET = 0.02  # of how often the model was wrong, a step

Past = tuple[Int[np.ndarray, " K"], int, Int[np.ndarray, " K"], bool]  # levels, action, levels after it, reward


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
        self._surprise = 1.0  # how often the model was wrong lately
        self._past: list[Past] = []
        self._count_anew()
        self._ranges: Ranges | None = None
        self._space: Reachable | None = None  # of this episode
        self._to_goal: Int[np.ndarray, " N+1"] | None = None  # None: what is known has changed
        self._way: list[int] = []

    def act(self, levels: Int[np.ndarray, " K"]) -> int:
        self._look(levels)
        if not self._way:
            space, here = self._here(levels)
            best = self._towards_goal(space, here)
            self._way = self._most_promising(space, here) if best is None else [best]
        return self._way.pop(0)

    def learn(
        self, levels: Int[np.ndarray, " K"], action: int, after: Int[np.ndarray, " K"], reached: bool, over: bool
    ) -> None:
        version, pairs = self.model.versions.sum(), len(self.model.pairs)
        wrong = self.model.add(levels, action, after)
        self._surprise += FORGET * (wrong - self._surprise)
        changed = self._look(after) or self.model.versions.sum() != version
        self._past.append((levels, action, after, reached))
        if len(self.model.pairs) != pairs:
            self._count_anew()
            changed = True
        else:
            changed |= self._count(levels, action, after, reached)
        if changed or over:
            self._way, self._to_goal = [], None
        if over:
            self._space = None

    def policy(self) -> Policy:
        planned: list[tuple[Reachable, Int[np.ndarray, " N+1"]]] = []

        def policy(levels: Int[np.ndarray, "n K"]) -> Int[np.ndarray, " n"]:
            codes = np.full(len(levels), -1) if self._ranges is None else self._ranges.code(levels)
            if self._ranges is None or (codes < 0).all():  # nothing of this was ever seen
                return np.full(len(levels), self.model.noop)
            if not planned:
                space = Reachable(self.model, self._ranges, levels[codes >= 0])
                planned.append((space, np.append(self._steps(space)[space.next].argmin(1), self.model.noop)))
            space, best = planned[0]
            return best[space.index(codes)]

        return policy

    def describe(self) -> dict[str, Any]:
        return {"leaves": self.model.leaves}

    def _look(self, levels: Int[np.ndarray, " K"]) -> bool:
        """Takes note of levels not seen so far, which make states count differently."""
        if self._ranges is None:
            self._ranges = Ranges(levels[None])
            return True
        if self._ranges.widen(levels[None]):
            self._space = None
            return True
        return False

    def _count_anew(self) -> None:
        """The model has other features: what was seen is counted by these."""
        made_of = self.model.made_of
        self._novelty = Novelty(made_of, self.model.A)
        self._search = RewardSearch(made_of) if self.goal is None else None
        for transition in self._past:
            self._count(*transition)

    def _count(self, levels: Int[np.ndarray, " K"], action: int, after: Int[np.ndarray, " K"], reached: bool) -> bool:
        """Whether the reward was another one than expected."""
        before, then = self.model.features(np.stack([levels, after]))
        self._novelty.add(before, action)
        return self._search.add(then, reached) if self._search is not None else False

    def _here(self, levels: Int[np.ndarray, " K"]) -> tuple[Reachable, int]:
        """The states ahead, and which of them this is."""
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
        """To the goal, as far as it is known."""
        if self.goal is not None:
            goal = np.asarray(self.goal(space.states))
        else:
            assert self._search is not None
            goal = self._search.rewarded(self.model.features(space.states))
        return steps_to(goal, space.next)

    def _towards_goal(self, space: Reachable, here: int) -> int | None:
        assert self._to_goal is not None
        ahead = self._to_goal[space.next[here]]
        return int(ahead.argmin()) if ahead.min() < FAR else None

    def _most_promising(self, space: Reachable, here: int) -> list[int]:
        """The way on which there is most to find out, a step."""
        features = self.model.features(space.states)
        worth = self._novelty.score(features)
        if self._search is not None:
            # What is new has lately had an unforeseen effect this often.
            chance = np.append(self._search.chance(features), 0.0)
            worth = self._surprise * worth + REWARD * chance[space.next]
        return richest_way(here, space.next, worth + 1e-6 * self._rng.random(worth.shape))
