"""What is worth a try: actions in circumstances not seen yet, and states that may be rewarded."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from acf.agents.combinations import Combinations
from acf.agents.model import Rows


class Novelty:
    """The share of the small sets of features whose values were never seen with an action."""

    def __init__(self, made_of: Sequence[frozenset[int]], n_actions: int, order: int = 3):
        self._sets = Combinations(made_of, order)
        self._rows = [Rows(len(made_of)) for _ in range(n_actions)]
        self._weights = 1 / np.bincount(self._sets.sizes)[self._sets.sizes] / order  # each size counts the same
        self._seen: list[Bool[np.ndarray, " cells"]] = []

    def add(self, features: Int[np.ndarray, " F"], action: int) -> None:
        self._rows[action].add(features)
        if self._sets.widen(features[None]):
            self._seen = [self._sets.empty() for _ in self._rows]
            for seen, rows in zip(self._seen, self._rows, strict=True):
                seen[self._sets.ids(rows.get())] = True
        else:
            self._seen[action][self._sets.ids(features[None])[0]] = True

    def score(self, features: Int[np.ndarray, "n F"]) -> Float[np.ndarray, "n A"]:
        if not self._seen:
            return np.ones((len(features), len(self._rows)))
        ids = self._sets.ids(features)
        return np.stack([(~seen[ids] | (ids < 0)) @ self._weights for seen in self._seen], axis=1)


class RewardSearch:
    """Which states are rewarded, if the reward is a function of a few features that nobody named.

    A set of features is a *candidate* as long as no values of it were seen both with and without reward. A state is
    taken for rewarded if the smallest candidates say so, and is worth a visit by the chance that it is: under a
    candidate each of its cells not seen yet is as likely as any other, so small tables come before large ones.
    """

    def __init__(self, made_of: Sequence[frozenset[int]], order: int = 4):
        self._sets = Combinations(made_of, order)
        self._rows, self._rewards = Rows(len(made_of)), []
        self._seen: dict[bool, Bool[np.ndarray, " cells"]] = {}
        self._prior = 1 / np.bincount(self._sets.sizes)[self._sets.sizes]

    def add(self, features: Int[np.ndarray, " F"], rewarded: bool) -> bool:
        """Learns the reward of one state; whether it had been expected otherwise."""
        wrong = bool(self.rewarded(features[None])[0]) != rewarded if self._seen else rewarded
        self._rows.add(features)
        self._rewards.append(rewarded)
        if self._sets.widen(features[None]):
            X, r = self._rows.get(), np.array(self._rewards)
            self._seen = {kind: self._sets.empty() for kind in (True, False)}
            for kind, seen in self._seen.items():
                seen[self._sets.ids(X[r == kind])] = True
        else:
            self._seen[rewarded][self._sets.ids(features[None])[0]] = True
        return wrong

    def candidates(self) -> Bool[np.ndarray, " S"]:
        """All sets if the rewards contradict every one of them."""
        both = np.add.reduceat(self._seen[True] & self._seen[False], self._sets._base) > 0
        return ~both if not both.all() else ~np.zeros_like(both)

    def rewarded(self, features: Int[np.ndarray, "n F"]) -> Bool[np.ndarray, " n"]:
        if not any(self._rewards):
            return np.zeros(len(features), bool)
        kept = self.candidates()
        kept &= self._sets.sizes == self._sets.sizes[kept].min()
        kept &= self._sets.cells == self._sets.cells[kept].min()
        ids = self._sets.ids(features)[:, kept]
        return np.any(self._seen[True][ids] & (ids >= 0), axis=1)

    def chance(self, features: Int[np.ndarray, "n F"]) -> Float[np.ndarray, " n"]:
        """Of being rewarded though it was not seen so far, up to a factor."""
        if not self._seen:
            return np.ones(len(features))
        seen = self._seen[True] | self._seen[False]
        unseen = np.add.reduceat(~seen, self._sets._base)
        kept = self.candidates() & (unseen > 0)
        if not kept.any():
            return np.zeros(len(features))
        prior = self._prior * kept
        ids = self._sets.ids(features)[:, kept]
        return (~seen[ids] | (ids < 0)) @ (prior / prior.sum() / np.maximum(unseen, 1))[kept]
