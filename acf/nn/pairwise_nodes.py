"""`pairwise_sum` in plain JAX for a CPU: at a few nodes (`acf.nn.nodes`) instead of all pairs.

Some nodes of one factor are computed at a time, and again in the backward pass: they stay in cache, and beside the
arguments memory grows with N·H, and with N·M for what belongs to every pair. It is made for programs compiled with the
trainer's options (`acf.training.program`): with XLA's default ones its sums are ten times slower.
"""

import jax
import jax.numpy as jnp
from jax.lax import dynamic_slice_in_dim
from jaxtyping import Array, Float, Int

from acf.nn.nodes import STEP, Nodes, choose


@jax.custom_vjp
def pairwise_sum(
    u: Float[Array, "K H N"], v: Float[Array, "K M"], w: Float[Array, "K H"], c: Float[Array, "K H N"]
) -> Float[Array, "N M"]:
    def add_factor(total: Float[Array, "N M"], factor: tuple[Array, Array, Array, Array]) -> tuple[Array, None]:
        u, v, w, c = factor
        nodes = choose(v, w)

        def add_some(n: Int[Array, ""], total: Float[Array, "N M"]) -> Float[Array, "N M"]:
            t, weights = _some(nodes, n)
            values = (c * jax.nn.silu(u + w[:, None] * t)).sum(1)  # [STEP, N]
            return total + _product(values.T, weights)

        return jax.lax.fori_loop(0, nodes.used // STEP, add_some, total), None

    return jax.lax.scan(add_factor, jnp.zeros((u.shape[2], v.shape[1]), u.dtype), (u, v, w, c))[0]


def _forward(*operands: Array):
    return pairwise_sum(*operands), operands


def _backward(operands: tuple[Array, Array, Array, Array], g: Float[Array, "N M"]):
    def one_factor(factor: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        u, v, w, c = factor
        nodes = choose(v, w)

        def add_some(n: Int[Array, ""], sums: tuple[Array, Array, Array, Array]):
            slopes, slopes_t, silus, dv = sums
            t, weights = _some(nodes, n)
            at_nodes = _product(weights, g.T)[:, None, :]
            pre = u + w[:, None] * t  # [STEP, H, N]
            s = jax.nn.sigmoid(pre)
            silu = pre * s
            slope = s + silu * (1 - s)
            # The slope of the energy at v[j] is interpolated as the energy itself is.
            dv += (weights * _product((c * w[:, None] * slope).sum(1), g)).sum(0)
            g_slope = at_nodes * slope
            return slopes + g_slope.sum(0), slopes_t + (t * g_slope).sum(0), silus + (at_nodes * silu).sum(0), dv

        zeros = jnp.zeros_like(u)
        sums = jax.lax.fori_loop(0, nodes.used // STEP, add_some, (zeros, zeros, zeros, jnp.zeros_like(v)))
        slopes, slopes_t, silus, dv = sums
        return c * slopes, dv, (c * slopes_t).sum(1), silus

    return jax.lax.map(one_factor, operands)


pairwise_sum.defvjp(_forward, _backward)


def _some(nodes: Nodes, n: Int[Array, ""]) -> tuple[Float[Array, "STEP 1 1"], Float[Array, "STEP M"]]:
    t, weights = (dynamic_slice_in_dim(x, STEP * n, STEP) for x in (nodes.t, nodes.weights))
    return t[:, None, None], weights


def _product(a: Float[Array, "m k"], b: Float[Array, "k n"]) -> Float[Array, "m n"]:
    return jnp.matmul(a, b, precision="highest")  # float32 wherever it runs
