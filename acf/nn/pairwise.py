"""The sum over factors and hidden units of every pair of a batch, without the N x M x K x H tensor in memory.

    out[i, j] = Σ_k Σ_h c[k,h,i] silu(u[k,h,i] + w[k,h] v[k,j])

It is most of the arithmetic in latent space. `pairwise_pallas` is GPU kernels; `pairwise_nodes`, for a CPU, and
`pairwise_blocks`, for any other device, are plain JAX. Rows of the batch come last: they are what the kernels read side
by side. All three have first derivatives in reverse mode, not all have others. Errors are those of float32, at nodes
relative to a row's largest value.
"""

from types import ModuleType

import jax
from jaxtyping import Array, Float

from acf.nn import pairwise_blocks, pairwise_nodes
from acf.nn.kernel import Kernel, chosen


def pairwise_sum(
    u: Float[Array, "K H N"],
    v: Float[Array, "K M"],
    w: Float[Array, "K H"],
    c: Float[Array, "K H N"],
    kernel: Kernel = "auto",
) -> Float[Array, "N M"]:
    return way(kernel).pairwise_sum(u, v, w, c)


def way(kernel: Kernel) -> ModuleType:
    if chosen(kernel) == "pallas":
        from acf.nn import pairwise_pallas  # only now: a later JAX may be without what it is made with

        return pairwise_pallas
    # How many nodes there are is known only as they are chosen: a GPU would stop and ask the host before each turn of
    # their loops.
    return pairwise_nodes if jax.default_backend() == "cpu" else pairwise_blocks
