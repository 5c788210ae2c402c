"""Mean correlation coefficient: the score of the nonlinear-ICA literature."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Array, Float, Int, Real

from acf.metrics.checks import check_columns, check_same_rows
from acf.metrics.matching import match


@dataclass(frozen=True, eq=False)
class MCC:
    """`value` is the mean of |correlation| over the matched pairs, whose total is the largest."""

    value: float
    correlation: Float[np.ndarray, "d K"]
    matching: Int[np.ndarray, " d"]


def mcc(
    z: Real[Array | np.ndarray, "n d"],
    s: Real[Array | np.ndarray, "n K"],
    kind: Literal["pearson", "spearman"] = "pearson",
) -> MCC:
    """MCC of latents `z` with factors `s`: Pearson asks for linear codes, Spearman for monotone ones.

    A constant latent or factor correlates with nothing. With d ≠ K the mean is over the min(d, K) matched pairs.

    >>> s = np.array([[0.0, 3.0], [1.0, 1.0], [2.0, 2.0], [3.0, 0.0]])
    >>> round(mcc(-s[:, ::-1], s).value, 6)
    1.0
    >>> round(mcc(s**9, s, "spearman").value, 6)
    1.0
    """
    latents, factors = check_columns("z", z, "latent"), check_columns("s", s, "factor")
    check_same_rows(z=latents, s=factors)
    if kind == "spearman":
        latents, factors = ranks(latents), ranks(factors)
    correlation = np.abs(unit(latents).T @ unit(factors))
    matching = match(correlation)
    matched = np.flatnonzero(matching >= 0)
    return MCC(float(correlation[matched, matching[matched]].mean()), correlation, matching)


def ranks(x: Float[np.ndarray, "n c"]) -> Float[np.ndarray, "n c"]:
    """Of each column's values from 1 on; equal ones share the mean of theirs. (`scipy.stats` takes long to import.)

    >>> ranks(np.array([[5.0], [2.0], [2.0], [7.0]])).T
    array([[3. , 1.5, 1.5, 4. ]])
    """
    return np.stack([_ranks(column) for column in x.T]).T


def _ranks(x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[place]


def unit(x: Float[np.ndarray, "n c"]) -> Float[np.ndarray, "n c"]:
    """Centred columns of length 1; 0 where a column's spread is no more than rounding."""
    centred = x - x.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    varies = length > 1e-6 * np.abs(x).max(axis=0) * len(x) ** 0.5
    return centred * np.where(varies, 1 / np.where(varies, length, 1), 0)
