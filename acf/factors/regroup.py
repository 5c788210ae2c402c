"""From levels to factors: what a certificate leaves free is settled by which actions move what.

A chain of levels may hold two factors, one after the other (a key, then a door): it is cut where other actions take
over. A chain or a cycle may be spread over several axes (a heading as two bits): they are joined where together they
are a line on which neighbouring moves are done by the same actions. What neither settles is a doubt.
"""

from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from acf.factors.line import find_line
from acf.factors.moves import Moves

ALIKE = 0.3  # overlap of the actions that cross two neighbouring levels, from which on they are of one factor
SHARED = 0.5  # of the actions of axes that may be one factor
OFTEN = 0.1  # share of the crossings of a level, by rate, of an action that is not there by a misreading
BACK = 0.02  # share of crossings the other way up to which a level is passed one way only
FEW = 3  # crossings of a level, visits of a value, below which it says nothing
MOST_AXES = 4  # of one factor, where an action moves several; alone it may have any number


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
    """A controllable factor: a piece of an axis, or a line over several."""

    pieces: tuple[Piece, ...]
    actions: tuple[int, ...]
    """Those that move it, the most often first."""
    cycle: bool = False
    """Whether its last level is next to the first."""
    orbit: tuple[tuple[int, ...], ...] = ()
    """Of a line over several pieces: their values, in its order."""

    def read(self, levels: Int[np.ndarray, "n m"]) -> Int[np.ndarray, " n"]:
        """Its value, from 0; -1 for values of its pieces that its line does not have."""
        values = [piece.read(levels) for piece in self.pieces]
        if not self.orbit:
            return values[0]
        place = {value: n for n, value in enumerate(self.orbit)}
        return np.array([place.get(value, -1) for value in zip(*(v.tolist() for v in values), strict=True)], np.int64)

    @property
    def levels(self) -> int:
        return len(self.orbit) or self.pieces[0].high - self.pieces[0].low + 1

    def describe(self, action_names: tuple[str, ...]) -> str:
        """In words: `moved by left, right; 5 levels`."""
        movers = ", ".join(action_names[a] for a in self.actions) or "nothing"
        return f"moved by {movers}; {'cycle of ' if self.cycle else ''}{self.levels}{'' if self.cycle else ' levels'}"

    def to_json(self) -> dict[str, Any]:
        pieces = [[piece.axis, piece.low, piece.high] for piece in self.pieces]
        orbit = [list(value) for value in self.orbit]
        return {"pieces": pieces, "actions": list(self.actions), "cycle": self.cycle, "orbit": orbit}

    @staticmethod
    def from_json(found: dict[str, Any]) -> "Factor":
        pieces = tuple(Piece(*map(int, piece)) for piece in found["pieces"])
        orbit = tuple(tuple(map(int, value)) for value in found["orbit"])
        return Factor(pieces, tuple(map(int, found["actions"])), bool(found["cycle"]), orbit)


def regroup(
    moves: Moves,
    now: Int[np.ndarray, "T m"],
    then: Int[np.ndarray, "T m"],
    rings: tuple[int, ...],
    n_actions: int,
) -> tuple[tuple[Factor, ...], tuple[str, ...]]:
    """The factors of a code of whole numbers, from transitions alone, and what speaks against them."""
    pieces, doubts = [], []
    for axis, levels in enumerate(rings):
        cut, even = _cut(moves, now[:, axis], then[:, axis], axis, levels, n_actions)
        pieces += cut
        if _one_way_by_many(moves, now[:, axis], then[:, axis], n_actions):
            doubts.append(f"axis {axis} goes one way only, moved by several actions: it may be several factors")
        if levels and not even:
            doubts.append(f"axis {axis} is a ring that different actions move at different places")
    values = [(piece.read(now), piece.read(then)) for piece in pieces]
    rates = [_rates(moves, a != b, n_actions) for a, b in values]
    factors: list[Factor] = []
    free = set(range(len(pieces)))
    for joined in _candidates(rates):
        if not joined <= free:
            continue
        members = sorted(joined)
        one, next_ = (np.stack([values[p][side] for p in members], axis=1) for side in (0, 1))
        line = find_line(moves, one, next_, FEW, ALIKE)
        if line is not None:
            total = np.sum([rates[p] for p in members], axis=0)
            factors.append(Factor(tuple(pieces[p] for p in members), _movers(total), line.cycle, line.values))
            free -= joined
    factors += [Factor((pieces[p],), _movers(rates[p]), bool(rings[pieces[p].axis])) for p in free]
    factors.sort(key=lambda factor: (factor.pieces[0].axis, factor.pieces[0].low))
    return tuple(factors), (*doubts, *_never_apart(factors, moves, now, then, n_actions))


def _cut(
    moves: Moves, now: Int[np.ndarray, " T"], then: Int[np.ndarray, " T"], axis: int, ring: int, n_actions: int
) -> tuple[list[Piece], bool]:
    """An axis between its levels, wherever other actions cross from one to the next than crossed before.

    A ring stays whole; whether the same actions move it everywhere is the second answer.
    """
    low, high = np.minimum(now, then), np.maximum(now, then)
    one = high - low == 1
    runs: list[tuple[Float[np.ndarray, " A"], list[int]]] = []
    for level in range(low.min(), high.max()):
        crossed = one & (low == level)
        if crossed.sum() < FEW:
            continue
        by = _share(_rates(moves, crossed, n_actions))
        if runs and np.minimum(by, runs[-1][0]).sum() > ALIKE:
            runs[-1][1].append(level)
        else:
            runs.append((by, [level]))
    if ring:
        return [Piece(axis, 0, ring - 1)], len(runs) == 1
    return [Piece(axis, run[0], run[-1] + 1) for _, run in runs], True


def _one_way_by_many(moves: Moves, now: Int[np.ndarray, " T"], then: Int[np.ndarray, " T"], n_actions: int) -> bool:
    """Whether several actions cross a level the same way and none ever comes back.

    Then no episode shows what would tell them apart: two factors that only fall, added up, fall by one at every move.
    """
    lower = np.minimum(now, then)
    for level in np.unique(lower[np.abs(then - now) == 1]):
        crossed = (lower == level) & (np.abs(then - now) == 1) & moves.changed
        up = int((then[crossed] > level).sum())
        if min(up, crossed.sum() - up) <= BACK * crossed.sum():
            by = _share(_rates(moves, crossed, n_actions))
            times = np.bincount(moves.action[crossed], minlength=n_actions)
            if ((by > OFTEN) & (times >= FEW)).sum() > 1:
                return True
    return False


def _candidates(rates: list[Float[np.ndarray, " A"]]) -> list[frozenset[int]]:
    """Pieces that may be one factor, since the same actions move them: few first, then all that hang together."""
    n = len(rates)
    near = np.array([[_overlap(rates[p], rates[q]) >= SHARED for q in range(n)] for p in range(n)]).reshape(n, n)
    groups: list[set[int]] = []
    for p in range(n):
        touching = [group for group in groups if near[p, sorted(group)].any()]
        groups = [group for group in groups if group not in touching] + [{p}.union(*touching)]
    small = chain.from_iterable(
        combinations(sorted(group), size) for group in groups for size in range(2, min(len(group), MOST_AXES) + 1)
    )
    sets = [frozenset(group) for group in groups if len(group) > 1] + [frozenset(members) for members in small]
    return list(dict.fromkeys(sets))


def _never_apart(
    factors: list[Factor], moves: Moves, now: Int[np.ndarray, "T m"], then: Int[np.ndarray, "T m"], n_actions: int
) -> list[str]:
    """Factors that the same actions move, but that never were at two values each in all four ways.

    Nothing shows that they are two: any world that is a tree can be coded with an axis for each of its moves.
    """
    read = [(factor.read(now), factor.read(then)) for factor in factors]
    rates = [_rates(moves, a != b, n_actions) for a, b in read]
    out = []
    for p, q in combinations(range(len(factors)), 2):
        if _overlap(rates[p], rates[q]) < ALIKE:
            continue
        known = (read[p][0] >= 0) & (read[q][0] >= 0)
        seen = np.zeros((factors[p].levels, factors[q].levels))
        np.add.at(seen, (read[p][0][known], read[q][0][known]), 1)
        often = seen >= FEW
        if not (often[1:, 1:] & often[1:, :-1] & often[:-1, 1:] & often[:-1, :-1]).any():
            out.append(f"nothing shows that factors {p} and {q} are two: the same actions move them, never apart")
    return out


def _rates(moves: Moves, moved: np.ndarray, n_actions: int) -> Float[np.ndarray, " A"]:
    """How often each action does it."""
    taken = np.bincount(moves.action, minlength=n_actions)
    return np.bincount(moves.action[moved & moves.changed], minlength=n_actions) / np.maximum(taken, 1)


def _share(rates: Float[np.ndarray, " A"]) -> Float[np.ndarray, " A"]:
    return rates / max(rates.sum(), 1e-12)


def _overlap(one: Float[np.ndarray, " A"], other: Float[np.ndarray, " A"]) -> float:
    return float(np.minimum(_share(one), _share(other)).sum())


def _movers(rates: Float[np.ndarray, " A"]) -> tuple[int, ...]:
    share = _share(rates)
    return tuple(int(a) for a in np.argsort(-share, kind="stable") if share[a] > 0.02)
