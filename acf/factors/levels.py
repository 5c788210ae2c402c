"""Whole numbers from latents: how many steps along each axis of a basis a state lies from the others.

Not by rounding alone: what a layout adds to a latent may be half a step. Where one level ends is where no states lie.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from acf.factors.basis import Basis
from acf.factors.moves import Moves

CONTINUOUS = 0.15  # mean distance to the next whole number: 0.25 where levels mean nothing, about 0.05 where they do
REFITS = 3
VALLEY, BESIDE = 0.3, 0.06  # how far from the middle between levels a bound may lie; and how near to it states count
CANDIDATES = 41
CROSSED = 3  # moves across a bound, below which it bounds nothing
ROUND = 0.95  # share of an axis's own moves that must be one step, or once around, for it to be a ring
PASSED = 5  # moves between each two of its levels, at least


@dataclass(frozen=True, eq=False)
class Levels:
    """Coordinates `z @ weights + offset`, a step apart; levels are the number of bounds below them."""

    weights: Float[np.ndarray, "K m"]
    offset: Float[np.ndarray, " m"]
    bounds: tuple[tuple[float, ...], ...]
    """Of each axis, from below."""
    to_steps: Int[np.ndarray, "m m"]
    """`(levels_next - levels) @ to_steps`: how many of which step a change is."""
    rings: tuple[int, ...]
    """The number of levels of each axis that is closed to a ring; 0 for those that have ends."""
    continuous: bool = False

    def coordinates(self, z: Float[np.ndarray, "n K"]) -> Float[np.ndarray, "n m"]:
        return z @ self.weights + self.offset

    def read(self, z: Float[np.ndarray, "n K"]) -> Int[np.ndarray, "n m"]:
        if not self.bounds:
            return np.zeros((len(z), 0), np.int64)
        columns = zip(self.bounds, self.coordinates(z).T, strict=True)
        return np.stack([np.searchsorted(bounds, column) for bounds, column in columns], axis=1)

    def steps_between(self, now: Int[np.ndarray, "T m"], then: Int[np.ndarray, "T m"]) -> Int[np.ndarray, "T m"]:
        """Once around a ring but one is one step back."""
        change = then - now
        for axis, levels in enumerate(self.rings):
            if levels:
                change[:, axis] = (change[:, axis] + levels // 2) % levels - levels // 2
        return change @ self.to_steps

    def to_json(self) -> dict[str, Any]:
        return {
            "latents": len(self.weights),
            "weights": self.weights.tolist(),
            "offset": self.offset.tolist(),
            "bounds": [list(bounds) for bounds in self.bounds],
            "to_steps": self.to_steps.tolist(),
            "rings": list(self.rings),
            "continuous": self.continuous,
        }

    @staticmethod
    def from_json(found: dict[str, Any]) -> "Levels":
        K, m = int(found["latents"]), len(found["offset"])
        weights = np.array(found["weights"], float).reshape(K, m)
        offset = np.array(found["offset"], float)
        bounds = tuple(tuple(map(float, of_axis)) for of_axis in found["bounds"])
        if len(found["weights"]) != K or {len(found["rings"]), len(bounds)} != {m}:
            raise ValueError(f"expected weights, rings and bounds of {K} latents on {m} axes")
        if not np.isfinite(weights).all() or any(sorted(of_axis) != list(of_axis) for of_axis in bounds):
            raise ValueError("expected finite weights and bounds in order")
        to_steps = np.array(found["to_steps"], np.int64).reshape(m, m)
        rings = tuple(map(int, found["rings"]))
        return Levels(weights, offset, bounds, to_steps, rings, bool(found["continuous"]))


def fit_levels(basis: Basis, moves: Moves) -> Levels:
    """First along the basis, then as the linear map that comes nearest to the whole numbers it gives.

    The second step finds out what layouts add to the latents, and takes it away; the bounds bear with what is left.
    """
    m, z = len(basis.vectors), np.concatenate([moves.z, moves.z_next])
    weights = np.linalg.pinv(basis.vectors)
    levels = Levels(weights, -_fraction(z @ weights), ((),) * m, basis.to_steps, (0,) * m)
    if not m or _error(levels.coordinates(z)) > CONTINUOUS:
        return replace(levels, continuous=True)
    rows = np.concatenate([z, np.ones((len(z), 1))], axis=1)
    for _ in range(REFITS):
        fitted = np.linalg.lstsq(rows, np.round(levels.coordinates(z)), rcond=None)[0]
        levels = replace(levels, weights=fitted[:-1], offset=fitted[-1])
    now, then = levels.coordinates(moves.z), levels.coordinates(moves.z_next)
    levels = replace(levels, bounds=tuple(_bounds(a, b) for a, b in zip(now.T, then.T, strict=True)))
    return replace(levels, rings=_rings(moves, levels.read(moves.z), levels.read(moves.z_next), basis.to_steps))


def _bounds(now: Float[np.ndarray, " T"], then: Float[np.ndarray, " T"]) -> tuple[float, ...]:
    """Between every two whole numbers where the fewest states lie, and farthest from them; none that moves don't cross.

    The search keeps to the middle: levels stay a step apart.
    """
    values = np.sort(np.concatenate([now, then]))
    low, high = np.minimum(now, then), np.maximum(now, then)
    out = []
    for level in range(int(np.round(values[0])), int(np.round(values[-1]))):
        at = level + 0.5 + np.linspace(-VALLEY, VALLEY, CANDIDATES)
        beside = np.searchsorted(values, at + BESIDE) - np.searchsorted(values, at - BESIDE)
        after = np.searchsorted(values, at).clip(1, len(values) - 1)
        gap = np.minimum(np.abs(at - values[after - 1]), np.abs(values[after] - at))
        best = float(at[np.lexsort((-gap, beside))[0]])
        if ((low < best) & (best <= high)).sum() >= CROSSED:
            out.append(best)
    return tuple(out)


def _rings(
    moves: Moves, now: Int[np.ndarray, "T m"], then: Int[np.ndarray, "T m"], to_steps: Int[np.ndarray, "m m"]
) -> tuple[int, ...]:
    """An axis is a ring where its own moves are one step, or lead from one end to the other by the same actions.

    All its levels must be passed, or it is a chain that begins elsewhere, in a wrong order. Without rings a heading of
    four levels would seem to jump by three at every fourth turn.
    """
    change, out = then - now, []
    for axis in range(now.shape[1]):
        alone = (change[:, axis] != 0) & (np.delete(change, axis, axis=1) == 0).all(1)
        size, levels = np.abs(change[alone, axis]), int(max(now[:, axis].max(), then[:, axis].max())) + 1
        around, one = size == levels - 1, size == 1
        plain = not np.delete(to_steps[axis], axis).any() and not np.delete(to_steps[:, axis], axis).any()
        movers = moves.action[alone]
        by_both = np.isin(movers[around], np.unique(movers[one])).mean() if around.any() else 0.0
        lower = np.minimum(now[alone, axis], then[alone, axis])[one]
        passed = np.append(np.bincount(lower, minlength=levels - 1), around.sum())
        closed = levels > 2 and passed.min() >= PASSED and (around | one).mean() >= ROUND and by_both >= ROUND
        out.append(levels if closed and plain else 0)
    return tuple(out)


def _fraction(x: Float[np.ndarray, "n m"]) -> Float[np.ndarray, " m"]:
    """The part behind the point that most values share: a mean on the circle."""
    return np.angle(np.exp(2j * np.pi * x).mean(0)) / (2 * np.pi)


def _error(x: Float[np.ndarray, "n m"]) -> float:
    return float(np.abs(x - np.round(x)).mean())
