"""Many small MLP regressors at once: fitted in one compiled scan, each early-stopped by itself."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import random
from jaxtyping import Array, Bool, Float, Key

# Chosen on codes that are hard to read: shuffled levels, levels crowded by a tanh, staircases. All of them reach 0.99,
# while a leak of a tenth of a level's spacing stays unread, which a rank transform of the latent would pick up.
_STEPS = 1_000
_CHECK_EVERY = 50
_BATCH = 128
_LEARNING_RATE = 1e-2
_KNOT_SLOPE = 3.0


# A GPU would spend most of its time choosing among kernels for these small products: 8 s against 3 s on an H200, of
# which 0.3 s are work. Other devices take no notice.
_jit = partial(jax.jit, compiler_options={"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False})


class MLP(NamedTuple):
    """One regressor h: R^c -> R; stacks of them carry leading [L, K] axes (inputs, factors)."""

    w1: Array
    b1: Array
    w2: Array
    b2: Array
    w3: Array
    b3: Array


def fit(
    z_fit: Float[np.ndarray, "L n_fit c"],
    s_fit: Float[np.ndarray, "n_fit K"],
    z_val: Float[np.ndarray, "L n_val c"],
    s_val: Float[np.ndarray, "n_val K"],
    *,
    width: int,
    seed: int,
) -> MLP:
    """Regressors of every standardised factor from every input, with the weights of the lowest validation error."""
    L, _, c = z_fit.shape
    # Unit u bends at a quantile of the input's column u mod c.
    knots = np.empty((L, width), np.float32)
    for k in range(c):
        n = len(range(k, width, c))
        knots[:, k::c] = np.quantile(z_fit[:, :, k], (np.arange(n) + 0.5) / n, axis=1).T
    return _fit(random.key(seed), knots, z_fit, s_fit, z_val, s_val)


def predict(params: MLP, z: Float[np.ndarray, "L n c"]) -> Float[np.ndarray, "n L K"]:
    return np.asarray(_predict(params, z))


@_jit
def _fit(
    key: Key[Array, ""],
    knots: Float[Array, "L width"],
    z_fit: Float[Array, "L n_fit c"],
    s_fit: Float[Array, "n_fit K"],
    z_val: Float[Array, "L n_val c"],
    s_val: Float[Array, "n_val K"],
) -> MLP:
    init_key, batch_key = random.split(key)
    params = _init(init_key, knots, z_fit.shape[2], s_fit.shape[1])
    optimiser = optax.adam(optax.cosine_decay_schedule(_LEARNING_RATE, _STEPS))

    def step(carry, key):
        params, state = carry
        rows = random.randint(key, (_BATCH,), 0, len(s_fit))
        gradient = jax.grad(_loss)(params, z_fit[:, rows], s_fit[rows])
        updates, state = optimiser.update(gradient, state)
        return (jax.tree.map(jnp.add, params, updates), state), None

    def steps_then_check(carry, keys):
        params, state, best, best_error = carry
        (params, state), _ = jax.lax.scan(step, (params, state), keys)
        error = _errors(params, z_val, s_val)
        best = jax.tree.map(partial(_where, error < best_error), params, best)
        return (params, state, best, jnp.minimum(error, best_error)), None

    keys = random.split(batch_key, (_STEPS // _CHECK_EVERY, _CHECK_EVERY))
    # Before training every regressor says 0.
    untrained = jnp.broadcast_to(jnp.mean(s_val**2, axis=0), (len(z_fit), s_fit.shape[1]))
    carry = (params, optimiser.init(params), params, untrained)
    (_, _, best, _), _ = jax.lax.scan(steps_then_check, carry, keys)
    return best


def _init(key: Key[Array, ""], knots: Float[Array, "L width"], c: int, K: int) -> MLP:
    """The same random weights for every regressor, except that each first unit bends at a quantile of its column.

    Units so spread resolve levels that crowd together. The output starts at 0, which is the fit split's mean.
    """
    sign_key, hidden_key = random.split(key)
    width = knots.shape[1]
    slope = _KNOT_SLOPE * random.rademacher(sign_key, (width,), jnp.float32)
    w1 = slope * (jnp.arange(width) % c == jnp.arange(c)[:, None])
    w2 = random.normal(hidden_key, (width, width), jnp.float32) * jnp.float32((2 / width) ** 0.5)
    zeros = jnp.zeros(width, jnp.float32)

    def one(knots):
        return MLP(w1, -slope * knots, w2, zeros, zeros, jnp.float32(0))

    return jax.tree.map(lambda x: jnp.repeat(x[:, None], K, axis=1), jax.vmap(one)(knots))


def _mlp(params: MLP, z: Float[Array, "n c"]) -> Float[Array, " n"]:
    # "highest": a GPU would round these small products to TF32, and its scores would differ from a CPU's.
    # One column is scaled rather than multiplied as a matrix: a CPU then needs no call a regressor.
    first = z * params.w1 if z.shape[1] == 1 else jnp.dot(z, params.w1, precision="highest")
    h = jnp.tanh(first + params.b1)
    h = jnp.tanh(jnp.dot(h, params.w2, precision="highest") + params.b2)
    return jnp.dot(h, params.w3, precision="highest") + params.b3


_of_factors = jax.vmap(_mlp, in_axes=(0, None), out_axes=1)  # the K regressors that share one input: [n, K]


def _loss(params: MLP, z: Float[Array, "L N c"], s: Float[Array, "N K"]) -> Float[Array, ""]:
    # A sum, and Adam works entry by entry: no regressor feels another.
    return jnp.sum(jnp.mean((jax.vmap(_of_factors)(params, z) - s) ** 2, axis=1))


def _errors(params: MLP, z: Float[Array, "L n c"], s: Float[Array, "n K"]) -> Float[Array, "L K"]:
    return _map_inputs(lambda one: jnp.mean((_of_factors(*one) - s) ** 2, axis=0), (params, z))


@_jit
def _predict(params: MLP, z: Float[Array, "L n c"]) -> Float[Array, "n L K"]:
    return _map_inputs(lambda one: _of_factors(*one), (params, z)).swapaxes(0, 1)


def _map_inputs(f: Callable[[tuple[MLP, Array]], Array], inputs: tuple[MLP, Array]) -> Array:
    """Few at a time: a whole split for every regressor at once would fill the memory with hidden units."""
    return jax.lax.map(f, inputs, batch_size=8 if jax.default_backend() == "gpu" else None)


def _where(better: Bool[Array, "L K"], new: Array, old: Array) -> Array:
    return jnp.where(better.reshape(better.shape + (1,) * (new.ndim - 2)), new, old)
