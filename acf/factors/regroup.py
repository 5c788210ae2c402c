"""From levels to factors: what a certificate leaves free is settled by which actions move what.

A chain of levels may hold two factors, one after the other (a key, then a door): it is cut where other actions take
over. A cycle may be spread over two axes (a heading as two bits): they are joined along the orbit of their action.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int

from acf.factors.moves import Moves

ALIKE = 0.3  # overlap of the actions that cross two neighbouring levels, from which on they are of one factor
SHARED = 0.5  # of the actions of two axes, that may be a cycle
CLOSED = 0.98  # share of next values that two axes together determine; each alone less than OPEN
OPEN = 0.9
FEW = 3  # crossings of a level below which it says nothing


@dataclass(frozen=True)
class Piece:
    """Levels `low` to `high` of an axis, counted from 0; what lies outside is its end."""

    axis: int
    low: int
    high: int

    def read(self, levels: Int[np.ndarray, "n m"]) -> Int[np.ndarray, " n"]:
        return np.clip(levels[:, self.axis], self.low, self.high) - self.low


@dataclass(frozen=True)
class Factor:
    """A controllable factor: a piece of an axis, or a cycle over two."""

    pieces: tuple[Piece, ...]
    actions: tuple[int, ...]
    """Those that move it, the most often first."""
    orbit: tuple[tuple[int, int], ...] = ()
    """Of a cycle: the values of its two pieces in the order in which an action runs through them."""

    def read(self, levels: Int[np.ndarray, "n m"]) -> Int[np.ndarray, " n"]:
        """Its value, from 0; -1 for a pair of values that its cycle does not have."""
        values = [piece.read(levels) for piece in self.pieces]
        if not self.orbit:
            return values[0]
        place = {pair: n for n, pair in enumerate(self.orbit)}
        return np.array([place.get(pair, -1) for pair in zip(*(v.tolist() for v in values), strict=True)], np.int64)

    @property
    def levels(self) -> int:
        return len(self.orbit) or self.pieces[0].high - self.pieces[0].low + 1


def regroup(
    moves: Moves, levels: Int[np.ndarray, "T m"], levels_next: Int[np.ndarray, "T m"], n_actions: int
) -> tuple[Factor, ...]:
    """The factors of a code of whole numbers, from transitions alone."""
    pieces = [piece for axis in range(levels.shape[1]) for piece in _cut(moves, levels, levels_next, axis, n_actions)]
    now, then = ([piece.read(x) for piece in pieces] for x in (levels, levels_next))
    rates = [_rates(moves, a != b, n_actions) for a, b in zip(now, then, strict=True)]
    factors, joined = {}, set()
    for p, q in combinations(range(len(pieces)), 2):
        if {p, q} & joined or np.minimum(_share(rates[p]), _share(rates[q])).sum() < SHARED:
            continue
        orbit = _orbit(moves, (now[p], now[q]), (then[p], then[q]), rates[p] + rates[q])
        if orbit:
            factors[p] = Factor((pieces[p], pieces[q]), _movers(rates[p] + rates[q]), orbit)
            joined |= {p, q}
    factors |= {p: Factor((pieces[p],), _movers(rates[p])) for p in range(len(pieces)) if p not in joined}
    return tuple(factors[p] for p in sorted(factors))


def _cut(
    moves: Moves, levels: Int[np.ndarray, "T m"], levels_next: Int[np.ndarray, "T m"], axis: int, n_actions: int
) -> list[Piece]:
    """An axis between its levels, wherever other actions cross from one to the next than crossed before."""
    low, high = np.minimum(levels[:, axis], levels_next[:, axis]), np.maximum(levels[:, axis], levels_next[:, axis])
    runs: list[tuple[Float[np.ndarray, " A"], list[int]]] = []
    for level in range(low.min(), high.max()):
        crossed = (low <= level) & (level < high)
        if crossed.sum() < FEW:
            continue
        by = _share(_rates(moves, crossed, n_actions))
        if runs and np.minimum(by, runs[-1][0]).sum() > ALIKE:
            runs[-1][1].append(level)
        else:
            runs.append((by, [level]))
    return [Piece(axis, run[0], run[-1] + 1) for _, run in runs]


def _orbit(
    moves: Moves,
    now: tuple[Int[np.ndarray, " T"], Int[np.ndarray, " T"]],
    then: tuple[Int[np.ndarray, " T"], Int[np.ndarray, " T"]],
    rates: Float[np.ndarray, " A"],
) -> tuple[tuple[int, int], ...]:
    """How an action runs through two axes that make sense together only; empty where they are two factors."""
    movers = np.flatnonzero(_share(rates) > 0.1)
    rows = np.flatnonzero(np.isin(moves.action, movers))
    width = int(max(now[1].max(), then[1].max())) + 1
    both, both_next = now[0] * width + now[1], then[0] * width + then[1]
    together = _determined(both[rows], both_next[rows], moves.action[rows])
    alone = max(_determined(a[rows], b[rows], moves.action[rows]) for a, b in zip(now, then, strict=True))
    if together < CLOSED or alone > OPEN:
        return ()
    own = moves.action == movers[np.argmax(rates[movers])]
    follows = {int(v): int(np.bincount(both_next[own & (both == v)]).argmax()) for v in np.unique(both[own])}
    orbit, value = [], min(follows)
    while value in follows and value not in orbit:
        orbit.append(value)
        value = follows[value]
    closed = value == orbit[0] and len(orbit) == len(follows)
    return tuple((v // width, v % width) for v in orbit) if closed and len(orbit) > 2 else ()


def _determined(now: Int[np.ndarray, " n"], then: Int[np.ndarray, " n"], action: Int[np.ndarray, " n"]) -> float:
    """The share of next values that are the usual one after this value and action."""
    key = now * (int(action.max()) + 1) + action
    pairs, counts = np.unique(np.stack([key, then], axis=1), axis=0, return_counts=True)
    best: dict[int, int] = {}
    for one, count in zip(pairs[:, 0].tolist(), counts.tolist(), strict=True):
        best[one] = max(best.get(one, 0), count)
    return sum(best.values()) / len(now)


def _rates(moves: Moves, moved: np.ndarray, n_actions: int) -> Float[np.ndarray, " A"]:
    """How often each action does it."""
    taken = np.bincount(moves.action, minlength=n_actions)
    return np.bincount(moves.action[moved], minlength=n_actions) / np.maximum(taken, 1)


def _share(rates: Float[np.ndarray, " A"]) -> Float[np.ndarray, " A"]:
    return rates / max(rates.sum(), 1e-12)


def _movers(rates: Float[np.ndarray, " A"]) -> tuple[int, ...]:
    share = _share(rates)
    return tuple(int(a) for a in np.argsort(-share) if share[a] > 0.02)
