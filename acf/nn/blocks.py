"""The residual blocks of encoder and decoder: halve or double the resolution, then two residual 1x1 layers.

The 3x3 convolutions are nine strided slices and one matrix product. Under `vmap` over members an XLA convolution
becomes a grouped one, which is slow on GPUs, and inside a `scan` it is slow on CPUs; a matrix product is neither.
Products are of plain matrices, a pixel a row: of larger arrays XLA transposes one in the backward pass on a CPU.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float


class Residuals(nnx.Module):
    """RMSNorm and SiLU after the resolution changed, then two residual 1x1 layers."""

    def __init__(self, channels: int, *, dtype, rngs: nnx.Rngs):
        self.norm = nnx.RMSNorm(channels, dtype=dtype, rngs=rngs)
        self.layers = nnx.List([nnx.Linear(channels, channels, dtype=dtype, rngs=rngs) for _ in range(2)])

    def __call__(self, x: Float[Array, "*pixels c"]) -> Float[Array, "*pixels c"]:
        x = jax.nn.silu(self.norm(x))
        for layer in self.layers:
            x = x + jax.nn.silu(layer(x))
        return x


class Down(nnx.Module):
    """Stride-2 3x3 convolution and residual layers: [N, h, w, i] to [N, ⌈h/2⌉, ⌈w/2⌉, o]."""

    def __init__(self, channels_in: int, channels: int, *, dtype, rngs: nnx.Rngs):
        self.conv = nnx.Linear(9 * channels_in, channels, dtype=dtype, dot_general=_dot_general, rngs=rngs)
        self.residuals = Residuals(channels, dtype=dtype, rngs=rngs)

    def __call__(self, x: Float[Array, "N h w i"]) -> Float[Array, "N h2 w2 o"]:
        return by_pixel(lambda rows: self.residuals(self.conv(rows)), patches(x))


class Up(nnx.Module):
    """The transpose of `Down`: [N, h, w, i] to [N, 2h, 2w, o]."""

    def __init__(self, channels_in: int, channels: int, *, dtype, rngs: nnx.Rngs):
        self.conv = nnx.Linear(channels_in, 9 * channels, use_bias=False, dtype=dtype, rngs=rngs)
        self.residuals = Residuals(channels, dtype=dtype, rngs=rngs)

    def __call__(self, x: Float[Array, "N h w i"]) -> Float[Array, "N H W o"]:
        return by_pixel(self.residuals, overlap_add(by_pixel(self.conv, x)))


def by_pixel(
    f: Callable[[Float[Array, "pixels i"]], Float[Array, "pixels o"]], x: Float[Array, "N h w i"]
) -> Float[Array, "N h w o"]:
    """`f` of all pixels as the rows of one matrix."""
    rows = f(x.reshape(-1, x.shape[-1]))
    return rows.reshape(*x.shape[:-1], rows.shape[-1])


@jax.custom_vjp
def product(x: Float[Array, "rows i"], w: Float[Array, "i o"]) -> Float[Array, "rows o"]:
    """For wide x and narrow w: w's gradient is worked out the other way round, then transposed.

    On a CPU that takes as little as a third of the time. The barrier keeps XLA from turning it back.
    """
    return x @ w


def _product_forward(x: Array, w: Array):
    return x @ w, (x, w)


def _product_backward(saved: tuple[Array, Array], g: Float[Array, "rows o"]):
    x, w = saved
    return g @ w.T, jax.lax.optimization_barrier(g.T @ x).T


product.defvjp(_product_forward, _product_backward)


def _dot_general(x: Array, w: Array, *_: Any, **__: Any) -> Array:
    """`product` as `nnx.Linear` asks for it, which names the axes too: of matrices they are always the same."""
    return product(x, w)


def patches(x: Float[Array, "N h w c"]) -> Float[Array, "N h2 w2 9*c"]:
    """The 3x3 neighbourhood of every second pixel, zeros outside."""
    N, h, w, c = x.shape
    h2, w2 = -(-h // 2), -(-w // 2)
    x = jnp.pad(x, ((0, 0), (1, 2 * h2 - h), (1, 2 * w2 + 1 - w), (0, 0)))
    # A line's first two pixels lie side by side: six pieces to copy in place of nine.
    twos = x.reshape(N, 2 * h2 + 1, w2 + 1, 2 * c)
    lines = [twos[:, r : r + 2 * h2 : 2] for r in range(3)]
    return jnp.concatenate([part for line in lines for part in (line[:, :, :-1], line[:, :, 1:, :c])], axis=-1)


def overlap_add(y: Float[Array, "N h w c9"]) -> Float[Array, "N 2*h 2*w c"]:
    """The transpose of `patches` for even sizes: nine taps a pixel, laid out two apart and added."""
    zero = jnp.zeros((), y.dtype)
    taps = jnp.split(y, 9, axis=-1)
    full = sum(
        jax.lax.pad(tap, zero, ((0, 0, 0), (r, 2 - r, 1), (c, 2 - c, 1), (0, 0, 0)))
        for tap, (r, c) in zip(taps, [(r, c) for r in range(3) for c in range(3)], strict=True)
    )
    return jnp.asarray(full)[:, 1:, 1:]
