"""The R² matrix: how much of each factor can be read from each latent alone."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import random
from jaxtyping import Array, Bool, Float, Key, Real

# Chosen on codes that are hard to read: shuffled levels, levels crowded by a tanh, staircases. All of them reach 0.99,
# while a leak of a tenth of a level's spacing stays unread, which a rank transform of the latent would pick up.
_WIDTH = 32
_STEPS = 2_000
_CHECK_EVERY = 100
_BATCH = 128
_LEARNING_RATE = 1e-2
_KNOT_SLOPE = 3.0

_SPLITS = ("fit", "val", "test")

# A column whose spread is no more than float32 rounding of its values holds no information.
_CONSTANT = 1e-6


class _MLP(NamedTuple):
    """One regressor h: R -> R; stacks of them carry leading [L, K] axes (latents, factors)."""

    w1: Array
    b1: Array
    w2: Array
    b2: Array
    w3: Array
    b3: Array


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
    s = [_as_factors(f"s_{split}", x) for split, x in zip(_SPLITS, (s_fit, s_val, s_test), strict=True)]
    z = [_as_columns(f"z_{split}", x) for split, x in zip(_SPLITS, (z_fit, z_val, z_test), strict=True)]
    for split, z_split, s_split in zip(_SPLITS, z, s, strict=True):
        if len(z_split) != len(s_split):
            raise ValueError(f"z_{split} has {len(z_split)} rows, s_{split} has {len(s_split)}")
    (z, z_varies), (s, s_varies) = _standardise(z), _standardise(s)
    knots = np.quantile(z[0], (np.arange(_WIDTH) + 0.5) / _WIDTH, axis=0).astype(np.float32)
    error = np.asarray(_fit_and_test(random.key(seed), knots, *z, *s), np.float64)

    variance = s[2].var(axis=0, dtype=np.float64)
    known = z_varies[:, None] & s_varies & (variance > _CONSTANT**2)
    r2 = np.where(known, 1 - error / np.where(known, variance, 1), 0).clip(min=0)
    *members, _, d = np.shape(z_fit)
    return r2.reshape(*members, d, -1).astype(np.float32)


def check_finite(name: str, x: Real[np.ndarray, "n c"], column: str) -> None:
    """Raise a ValueError that names the first column with a NaN or an infinity."""
    bad = ~np.isfinite(x)
    if bad.any():
        c = int(bad.any(axis=0).argmax())
        raise ValueError(f"{name}: {column} {c} is not finite in {bad[:, c].sum()} of {len(x)} rows")


def _as_factors(name: str, s: Real[Array | np.ndarray, "n K"]) -> Float[np.ndarray, "n K"]:
    s = np.asarray(s, np.float64)
    if s.ndim != 2 or not s.size:
        raise ValueError(f"{name} must be [rows, factors] and not empty, got shape {s.shape}")
    check_finite(name, s, "factor")
    return s


def _as_columns(name: str, z: Real[Array | np.ndarray, "*members n d"]) -> Float[np.ndarray, "n L"]:
    """The latents of all members side by side: to a regressor a member is only some more columns."""
    z = np.asarray(z, np.float64)
    if z.ndim < 2 or not z.size:
        raise ValueError(f"{name} must be [..., rows, latents] and not empty, got shape {z.shape}")
    z = np.moveaxis(z, -2, 0).reshape(z.shape[-2], -1)
    check_finite(name, z, "latent")
    return z


def _standardise(splits: list[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    """Zero mean and unit variance by the fit split (constant columns become 0), and which columns vary in it."""
    fit = splits[0]
    mean, std = fit.mean(axis=0), fit.std(axis=0)
    varies = std > _CONSTANT * np.abs(fit).max(axis=0)
    scale = np.where(varies, 1 / np.where(varies, std, 1), 0)
    return [((x - mean) * scale).astype(np.float32) for x in splits], varies


@jax.jit
def _fit_and_test(
    key: Key[Array, ""],
    knots: Float[Array, "width L"],
    z_fit: Float[Array, "n_fit L"],
    z_val: Float[Array, "n_val L"],
    z_test: Float[Array, "n_test L"],
    s_fit: Float[Array, "n_fit K"],
    s_val: Float[Array, "n_val K"],
    s_test: Float[Array, "n_test K"],
) -> Float[Array, "L K"]:
    """Mean squared test error of each early-stopped regressor."""
    init_key, batch_key = random.split(key)
    params = _init(init_key, knots, s_fit.shape[1])
    optimiser = optax.adam(optax.cosine_decay_schedule(_LEARNING_RATE, _STEPS))

    def step(carry, key):
        params, state = carry
        rows = random.randint(key, (_BATCH,), 0, len(z_fit))
        gradient = jax.grad(_loss)(params, z_fit[rows], s_fit[rows])
        updates, state = optimiser.update(gradient, state)
        return (jax.tree.map(jnp.add, params, updates), state), None

    def steps_then_check(carry, keys):
        params, state, best, best_error = carry
        (params, state), _ = jax.lax.scan(step, (params, state), keys)
        error = _errors(params, z_val, s_val)
        best = jax.tree.map(partial(_where, error < best_error), params, best)
        return (params, state, best, jnp.minimum(error, best_error)), None

    keys = random.split(batch_key, (_STEPS // _CHECK_EVERY, _CHECK_EVERY))
    carry = (params, optimiser.init(params), params, _errors(params, z_val, s_val))
    (_, _, best, _), _ = jax.lax.scan(steps_then_check, carry, keys)
    return _errors(best, z_test, s_test)


def _init(key: Key[Array, ""], knots: Float[Array, "width L"], K: int) -> _MLP:
    """The same random weights for every regressor, except that each first unit bends at a quantile of its latent.

    Units so spread resolve levels that crowd together. The output starts at 0, which is the fit split's mean.
    """
    sign_key, hidden_key = random.split(key)
    w1 = _KNOT_SLOPE * random.rademacher(sign_key, (_WIDTH,), jnp.float32)
    w2 = random.normal(hidden_key, (_WIDTH, _WIDTH), jnp.float32) * jnp.float32((2 / _WIDTH) ** 0.5)
    zeros = jnp.zeros(_WIDTH, jnp.float32)

    def one(knots):
        return _MLP(w1, -w1 * knots, w2, zeros, zeros, jnp.float32(0))

    per_latent = jax.vmap(one, in_axes=1)(knots)
    return jax.tree.map(lambda x: jnp.repeat(x[:, None], K, axis=1), per_latent)


def _mlp(params: _MLP, z: Float[Array, " n"]) -> Float[Array, " n"]:
    # "highest": a GPU would round these small products to TF32, and its scores would differ from a CPU's.
    h = jnp.tanh(z[:, None] * params.w1 + params.b1)
    h = jnp.tanh(jnp.dot(h, params.w2, precision="highest") + params.b2)
    return jnp.dot(h, params.w3, precision="highest") + params.b3


def _latent_errors(params: _MLP, z: Float[Array, " n"], s: Float[Array, "n K"]) -> Float[Array, " K"]:
    """Mean squared errors of the regressors that share one latent."""
    s_hat = jax.vmap(_mlp, in_axes=(0, None), out_axes=1)(params, z)
    return jnp.mean((s_hat - s) ** 2, axis=0)


def _loss(params: _MLP, z: Float[Array, "N L"], s: Float[Array, "N K"]) -> Float[Array, ""]:
    # A sum, and Adam works entry by entry: no regressor feels another.
    return jnp.sum(jax.vmap(_latent_errors, in_axes=(0, 1, None))(params, z, s))


def _errors(params: _MLP, z: Float[Array, "n L"], s: Float[Array, "n K"]) -> Float[Array, "L K"]:
    # One latent at a time: a whole split for every regressor at once would fill the memory with hidden units.
    return jax.lax.map(lambda latent: _latent_errors(latent[0], latent[1], s), (params, z.T))


def _where(better: Bool[Array, "L K"], new: Array, old: Array) -> Array:
    return jnp.where(better.reshape(better.shape + (1,) * (new.ndim - 2)), new, old)
