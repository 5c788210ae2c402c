"""A plain SiLU network."""

from collections.abc import Sequence
from itertools import pairwise

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float


class MLP(nnx.Module):
    """`width_in → hidden[0] → … → width_out`, SiLU between, nothing after the last layer."""

    def __init__(self, width_in: int, hidden: Sequence[int], width_out: int, *, dtype=jnp.float32, rngs: nnx.Rngs):
        widths = [width_in, *hidden, width_out]
        self.layers = nnx.List([nnx.Linear(m, n, dtype=dtype, rngs=rngs) for m, n in pairwise(widths)])

    def __call__(self, x: Float[Array, "N i"]) -> Float[Array, "N o"]:
        for layer in self.layers[:-1]:
            x = jax.nn.silu(layer(x))
        return self.layers[-1](x)
