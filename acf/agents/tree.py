"""A classification tree over integer features that fits its rows exactly where they do not contradict each other.

A node asks `x == v` or `x <= v`. Greedy in information gain; among equal gains the first feature wins, so that the
caller's order of features is a preference.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

TINY = 1e-9


class Tree(NamedTuple):
    """Node 0 is the root; a node whose `feature` is -1 is a leaf."""

    feature: Int[np.ndarray, " nodes"]
    value: Int[np.ndarray, " nodes"]
    equal: Bool[np.ndarray, " nodes"]
    """Whether the node asks `==`, else `<=`."""
    yes: Int[np.ndarray, " nodes"]
    no: Int[np.ndarray, " nodes"]
    label: Int[np.ndarray, " nodes"]

    @property
    def leaves(self) -> int:
        return int((self.feature < 0).sum())

    @property
    def features(self) -> list[int]:
        return sorted({int(f) for f in self.feature if f >= 0})


class Split(NamedTuple):
    feature: int
    value: int
    equal: bool


def fit(X: Int[np.ndarray, "n F"], y: Int[np.ndarray, " n"]) -> Tree:
    """
    >>> X = np.array([[0, 3], [1, 3], [2, 0], [2, 1]])
    >>> tree = fit(X, np.array([7, 7, 7, 9]))
    >>> predict(tree, X).tolist(), tree.features
    ([7, 7, 7, 9], [1])
    """
    names, labels = np.unique(y, return_inverse=True)
    nodes: list[list[int]] = []
    waiting = [(np.arange(len(y)), -1, 3)]  # rows, and the parent's cell that gets the number of the node
    while waiting:
        rows, parent, cell = waiting.pop()
        if parent >= 0:
            nodes[parent][cell] = len(nodes)
        counts = np.bincount(labels[rows], minlength=len(names))
        found = None if counts.max() == len(rows) else best_split(X[rows], labels[rows], len(names))
        label = int(names[counts.argmax()])
        if found is None:
            nodes.append([-1, 0, 0, 0, 0, label])
            continue
        goes = asks(found, X[rows])
        waiting += [(rows[~goes], len(nodes), 4), (rows[goes], len(nodes), 3)]
        nodes.append([*map(int, found), 0, 0, label])
    feature, value, equal, yes, no, label = np.array(nodes).T
    return Tree(feature, value, equal.astype(bool), yes, no, label)


def predict(tree: Tree, X: Int[np.ndarray, "n F"]) -> Int[np.ndarray, " n"]:
    at = np.zeros(len(X), np.int64)
    if tree.feature[0] < 0:
        return tree.label[at]
    rows = np.arange(len(X))
    while len(rows):
        node = at[rows]
        x, value = X[rows, tree.feature[node]], tree.value[node]
        node = np.where(np.where(tree.equal[node], x == value, x <= value), tree.yes[node], tree.no[node])
        at[rows] = node
        rows = rows[tree.feature[node] >= 0]
    return tree.label[at]


def asks(split: Split, X: Int[np.ndarray, "n F"]) -> Bool[np.ndarray, " n"]:
    x = X[:, split.feature]
    return x == split.value if split.equal else x <= split.value


def best_split(X: Int[np.ndarray, "n F"], labels: Int[np.ndarray, " n"], n_labels: int) -> Split | None:
    """Of all questions about all features the one that tells most; None if every row has the same features."""
    low = X.min(0)
    width = X.max(0) - low + 1
    first = np.concatenate([[0], np.cumsum(width)[:-1]])  # each feature's values lie one after the other
    cells = (X - low + first).ravel() * n_labels + np.repeat(labels, X.shape[1])
    equal = np.bincount(cells, minlength=int(width.sum()) * n_labels).reshape(-1, n_labels)
    running = np.cumsum(equal, axis=0)
    before = np.repeat(running[first] - equal[first], width, axis=0)
    total = np.bincount(labels, minlength=n_labels)
    gains = np.stack([_gain(equal, total), _gain(running - before, total)])
    # Of each feature its best question, then the first feature that is as good as any.
    best = np.maximum.reduceat(gains.max(0), first)
    if best.max() == -np.inf:
        return None
    feature = int(np.flatnonzero(best >= best.max() - TINY)[0])
    part = gains[:, first[feature] : first[feature] + width[feature]]
    kind, place = np.unravel_index(int(part.argmax()), part.shape)
    return Split(feature, int(low[feature] + place), bool(kind == 0))


def _gain(inside: Int[np.ndarray, "V L"], total: Int[np.ndarray, " L"]) -> Float[np.ndarray, " V"]:
    """Bits that the question tells, times the rows; -inf where all rows answer alike."""
    outside = total - inside
    n, m = inside.sum(1), outside.sum(1)
    told = _bits(total[None]) - _bits(inside) - _bits(outside)
    return np.where((n > 0) & (m > 0), told, -np.inf)


def _bits(counts: Int[np.ndarray, "V L"]) -> Float[np.ndarray, " V"]:
    """Entropy times the rows, in nats."""
    n = counts.sum(1)
    return n * np.log(np.maximum(n, 1)) - (counts * np.log(np.maximum(counts, 1))).sum(1)
