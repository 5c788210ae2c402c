"""Checks on incoming arrays: each says what was expected and what was found."""

import numpy as np
from jaxtyping import Array, Float, Real


def check_columns(name: str, x: Real[Array | np.ndarray, "n c"], column: str) -> Float[np.ndarray, "n c"]:
    """`x` as float64, after the check that it is a finite, non-empty matrix."""
    x = np.asarray(x, np.float64)
    if x.ndim != 2 or not x.size:
        raise ValueError(f"{name} must be [rows, {column}s] and not empty, got shape {x.shape}")
    check_finite(name, x, column)
    return x


def check_finite(name: str, x: Real[np.ndarray, "n c"], column: str) -> None:
    """Raise a ValueError that names the first column with a NaN or an infinity."""
    bad = ~np.isfinite(x)
    if bad.any():
        c = int(bad.any(axis=0).argmax())
        raise ValueError(f"{name}: {column} {c} is not finite in {bad[:, c].sum()} of {len(x)} rows")


def check_same_rows(**arrays: np.ndarray) -> None:
    """Raise a ValueError that gives the rows of each array where they differ."""
    if len({len(x) for x in arrays.values()}) > 1:
        raise ValueError(", ".join(f"{name} has {len(x)} rows" for name, x in arrays.items()))
