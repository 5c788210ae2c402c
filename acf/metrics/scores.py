"""The paper's two scores of an R² matrix."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, Bool, Float, Int

from acf.metrics.matching import match

SCORES = ("diag", "off_diag", "diag_controllable", "off_diag_controllable")


@dataclass(frozen=True, eq=False)
class Scores:
    """One member's R² matrix (rows latents, columns factors), its matching and what follows from them.

    `diag` (best 1) is the mean R² of the matched pairs; `off_diag` (best 0) is the mean, over the matched latents, of
    the largest R² with any other factor. The `_controllable` ones take only the latents matched to a controllable
    factor, under the same matching and against every other factor; None when there is none or no mask was given.
    """

    r2: Float[np.ndarray, "d K"]
    matching: Int[np.ndarray, " d"]
    diag: float
    off_diag: float
    diag_controllable: float | None
    off_diag_controllable: float | None


def score(
    r2: Float[Array | np.ndarray, "d K"],
    controllable: Bool[Array | np.ndarray, " K"] | Sequence[bool] | None = None,
    *,
    matching: Int[np.ndarray, " d"] | None = None,
) -> Scores:
    """The scores of one R² matrix, under its best matching or the one given.

    >>> scores = score(np.array([[0.1, 0.9], [0.8, 0.2]]), controllable=[True, False])
    >>> round(scores.diag, 3), round(scores.off_diag, 3)
    (0.85, 0.15)
    >>> scores.diag_controllable, scores.off_diag_controllable
    (0.8, 0.2)
    """
    r2 = np.asarray(r2).clip(min=0)
    if r2.ndim != 2 or not r2.size:
        raise ValueError(f"r2 must be [latents, factors] and not empty, got shape {r2.shape}")
    matching = match(r2) if matching is None else matching
    latents = np.flatnonzero(matching >= 0)
    own = r2[latents, matching[latents]]
    # The matched factor's place gets 0, the smallest R²; with one factor only that 0 is left.
    others = r2[latents].copy()
    others[np.arange(len(latents)), matching[latents]] = 0
    leak = others.max(axis=1)
    chosen = _mask(controllable, r2.shape[1])[matching[latents]]
    return Scores(
        r2=r2,
        matching=matching,
        diag=float(own.mean()),
        off_diag=float(leak.mean()),
        diag_controllable=_mean(own[chosen]),
        off_diag_controllable=_mean(leak[chosen]),
    )


def summary(members: Sequence[Scores]) -> dict[str, dict[str, float] | None]:
    """Mean and standard deviation over the members of each score that is a number; None for one that they lack.

    >>> summary([score(np.eye(2)), score(np.zeros((2, 2)))])["diag"]
    {'mean': 0.5, 'std': 0.5}
    """
    names = [name for name, value in vars(members[0]).items() if value is None or isinstance(value, float)]
    return {name: mean_std([getattr(member, name) for member in members]) for name in names}


def _mask(controllable: Bool[Array | np.ndarray, " K"] | Sequence[bool] | None, K: int) -> Bool[np.ndarray, " K"]:
    mask = np.zeros(K, bool) if controllable is None else np.asarray(controllable, bool)
    if mask.shape != (K,):
        raise ValueError(f"controllable must have one entry for each of the {K} factors, got shape {mask.shape}")
    return mask


def _mean(values: Float[np.ndarray, " n"]) -> float | None:
    return float(values.mean()) if len(values) else None


def mean_std(values: Sequence[float | None]) -> dict[str, float] | None:
    """Of the values that are there."""
    present = [value for value in values if value is not None]
    return {"mean": float(np.mean(present)), "std": float(np.std(present))} if present else None
