"""The R² matrix: how much of each factor can be read from each latent alone."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float, Real

from acf.metrics.checks import check_columns, check_finite
from acf.metrics.regressors import fit, predict

_WIDTH = 32

_SPLITS = ("fit", "val", "test")

# A column whose spread is no more than float32 rounding of its values holds no information.
_CONSTANT = 1e-6


class HeldOutErrors(NamedTuple):
    """What the regressors leave unexplained, row by row of the test split, in units of the factors given."""

    squared: Float[np.ndarray, "n_test L K"]
    s: Float[np.ndarray, "n_test K"]
    known: Bool[np.ndarray, "L K"]
    """False where the latent or the factor is constant in the fit split; `squared` is then that of the fit's mean."""


def r2_matrix(
    z_fit: Real[Array | np.ndarray, "*members n_fit d"],
    s_fit: Real[Array | np.ndarray, "n_fit K"],
    z_val: Real[Array | np.ndarray, "*members n_val d"],
    s_val: Real[Array | np.ndarray, "n_val K"],
    z_test: Real[Array | np.ndarray, "*members n_test d"],
    s_test: Real[Array | np.ndarray, "n_test K"],
    *,
    seed: int = 0,
) -> Float[np.ndarray, "*members d K"]:
    """R² on the test split of one MLP regressor h_ij(z_i) -> s_j per latent and factor, clipped at 0.

    Each regressor sees one latent and one factor, is trained on the fit split and keeps the weights with the lowest
    validation error. All start from the same random weights and see the same minibatches, so an entry depends on its
    own pair and the seed, not on its place or its neighbours. Constant latents and constant factors give 0.
    """
    r2 = r2_of(held_out_errors((z_fit, z_val, z_test), (s_fit, s_val, s_test), seed=seed))
    *members, _, d = np.shape(z_fit)
    return r2.reshape(*members, d, -1).astype(np.float32)


def held_out_errors(
    z: Sequence[Real[Array | np.ndarray, "*members n d"]],
    s: Sequence[Real[Array | np.ndarray, "n K"]],
    *,
    seed: int = 0,
) -> HeldOutErrors:
    """Squared test errors of the regressors of `r2_matrix`; `z` and `s` are the fit, validation and test splits."""
    columns = [_as_columns(f"z_{split}", x) for split, x in zip(_SPLITS, z, strict=True)]
    factors = [check_columns(f"s_{split}", x, "factor") for split, x in zip(_SPLITS, s, strict=True)]
    for split, z_split, s_split in zip(_SPLITS, columns, factors, strict=True):
        if len(z_split) != len(s_split):
            raise ValueError(f"z_{split} has {len(z_split)} rows, s_{split} has {len(s_split)}")
    columns, z_varies = standardise(columns)
    standard, s_varies = standardise(factors)
    each = [x.T[:, :, None] for x in columns]  # a latent is an input of its own: [L, n, 1]
    params = fit(each[0], standard[0], each[1], standard[1], width=_WIDTH, seed=seed)
    known = z_varies[:, None] & s_varies
    s_hat = np.where(known, predict(params, each[2]), 0) * factors[0].std(axis=0) + factors[0].mean(axis=0)
    return HeldOutErrors((s_hat - factors[2][:, None]) ** 2, factors[2], known)


def r2_of(
    errors: HeldOutErrors, rows: Real[np.ndarray, "*draws n_test"] | None = None
) -> Float[np.ndarray, "*draws L K"]:
    """R², clipped at 0; with `rows`, how often each test row counts in each draw of a bootstrap."""
    squared, s, known = errors
    rows = np.ones(len(s)) if rows is None else rows
    total = rows.sum(-1)[..., None]
    error = np.tensordot(rows, squared, 1) / total[..., None]
    s = s - s.mean(axis=0)  # else a large offset drowns the variance
    variance = (rows @ s**2 / total - (rows @ s / total) ** 2)[..., None, :]
    known = known & (variance > (_CONSTANT * np.abs(errors.s).max(axis=0)) ** 2)
    return np.where(known, 1 - error / np.where(known, variance, 1), 0).clip(min=0)


def _as_columns(name: str, z: Real[Array | np.ndarray, "*members n d"]) -> Float[np.ndarray, "n L"]:
    """The latents of all members side by side: to a regressor a member is only some more columns."""
    z = np.asarray(z, np.float64)
    if z.ndim < 2 or not z.size:
        raise ValueError(f"{name} must be [..., rows, latents] and not empty, got shape {z.shape}")
    z = np.moveaxis(z, -2, 0).reshape(z.shape[-2], -1)
    check_finite(name, z, "latent")
    return z


def standardise(splits: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    """Zero mean and unit variance by the fit split (constant columns become 0), and which columns vary in it."""
    fit = splits[0]
    mean, std = fit.mean(axis=0), fit.std(axis=0)
    varies = std > _CONSTANT * np.abs(fit).max(axis=0)
    scale = np.where(varies, 1 / np.where(varies, std, 1), 0)
    return [((x - mean) * scale).astype(np.float32) for x in splits], varies
