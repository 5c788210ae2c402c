"""The sum over hidden units of every pair of a batch, without the N x M x K x H tensor in memory."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def pairwise_sum(
    u: Float[Array, "N K H"], v: Float[Array, "M K"], w: Float[Array, "K H"], c: Float[Array, "N K H"]
) -> Float[Array, "N M"]:
    """`out[i, j] = Σ_k Σ_h c[i,k,h] silu(u[i,k,h] + w[k,h] v[j,k])`.

    One factor at a time, and recomputed in the backward pass: a factor's block stays in cache, and memory grows with
    N·M·H instead of N·M·K·H.
    """

    @jax.checkpoint
    def one_factor(total: Array, block: tuple[Array, Array, Array, Array]) -> tuple[Array, None]:
        u_k, v_k, w_k, c_k = block
        hidden = jax.nn.silu(u_k[:, None, :] + v_k[None, :, None] * w_k)
        return total + jnp.einsum("ijh,ih->ij", hidden, c_k), None

    blocks = (u.swapaxes(0, 1), v.T, w, c.swapaxes(0, 1))
    total, _ = jax.lax.scan(one_factor, jnp.zeros((len(u), len(v)), u.dtype), blocks)
    return total
