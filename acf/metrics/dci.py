"""Disentanglement, completeness and informativeness (Eastwood and Williams, 2018).

The regressors are MLPs that see all latents, as those of the R² matrix see one. How much a regressor relies on a latent
is measured rather than read from its weights: the rise of its test error when the latent is shuffled over the rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, Float, Real

from acf.metrics.regression import standardise
from acf.metrics.regressors import fit, predict

_WIDTH = 64

# Less than this share of a factor's variance, predicted or lost by a shuffle, is the regressor's own unrest. The first
# two scores are free of scale: without this, noise would have some.
_UNREST = 1e-2


@dataclass(frozen=True, eq=False)
class DCI:
    """Each from 0 to 1, 1 is best.

    `disentanglement`: each latent matters for one factor only; `completeness`: each factor needs one latent only, both
    averaged by how much the latent or factor matters; `informativeness`: mean held-out R² of the factors from all
    latents together. `importance` holds what the first two follow from.
    """

    disentanglement: float
    completeness: float
    informativeness: float
    importance: Float[np.ndarray, "d K"]


def dci(
    z: Sequence[Sequence[Real[Array | np.ndarray, "n d"]]],
    s: Sequence[Real[Array | np.ndarray, "n K"]],
    *,
    seed: int = 0,
) -> list[DCI]:
    """The DCI of several codes at once; `s` is the factors' fit, validation and test split, each code of `z` its own.

    Codes may differ in their number of latents.
    """
    sizes = [np.shape(code[0])[1] for code in z]
    # The narrower codes get columns of 0, which tell nothing.
    padded = [_pad(standardise([np.asarray(x, np.float64) for x in code])[0], max(sizes)) for code in z]
    z_fit, z_val, z_test = (np.stack(split) for split in zip(*padded, strict=True))
    (s_fit, s_val, s_test), s_varies = standardise([np.asarray(x, np.float64) for x in s])
    params = fit(z_fit, s_fit, z_val, s_val, width=_WIDTH, seed=seed)

    variance = s_test.var(axis=0, dtype=np.float64)
    known = s_varies & (variance > 0)
    scale = np.where(known, 1 / np.where(known, variance, 1), 0)

    def error(z: np.ndarray) -> Float[np.ndarray, "codes K"]:
        return ((predict(params, z) - s_test[:, None]) ** 2).mean(axis=0) * scale

    own = error(z_test)
    order = np.random.default_rng(seed).permutation(len(s_test))
    rise = np.stack([error(_shuffled(z_test, k, order)) - own for k in range(max(sizes))], axis=1)  # [codes, d, K]
    informative = np.where(known, 1 - own, 0).clip(min=0).mean(axis=1)
    importance = np.where((rise > _UNREST) & (1 - own > _UNREST)[:, None], rise, 0)
    return [dci_of(importance[n, :d], float(informative[n])) for n, d in enumerate(sizes)]


def dci_of(importance: Float[Array | np.ndarray, "d K"], informativeness: float) -> DCI:
    """The scores of an importance matrix (rows latents, columns factors, no entry below 0).

    >>> result = dci_of(np.array([[1.0, 0.0], [0.0, 3.0], [0.0, 3.0]]), 0.9)
    >>> result.disentanglement
    1.0
    >>> round(result.completeness, 3)  # the second factor needs two of three latents
    0.459
    """
    importance = np.asarray(importance, np.float64)
    if importance.ndim != 2 or not importance.size or (importance < 0).any():
        raise ValueError(f"importance must be [latents, factors], not empty and not below 0, got {importance}")
    return DCI(_specialised(importance), _specialised(importance.T), informativeness, importance)


def _specialised(importance: Float[np.ndarray, "rows columns"]) -> float:
    """1 - entropy of each row over the columns, averaged by the rows' share of the total; 0 where that is 0."""
    total = importance.sum()
    if not total:
        return 0.0
    rows = importance.sum(axis=1)
    p = importance / np.where(rows, rows, 1)[:, None]
    entropy = -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1) / np.log(max(importance.shape[1], 2))
    return float((rows / total * (1 - entropy)).sum())


def _pad(splits: list[np.ndarray], width: int) -> list[np.ndarray]:
    return [np.pad(x, [(0, 0), (0, width - x.shape[1])]) for x in splits]


def _shuffled(z: Float[np.ndarray, "codes n d"], k: int, order: np.ndarray) -> Float[np.ndarray, "codes n d"]:
    z = z.copy()
    z[:, :, k] = z[:, order, k]
    return z
