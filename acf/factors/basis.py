"""A basis of the lattice that steps span, and which of them to read states in.

Each step is an axis of its own: so the certificate counts. Where one action does now one step, now another, always the
same way round (a taxi that is empty, then one with a passenger), the same lattice has other bases that are as good:
(taxi, passenger), (passenger, passenger seen from the taxi). We read in the one whose states fill the smallest box.
"""

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from jaxtyping import Float, Int

from acf.factors.moves import Moves
from acf.factors.steps import Step, independent

TOGETHER = 0.03  # share of an action's changes that two steps both must have to count as done by it now and then
ONE_WAY = 0.95  # share of an action's changes along a step that have the same sign
SMALLER = 0.8  # of a box: for less the basis is not changed
WHOLE = 0.5  # of its length: a step may be this far from the nearest whole sum of the basis
SPARSE = 0.002  # share of states below which an outermost level is a misreading


@dataclass(frozen=True, eq=False)
class Basis:
    """Vectors that states are counted in, and the steps in terms of them."""

    vectors: Float[np.ndarray, "m K"]
    to_steps: Int[np.ndarray, "m m"]
    """A change of `n` vectors is one of `n @ to_steps` steps."""
    broken: tuple[int, ...] = ()
    """Actions with a step that is no whole sum of these: the basis is too coarse, or there is no lattice."""


def choose_basis(steps: list[Step], moves: Moves) -> Basis:
    own = independent(steps)
    if not own:
        return Basis(np.zeros((0, moves.z.shape[1])), np.zeros((0, 0), np.int64))
    vectors = np.array([step.vector for step in own])
    inverse = np.linalg.pinv(vectors)
    where = moves.z @ inverse
    where = np.round(where - np.median(where, axis=0)).astype(np.int64)
    times = np.round(moves.change @ inverse).astype(np.int64)
    from_steps = np.eye(len(own), dtype=np.int64)  # levels are `steps @ from_steps`
    while (better := _smaller(where, times, own, moves, from_steps)) is not None:
        from_steps = better
    to_steps = np.round(np.linalg.inv(from_steps)).astype(np.int64)
    # A vector of the new basis is where one of its levels leads: `steps = levels @ to_steps`.
    every = np.array([step.vector for step in steps])
    far = np.linalg.norm(every - np.round(every @ inverse) @ vectors, axis=1) > WHOLE * np.linalg.norm(every, axis=1)
    odd = [step.actions for step, is_far in zip(steps, far, strict=True) if is_far]
    return Basis(to_steps @ vectors, to_steps, tuple(sorted({int(np.argmax(actions)) for actions in odd})))


def _smaller(
    where: Int[np.ndarray, "T m"],
    times: Int[np.ndarray, "T m"],
    steps: list[Step],
    moves: Moves,
    from_steps: Int[np.ndarray, "m m"],
) -> Int[np.ndarray, "m m"] | None:
    """The change of basis that makes the box smallest, if one does. Every axis takes part in one change at most."""
    free = [n for n in range(len(steps)) if (from_steps[n] != 0).sum() == 1 and (from_steps[:, n] != 0).sum() == 1]
    best, least = None, SMALLER
    for p, q in permutations(free, 2):
        sign = _same_way(times, moves, steps, p, q)
        if not sign:
            continue
        shear = np.eye(len(steps), dtype=np.int64)
        shear[q, p] = sign  # level p counts the steps p and q
        before, after = _extent(where[:, p]), _extent((where @ shear)[:, p])
        if after / before < least:
            best, least = from_steps @ shear, after / before
    return best


def _same_way(times: Int[np.ndarray, "T m"], moves: Moves, steps: list[Step], p: int, q: int) -> int:
    """+1 or -1 where actions do now step p, now step q, always with this sign of one to the other; else 0."""
    signs, actions = [], np.flatnonzero(np.minimum(steps[p].actions, steps[q].actions) > TOGETHER)
    for action in actions:
        of_action = times[moves.of_action(int(action))]
        one, other = (np.sign(x[x != 0]).mean() for x in (of_action[:, p], of_action[:, q]))
        if min(abs(one), abs(other)) < 2 * ONE_WAY - 1:
            return 0
        signs.append(int(np.sign(one * other)))
    return signs[0] if signs and len(set(signs)) == 1 else 0


def _extent(values: Int[np.ndarray, " T"]) -> int:
    """The number of levels between the outermost that are not rare."""
    levels, count = np.unique(values, return_counts=True)
    usual = levels[count >= SPARSE * len(values)]
    return int(usual[-1] - usual[0]) + 1 if len(usual) else len(levels)
