"""The sum over factors and hidden units of every pair of a batch, without the N x M x K x H tensor in memory.

    out[i, j] = Σ_k Σ_h c[k,h,i] silu(u[k,h,i] + w[k,h] v[k,j])

It is most of the arithmetic in latent space. `pairwise_xla` is plain JAX, `pairwise_pallas` GPU kernels. Rows of the
batch come last: they are what the kernels read side by side. Both have first derivatives only, in reverse mode. Errors
are those of float32, in plain JAX relative to a row's largest value.
"""

from jaxtyping import Array, Float

from acf.nn import pairwise_pallas, pairwise_xla
from acf.nn.kernel import Kernel, chosen


def pairwise_sum(
    u: Float[Array, "K H N"],
    v: Float[Array, "K M"],
    w: Float[Array, "K H"],
    c: Float[Array, "K H N"],
    kernel: Kernel = "auto",
) -> Float[Array, "N M"]:
    implementation = {"xla": pairwise_xla, "pallas": pairwise_pallas}[chosen(kernel)]
    return implementation.pairwise_sum(u, v, w, c)
