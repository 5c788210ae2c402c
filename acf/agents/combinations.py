"""Which values of small sets of features have been seen: what novelty, and a search for a reward, are counted by."""

import itertools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int


class Combinations:
    """A table of the values seen for each set of at most `order` features. Ranges grow with what is seen.

    `made_of` says which factors each feature is made of; a set with a factor twice would be another set said
    worse (with x - y and x one knows y).
    """

    def __init__(self, made_of: Sequence[frozenset[int]], order: int):
        n_features = len(made_of)
        every = [s for size in range(1, order + 1) for s in itertools.combinations(range(n_features), size)]
        self.sets = [
            s for s in every if len(frozenset().union(*(made_of[f] for f in s))) == sum(len(made_of[f]) for f in s)
        ]
        self.sizes = np.array([len(s) for s in self.sets])
        self._member = np.zeros((n_features, len(self.sets)), bool)
        for place, chosen in enumerate(self.sets):
            self._member[list(chosen), place] = True
        self.low = np.zeros(n_features, np.int64)
        self.width = np.zeros(n_features, np.int64)

    def widen(self, X: Int[np.ndarray, "n F"]) -> bool:
        """Makes room for these values; whether numbers of cells given so far are void."""
        low, high = X.min(0), X.max(0)
        if self.width.all() and (low >= self.low).all() and (high < self.low + self.width).all():
            return False
        if self.width.all():
            low, high = np.minimum(low, self.low), np.maximum(high, self.low + self.width - 1)
        self.low, self.width = low, high - low + 1
        weights = np.zeros((len(self.width), len(self.sets)), np.int64)
        self.cells = np.zeros(len(self.sets), np.int64)
        for place, chosen in enumerate(self.sets):
            size = 1
            for feature in chosen:
                weights[feature, place] = size
                size *= self.width[feature]
            self.cells[place] = size
        self._weights = weights
        self._base = np.concatenate([[0], np.cumsum(self.cells)[:-1]])
        return True

    def empty(self) -> Bool[np.ndarray, " cells"]:
        return np.zeros(int(self.cells.sum()), bool)

    def ids(self, X: Int[np.ndarray, "n F"]) -> Int[np.ndarray, "n S"]:
        """The cell of each row in each set's table; -1 where a value was never seen."""
        shifted = X - self.low
        outside = (shifted < 0) | (shifted >= self.width)
        # In floats, where NumPy has fast products; exact far beyond any table that fits into memory.
        ids = (shifted.astype(float) @ self._weights.astype(float)).astype(np.int64) + self._base
        return np.where(outside @ self._member, -1, ids) if outside.any() else ids
