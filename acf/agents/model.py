"""A model of what actions do, factor by factor: one small tree for the effect of each action on each factor.

An effect is told relative to what the no-op would have done, either as a difference or as a value that the factor is
set to, whichever has fewer kinds. A tree sees, in this order of preference, the effects on factors that change more
often under this action (a passenger moves if its taxi does), differences of factors, and the factors.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from acf.agents.tree import Tree, fit, predict

KEPT = -(10**6)  # the label of "as the no-op leaves it", where effects are values


class Effect(NamedTuple):
    tree: Tree
    relative: bool


STILL = Effect(fit(np.zeros((1, 1), int), np.zeros(1, int)), True)


class Rows:
    """Arrays that grow by a row at a time."""

    def __init__(self, width: int):
        self._all, self.n = np.zeros((64, width), np.int64), 0

    def add(self, row: Int[np.ndarray, " K"]) -> None:
        if self.n == len(self._all):
            self._all = np.concatenate([self._all, np.zeros_like(self._all)])
        self._all[self.n] = row
        self.n += 1

    def get(self) -> Int[np.ndarray, "n K"]:
        return self._all[: self.n]


class FactoredModel:
    def __init__(self, n_factors: int, n_actions: int, noop: int, units: tuple[str, ...] = ()):
        self.K, self.A, self.noop = n_factors, n_actions, noop
        pairs = np.array([(i, j) for i in range(n_factors) for j in range(i)], int)
        self._all_pairs = pairs.reshape(-1, 2)
        alike = [bool(units) and units[i] != "" and units[i] == units[j] for i, j in self._all_pairs]
        self._paired = np.array(alike, bool)  # share a unit; those that are seen to move together are added
        self._before, self._after = ([Rows(n_factors) for _ in range(n_actions)] for _ in range(2))
        self._effects = [[STILL] * n_factors for _ in range(n_actions)]
        self._changes = np.zeros((n_actions, n_factors), int)
        self._stale: set[tuple[int, int]] = set()
        self.versions = np.zeros(n_actions, int)
        """Of each action's trees: it changes when they do."""

    @classmethod
    def fit(
        cls,
        levels: Int[np.ndarray, "n K"],
        actions: Int[np.ndarray, " n"],
        after: Int[np.ndarray, "n K"],
        n_actions: int,
        noop: int = 0,
        units: tuple[str, ...] = (),
    ) -> "FactoredModel":
        """From transitions that are there already."""
        model = cls(levels.shape[1], n_actions, noop, units)
        for before, action, then in zip(levels, actions, after, strict=True):
            model._note(before, int(action), then)
        model._stale = {(a, k) for a in range(n_actions) for k in range(model.K)}
        model.refit()
        return model

    @property
    def pairs(self) -> Int[np.ndarray, "P 2"]:
        return self._all_pairs[self._paired]

    def add(self, before: Int[np.ndarray, " K"], action: int, after: Int[np.ndarray, " K"]) -> bool:
        """Learns one transition; whether the model had it wrong."""
        wrong = np.flatnonzero(self.predict(before[None], action)[0] != after)
        order = self._order(action)
        new_pair = self._note(before, action, after)
        stale = {(action, int(k)) for k in wrong}
        # What a tree's questions are about may have changed under it.
        if new_pair:
            stale = {(a, k) for a in range(self.A) for k in range(self.K)}
        elif (self._order(action) != order).any():
            stale = {(action, k) for k in range(self.K)}
        self._stale |= stale
        self.refit()
        return len(wrong) > 0

    def _note(self, before: Int[np.ndarray, " K"], action: int, after: Int[np.ndarray, " K"]) -> bool:
        self._before[action].add(before)
        self._after[action].add(after)
        moved = after - before
        self._changes[action] += moved != 0
        i, j = self._all_pairs.T
        found = (moved[i] != 0) & (moved[i] == moved[j]) & ~self._paired
        self._paired |= found
        return bool(found.any())

    def features(self, levels: Int[np.ndarray, "n K"]) -> Int[np.ndarray, "n P+K"]:
        """Differences and equalities (a difference of 0) come before the factors."""
        i, j = self.pairs.T
        return np.concatenate([levels[:, i] - levels[:, j], levels], axis=1)

    @property
    def made_of(self) -> list[frozenset[int]]:
        """The factors in each feature."""
        return [frozenset(map(int, pair)) for pair in self.pairs] + [frozenset([k]) for k in range(self.K)]

    def predict(self, levels: Int[np.ndarray, "n K"], action: int) -> Int[np.ndarray, "n K"]:
        base = levels if action == self.noop else self.predict(levels, self.noop)
        if all(e.tree.leaves == 1 and e.relative and e.tree.label[0] == 0 for e in self._effects[action]):
            return base.copy()
        features = self.features(levels)
        after = base.copy()
        moved = np.zeros_like(levels)
        for k in self._order(action):
            tree, relative = self._effects[action][k]
            label = predict(tree, np.concatenate([moved, features], axis=1) if tree.leaves > 1 else features)
            after[:, k] = base[:, k] + label if relative else np.where(label == KEPT, base[:, k], label)
            moved[:, k] = after[:, k] - levels[:, k]
        return after

    def refit(self) -> None:
        noop = {k for a, k in self._stale if a == self.noop}
        for k in sorted(noop):
            self._fit(self.noop, k)
        # What the other actions do is told relative to the no-op.
        rest = {(a, k) for a in range(self.A) for k in noop} | self._stale
        for a, k in sorted(rest):
            if a != self.noop and self._before[a].n:
                self._fit(a, k)
        self.versions[:] += len(noop)
        self.versions[sorted({a for a, _ in rest})] += bool(rest)
        self._stale = set()

    def _fit(self, action: int, k: int) -> None:
        before, after = self._before[action].get(), self._after[action].get()
        if not len(before):
            return
        base = before[:, k] if action == self.noop else self.predict(before, self.noop)[:, k]
        difference = after[:, k] - base
        changed = difference != 0
        relative = len(np.unique(difference[changed])) <= len(np.unique(after[changed, k]))
        label = difference if relative else np.where(changed, after[:, k], KEPT)
        if (label == label[0]).all():
            tree = fit(before[:1], label[:1])
        else:
            tree = fit(np.concatenate([self._earlier(action, k, after - before), self.features(before)], 1), label)
        self._effects[action][k] = Effect(tree, relative)

    def _order(self, action: int) -> Int[np.ndarray, " K"]:
        """Factors in the order they are predicted in: what changes often first."""
        return np.argsort(-self._changes[action], kind="stable")

    def _earlier(self, action: int, k: int, moved: Int[np.ndarray, "n K"]) -> Int[np.ndarray, "n K"]:
        order = self._order(action)
        known = np.isin(np.arange(self.K), order[: list(order).index(k)])
        return np.where(known, moved, 0)

    @property
    def leaves(self) -> int:
        """Of all trees that say more than "nothing happens"."""
        trees = [e.tree for effects in self._effects for e in effects]
        return sum(tree.leaves for tree in trees if tree.leaves > 1 or tree.label[0] not in (0, KEPT))

    def parents(self, action: int, k: int) -> set[int]:
        """The factors from which the effect of the action on factor k is told; a set value needs nothing else."""
        features = [{j} for j in range(self.K)] + self.made_of  # of a tree: effects on others come first
        return set().union(*(features[f] for f in self._effects[action][k].tree.features))

    def moves(self, action: int, k: int) -> bool:
        """Whether the action does anything to the factor, in some state."""
        return bool((self._effects[action][k].tree.label % KEPT != 0).any())

    def accuracy(
        self, levels: Int[np.ndarray, "n K"], actions: Int[np.ndarray, " n"], after: Int[np.ndarray, "n K"]
    ) -> float:
        """Share of transitions that are predicted right in every factor."""
        right = [
            (self.predict(levels[actions == a], a) == after[actions == a]).all(1).sum() for a in np.unique(actions)
        ]
        return float(sum(right) / max(len(actions), 1))
