"""A decoder block as a few GPU kernels, those of an encoder block with the two directions of the convolution exchanged.

Forward is what the gradient of an encoder block's input is, followed by norm, SiLU and residual layers.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
from jaxtyping import Array, Float

from acf.nn.block_calls import CONV, call, conv_weights_gradient, nearest, pack_residuals, pad, residuals_backward
from acf.nn.block_kernels import conv_kernel, up_kernel
from acf.nn.block_layout import Shape, Tiles, from_rows, padded, tiled, to_rows
from acf.nn.blocks import Weights

_UP = Tiles(64, 4, 0, 2)  # not yet compared with others


def decode(x: Float[Array, "N h w i"], blocks: Sequence[Weights], dtype: Any) -> Float[Array, "N H W o"]:
    """All blocks, one after the other."""
    N, h, w, i = x.shape
    rows: Array = to_rows(x.astype(dtype), padded(i))
    for weights in blocks:
        o = len(weights.residuals.scale)
        shape = Shape(N, 2 * h, 2 * w, o, i, frames=False)  # of the convolution that the block transposes
        rows = _up(rows, _pack_conv(weights, shape), *pack_residuals(weights.residuals), shape, dtype)
        h, w, i = 2 * h, 2 * w, o
    return from_rows(rows, N, h, w, i)


def _pack_conv(weights: Weights, shape: Shape) -> Float[Array, "I9 O"]:
    """As those of the convolution that is transposed, a tap below the other."""
    o, i = shape.channels, shape.channels_in
    taps = weights.conv.reshape(o, 9, i).transpose(1, 2, 0)
    return pad(taps, (9, padded(i), padded(o))).reshape(-1, padded(o))


@partial(jax.custom_vjp, nondiff_argnums=(4, 5))
def _up(
    x: Float[Array, "rows O"],
    conv: Float[Array, "I9 O"],
    squares: Float[Array, "I2 I"],
    scale: Float[Array, " I"],
    shape: Shape,
    dtype: Any,
) -> Float[Array, "rows4 I"]:
    return _forward(x, conv, squares, scale, shape, dtype)[0]


def _forward(x: Array, conv: Array, squares: Array, scale: Array, shape: Shape, dtype: Any):
    conv, squares, cells = conv.astype(dtype), squares.astype(dtype), tiled(shape.cells)
    x0, out = call(
        up_kernel,
        shape,
        _UP,
        grid=(4, cells // _UP.rows),
        out_shape=[jax.ShapeDtypeStruct((cells, 4, len(scale)), dtype)] * 2,
    )(x, conv, squares, scale)
    x0, out = (y.reshape(4 * cells, -1) for y in (x0, out))
    return out, (x, x0, conv, squares, scale)


def _backward(shape: Shape, dtype: Any, saved: tuple[Array, ...], g: Float[Array, "rows4 I"]):
    x, x0, conv, squares, scale = saved
    # The residual layers work on the pixels that a convolution to h x w would make.
    made = Shape(shape.N, 2 * shape.h, 2 * shape.w, 0, shape.channels_in, frames=False)
    d, d_squares, d_scale = residuals_backward(x0, squares, scale, g, made, dtype)
    tiles = nearest(CONV, x.shape[1])
    dx = call(
        conv_kernel,
        shape,
        tiles,
        grid=(len(x) // tiles.rows,),
        out_shape=jax.ShapeDtypeStruct(x.shape, dtype),
    )(d, conv)
    return dx, conv_weights_gradient(d, x, dx, shape), d_squares, d_scale


_up.defvjp(_forward, _backward)
