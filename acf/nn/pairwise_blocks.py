"""`pairwise_sum` in plain JAX: a block of pairs of one factor at a time, recomputed backward.

Memory grows with N·K·H instead of N·M·K·H. How many blocks there are is known when it is compiled.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

BLOCK = 2**20  # numbers in a block of pairs: four megabytes


def pairwise_sum(
    u: Float[Array, "K H N"], v: Float[Array, "K M"], w: Float[Array, "K H"], c: Float[Array, "K H N"]
) -> Float[Array, "N M"]:
    @jax.checkpoint
    def one_factor(total: Float[Array, " M"], factor: tuple[Array, Array, Array, Array]) -> tuple[Array, None]:
        u, v, w, c = factor
        silu = jax.nn.silu(u + v[:, None] * w)
        return total + jnp.matmul(silu, c, precision="highest"), None  # float32, not what a GPU or TPU would round to

    def one_row(row: tuple[Float[Array, "K H"], Float[Array, "K H"]]) -> Float[Array, " M"]:
        u, c = row
        return jax.lax.scan(one_factor, jnp.zeros(v.shape[1], v.dtype), (u, v, w, c))[0]

    rows = max(1, BLOCK // (v.shape[1] * w.shape[1]))
    return jax.lax.map(one_row, (u.transpose(2, 0, 1), c.transpose(2, 0, 1)), batch_size=rows)
