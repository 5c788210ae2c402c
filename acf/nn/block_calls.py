"""What the GPU forms of encoder and decoder blocks share: how kernels are called, packed residual layers, gradients."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float

from acf.nn.block_kernels import backward_kernel, backward_sums_kernel, conv_weights_kernel
from acf.nn.block_layout import Shape, Tiles, padded
from acf.nn.blocks import ResidualWeights
from acf.nn.kernel import Kernel, chosen

WIDEST = 128  # channels whose weights fit a processor's shared memory

# Measured on an H200 (`benchmarks/tiles.py`), by padded width of the block.
CONV = {32: Tiles(64, 4), 64: Tiles(64, 4, 0, 3), 128: Tiles(64, 4, 0, 3)}
_BACKWARD = {32: Tiles(32, 2, 208, 3), 64: Tiles(64, 4, 52, 3), 128: Tiles(32, 8)}
_CONV_WEIGHTS = {64: Tiles(128, 4, 8, 3), 128: Tiles(64, 4, 8, 3)}


def usable(kernel: Kernel, dtype: Any) -> bool:
    """The kernels compute in bfloat16 alone."""
    return chosen(kernel) == "pallas" and dtype == jnp.bfloat16


def call(kernel, shape: Shape, tiles: Tiles, **specs):
    """Where there is no GPU the kernel is interpreted, for tests."""
    return pl.pallas_call(
        partial(kernel, shape=shape, tiles=tiles),
        compiler_params=triton.CompilerParams(num_warps=tiles.warps, num_stages=tiles.stages),
        interpret=jax.default_backend() != "gpu",
        name=f"{kernel.__name__}_{shape.channels}",
        **specs,
    )


def nearest(table: dict[int, Tiles], width: int) -> Tiles:
    return table[min(table, key=lambda other: abs(other - width))]


def pack_residuals(weights: ResidualWeights) -> tuple[Float[Array, "O2 O"], Float[Array, " O"]]:
    """Both layers' matrices, each with its bias as the constant channel's row, and the norm's scale.

    All are halved, and by that what SiLU is given: it is `x (1 + tanh(x / 2)) / 2`.
    """
    O = padded(len(weights.scale))  # noqa: E741
    layers = ((weights.first, weights.first_bias), (weights.second, weights.second_bias))
    squares = [part for matrix, bias in layers for part in (pad(matrix, (O - 1, O)), pad(bias[None], (1, O)))]
    return 0.5 * jnp.concatenate(squares), 0.5 * pad(weights.scale, (O,))


def residuals_backward(
    x0: Float[Array, "rows O"],
    squares: Float[Array, "O2 O"],
    scale: Float[Array, " O"],
    g: Float[Array, "rows O"],
    shape: Shape,
    dtype: Any,
) -> tuple[Float[Array, "rows O"], Float[Array, "O2 O"], Float[Array, " O"]]:
    """From the gradient of a block's output to that of its convolution's output `x0`, of the squares and the scale."""
    rows, O = g.shape  # noqa: E741
    tiles = nearest(_BACKWARD, O)
    of_rows = jax.ShapeDtypeStruct((rows, O), dtype)
    shares = min(tiles.programs, rows // tiles.rows)
    if shares:
        d, d_squares, d_scale = call(
            backward_sums_kernel,
            shape,
            tiles,
            grid=(shares,),
            out_shape=[
                of_rows,
                jax.ShapeDtypeStruct((shares, 2 * O, O), jnp.float32),
                jax.ShapeDtypeStruct((shares, O), jnp.float32),
            ],
        )(x0, squares, scale, g)
        return d, d_squares.sum(0), d_scale.sum(0)
    of_layers = jax.ShapeDtypeStruct((2, rows, O), dtype)
    d, inputs, slopes, d_scale = call(
        backward_kernel,
        shape,
        tiles,
        grid=(rows // tiles.rows,),
        out_shape=[of_rows, of_layers, of_layers, jax.ShapeDtypeStruct((rows // tiles.rows, O), jnp.float32)],
    )(x0, squares, scale, g)
    d_squares = jnp.einsum("lri,lro->lio", inputs, slopes, preferred_element_type=jnp.float32).reshape(2 * O, O)
    return d, d_squares, _sum_rows(d_scale)


def conv_weights_gradient(
    x: Float[Array, "_ I"], d: Float[Array, "_ O"], after: Array, shape: Shape
) -> Float[Array, "9*I O"]:
    """Of a convolution from `x`, with `d` the gradient of its output.

    It is given what it must come `after`: the next block waits for that, and nobody for the weights' gradient.
    """
    I, O = x.shape[1], d.shape[1]  # noqa: E741
    tiles = nearest(_CONV_WEIGHTS, O)
    splits = min(tiles.programs, pl.cdiv(shape.rows, tiles.rows))
    parts = call(
        conv_weights_kernel,
        shape,
        tiles,
        grid=(9, splits),
        out_shape=jax.ShapeDtypeStruct((splits, 9, I, O), jnp.float32),
    )(x, d, after)
    return parts.sum(0).reshape(-1, O)


def pad(x: Array, shape: tuple[int, ...]) -> Array:
    return jnp.pad(x, [(0, big - small) for big, small in zip(shape, x.shape, strict=True)])


def _sum_rows(x: Float[Array, "rows O"], groups: int = 64) -> Float[Array, " O"]:
    """In two steps: few columns of many rows would leave most of a GPU idle."""
    if len(x) % groups:
        return x.sum(0)
    return x.reshape(len(x) // groups, -1).sum(0).reshape(groups, -1).sum(0)
