"""Is what several axes show together one line: a chain of values, or a cycle?"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from acf.factors.moves import Moves

CLOSED = 0.98  # share of moves that value and action must determine


class Line(NamedTuple):
    values: tuple[tuple[int, ...], ...]
    cycle: bool


def find_line(
    moves: Moves, now: Int[np.ndarray, "T p"], then: Int[np.ndarray, "T p"], few: int, alike: float
) -> Line | None:
    """The values of these axes in the order in which actions lead through them; none where they are no line.

    On a line every value has two neighbours at most, value and action determine to which of them a move leads, and
    neighbouring moves are done by the same actions. Two switches with an action each run through a cycle of four too,
    but by turns.
    """
    moved = moves.changed & (now != then).any(1)
    both = np.concatenate([now[moved], then[moved]])
    values, index = np.unique(both, axis=0, return_inverse=True)
    a, b = np.split(index.reshape(-1), 2)
    if len(values) < 3 or _determined(a, b, moves.action[moved]) < CLOSED:
        return None
    edges, which, times = np.unique(
        np.sort(np.stack([a, b], axis=1), axis=1), axis=0, return_inverse=True, return_counts=True
    )
    usual = times >= max(few, (1 - CLOSED) * np.median(times))
    order = _walk(edges[usual])
    if order is None:
        return None
    cycle = len(order) == int(usual.sum())
    by = np.zeros((len(edges), int(moves.action.max()) + 1))
    np.add.at(by, (which.reshape(-1), moves.action[moved]), 1)
    if not _one_hand(edges, by, usual, order, cycle, alike):
        return None
    return Line(tuple(tuple(values[n].tolist()) for n in order), cycle)


def _walk(edges: Int[np.ndarray, "E 2"]) -> list[int] | None:
    """The nodes in the order of the line that the edges make; none if they make none, or more than one."""
    beside: dict[int, list[int]] = {}
    for one, other in edges.tolist():
        beside.setdefault(one, []).append(other)
        beside.setdefault(other, []).append(one)
    if len(beside) < 3 or any(len(found) > 2 for found in beside.values()):
        return None
    ends = [node for node, found in beside.items() if len(found) == 1]
    order, here = [], min(ends or beside)
    while here is not None:
        order.append(here)
        here = min((n for n in beside[here] if n not in order), default=None)
    return order if len(order) == len(beside) else None


def _one_hand(
    edges: Int[np.ndarray, "E 2"],
    by: Float[np.ndarray, "E A"],
    usual: Bool[np.ndarray, " E"],
    order: list[int],
    cycle: bool,
    alike: float,
) -> bool:
    """Whether neighbouring moves on the line are done by the same actions."""
    share = by / by.sum(1, keepdims=True)
    row = {tuple(edge): n for n, edge in enumerate(edges.tolist()) if usual[n]}
    nodes = [*order, *order[:2]] if cycle else order
    along = [share[row[min(pair), max(pair)]] for pair in pairwise(nodes)]
    return all(np.minimum(p, q).sum() > alike for p, q in pairwise(along))


def _determined(now: Int[np.ndarray, " n"], then: Int[np.ndarray, " n"], action: Int[np.ndarray, " n"]) -> float:
    """The share of next values that are the usual one after this value and action."""
    key = now * (int(action.max()) + 1) + action
    triples, counts = np.unique(np.stack([key, then], axis=1), axis=0, return_counts=True)
    best = np.zeros(int(key.max()) + 1, np.int64)
    np.maximum.at(best, triples[:, 0], counts)
    return best.sum() / len(now)
