"""Whole numbers from latents: how many steps along each axis of the basis a state lies from the others."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from acf.factors.steps import Basis

CONTINUOUS = 0.15  # mean distance to the next whole number: 0.25 where levels mean nothing, about 0.05 where they do
REFITS = 3


@dataclass(frozen=True, eq=False)
class Levels:
    """`round(z @ weights + offset)`; in a world that moves continuously, the coordinates before rounding."""

    weights: Float[np.ndarray, "K m"]
    offset: Float[np.ndarray, " m"]
    continuous: bool = False

    def coordinates(self, z: Float[np.ndarray, "n K"]) -> Float[np.ndarray, "n m"]:
        return z @ self.weights + self.offset

    def read(self, z: Float[np.ndarray, "n K"]) -> Int[np.ndarray, "n m"]:
        return np.round(self.coordinates(z)).astype(np.int64)


def fit_levels(basis: Basis, z: Float[np.ndarray, "n K"]) -> Levels:
    """First along the basis, then as the linear map that comes nearest to the whole numbers it gives.

    The second step finds out what layouts add to the latents, and takes it away.
    """
    weights = np.linalg.pinv(basis.vectors)
    offset = -_fraction(z @ weights)
    errors = _error(z @ weights + offset)
    if errors > CONTINUOUS:
        return Levels(weights, offset, continuous=True)
    rows = np.concatenate([z, np.ones((len(z), 1))], axis=1)
    for _ in range(REFITS):
        whole = np.round(z @ weights + offset)
        fitted = np.linalg.lstsq(rows, whole, rcond=None)[0]
        weights, offset = fitted[:-1], fitted[-1]
    whole = np.round(z @ weights + offset)
    return Levels(weights, offset - whole.min(0))


def _fraction(x: Float[np.ndarray, "n m"]) -> Float[np.ndarray, " m"]:
    """The part behind the point that most values share: a mean on the circle."""
    return np.angle(np.exp(2j * np.pi * x).mean(0)) / (2 * np.pi)


def _error(x: Float[np.ndarray, "n m"]) -> float:
    return float(np.abs(x - np.round(x)).mean())
