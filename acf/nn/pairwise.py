"""The sum over factors and hidden units of every pair of a batch, without the N x M x K x H tensor in memory.

    out[i, j] = Σ_k Σ_h c[i,k,h] silu(u[i,k,h] + w[k,h] v[j,k])

It is most of the arithmetic in latent space. `pairwise_xla` is plain JAX, `pairwise_pallas` two GPU kernels.
"""

from jaxtyping import Array, Float

from acf.nn import pairwise_pallas, pairwise_xla
from acf.nn.kernel import Kernel, chosen


def pairwise_sum(
    u: Float[Array, "N K H"],
    v: Float[Array, "M K"],
    w: Float[Array, "K H"],
    c: Float[Array, "N K H"],
    kernel: Kernel = "auto",
) -> Float[Array, "N M"]:
    implementation = {"xla": pairwise_xla, "pallas": pairwise_pallas}[chosen(kernel)]
    return implementation.pairwise_sum(u, v, w, c)
