"""Mean correlation coefficient: the score of the nonlinear-ICA literature."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Array, Float, Int, Real
from scipy.stats import rankdata

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
        latents, factors = rankdata(latents, axis=0), rankdata(factors, axis=0)
    correlation = np.abs(unit(latents).T @ unit(factors))
    matching = match(correlation)
    matched = np.flatnonzero(matching >= 0)
    return MCC(float(correlation[matched, matching[matched]].mean()), correlation, matching)


def unit(x: Float[np.ndarray, "n c"]) -> Float[np.ndarray, "n c"]:
    """Centred columns of length 1; 0 where a column's spread is no more than rounding."""
    centred = x - x.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    varies = length > 1e-6 * np.abs(x).max(axis=0) * len(x) ** 0.5
    return centred * np.where(varies, 1 / np.where(varies, length, 1), 0)
