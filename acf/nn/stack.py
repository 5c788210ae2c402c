"""K networks of one shape, each with weights of its own, run side by side: one a factor."""

from collections.abc import Sequence
from itertools import pairwise

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float


class StackedLinear(nnx.Module):
    def __init__(self, stack: int, width_in: int, width_out: int, *, rngs: nnx.Rngs):
        init = nnx.initializers.lecun_normal(in_axis=-2, out_axis=-1, batch_axis=(0,))
        self.kernel = nnx.Param(init(rngs.params(), (stack, width_in, width_out)))
        self.bias = nnx.Param(jnp.zeros((stack, width_out)))

    def __call__(self, x: Float[Array, "N K i"]) -> Float[Array, "N K o"]:
        return jnp.einsum("nki,kio->nko", x, self.kernel[...]) + self.bias[...]


class StackedMLP(nnx.Module):
    """`width_in → hidden[0] → … → width_out` K times, SiLU between; network k sees `x[:, k]` alone."""

    def __init__(self, stack: int, width_in: int, hidden: Sequence[int], width_out: int, *, rngs: nnx.Rngs):
        widths = [width_in, *hidden, width_out]
        self.layers = nnx.List([StackedLinear(stack, m, n, rngs=rngs) for m, n in pairwise(widths)])

    def __call__(self, x: Float[Array, "N K i"]) -> Float[Array, "N K o"]:
        for layer in self.layers[:-1]:
            x = jax.nn.silu(layer(x))
        return self.layers[-1](x)
