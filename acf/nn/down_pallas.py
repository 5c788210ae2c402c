"""An encoder block as a few GPU kernels: convolution, norm, SiLU and both residual layers without a trip to memory.

A block is one small network a pixel, applied to the pixel's 3x3 neighbourhood, so a tile of output pixels needs nothing
from other tiles. Forward it is one kernel, which also keeps the convolution's output. Backward, one kernel recomputes
the rest from it and walks the chain rule back down to it. In narrow blocks it also sums the gradients of the residual
layers' weights; of wide ones it leaves the operands, for plain products. `block_kernels` has the kernels,
`block_layout` the order of the pixels.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jaxtyping import Array, Float, UInt8

from acf.nn.block_calls import CONV, call, conv_weights_gradient, nearest, pack_residuals, pad, residuals_backward
from acf.nn.block_kernels import conv_input_kernel, forward_kernel, frame_weights_kernel
from acf.nn.block_layout import FEATURES, LINE, Shape, Tiles, features_of, from_rows, lay_out, padded, tiled
from acf.nn.blocks import Weights

# Measured on an H200 (`benchmarks/tiles.py`), by padded width of the block.
_FRAME_WEIGHTS = {32: Tiles(32, 1, 128, 3)}
_CONV_INPUT = {64: Tiles(128, 4, 0, 2), 128: Tiles(128, 4, 0, 2)}


def encode(frames: UInt8[Array, "N H W C"], blocks: Sequence[Weights], dtype: Any) -> Float[Array, "N h w o"]:
    """All blocks, one after the other, on frames with two position channels appended."""
    N, h, w, _ = frames.shape
    x: Array = frames
    for n, weights in enumerate(blocks):
        shape = Shape(N, h, w, weights.conv.shape[0] // 9, weights.conv.shape[1], frames=n == 0)
        x = _down(x, _pack_conv(weights, shape), *pack_residuals(weights.residuals), shape, dtype)
        h, w = shape.h2, shape.w2
    return from_rows(x, N, h, w, blocks[-1].conv.shape[1])


def _pack_conv(weights: Weights, shape: Shape) -> Float[Array, "conv_rows O"]:
    """The convolution's weights and bias as one padded matrix, in the order in which a kernel reads its inputs."""
    i, o, O = shape.channels_in, shape.channels, padded(shape.channels)  # noqa: E741
    assert weights.conv_bias is not None
    if shape.frames:
        # A pixel is byte / 127.5 - 1 inside the frame and 0 outside: the bytes as they are, and the -1 as a feature.
        taps = weights.conv.reshape(3, 3, i, o)
        pixels, positions = taps[:, :, :-2], taps[:, :, -2:]
        lines = pad(pixels / 127.5, (3, 4, LINE // 4, O))
        features = jnp.concatenate([-pixels.sum(2, keepdims=True), positions], axis=2)
        features = jnp.concatenate([features.reshape(27, o), weights.conv_bias[None]])
        return jnp.concatenate([lines.reshape(-1, O), pad(features, (FEATURES, O))])
    I = padded(i)  # noqa: E741
    taps = pad(weights.conv.reshape(9, i, o), (9, I, O)).reshape(-1, O)
    bias = jax.lax.pad(weights.conv_bias[None], 0.0, [(5 * I - 1, 4 * I, 0), (0, O - o, 0)])  # the middle tap's
    return taps + bias


@partial(jax.custom_vjp, nondiff_argnums=(4, 5))
def _down(
    x: Array,
    conv: Float[Array, "conv_rows O"],
    squares: Float[Array, "O2 O"],
    scale: Float[Array, " O"],
    shape: Shape,
    dtype: Any,
) -> Float[Array, "rows O"]:
    return _forward(x, conv, squares, scale, shape, dtype)[0]


def _forward(x: Array, conv: Array, squares: Array, scale: Array, shape: Shape, dtype: Any):
    conv, squares, tiles = conv.astype(dtype), squares.astype(dtype), nearest(CONV, len(scale))
    x = lay_out(x, shape, dtype) if shape.frames else x
    x0, out = call(
        forward_kernel,
        shape,
        tiles,
        grid=(tiled(shape.rows) // tiles.rows,),
        out_shape=[jax.ShapeDtypeStruct((tiled(shape.rows), len(scale)), dtype)] * 2,
    )(x, features_of(shape, dtype), conv, squares, scale)
    return out, (x, x0, conv, squares, scale)


def _backward(shape: Shape, dtype: Any, saved: tuple[Array, ...], g: Float[Array, "rows O"]):
    x, x0, conv, squares, scale = saved
    d, d_squares, d_scale = residuals_backward(x0, squares, scale, g, shape, dtype)
    if shape.frames:
        return None, _frame_weights_gradient(x, d, shape, dtype), d_squares, d_scale
    tiles, I = nearest(_CONV_INPUT, len(scale)), padded(shape.channels_in)  # noqa: E741
    dx = call(
        conv_input_kernel,
        shape,
        tiles,
        grid=(4, pl.cdiv(shape.cells, tiles.rows)),
        out_shape=jax.ShapeDtypeStruct((tiled(shape.cells), 4, I), dtype),
    )(d, conv)
    return dx.reshape(-1, I)[: len(x)], conv_weights_gradient(x, d, dx, shape), d_squares, d_scale


_down.defvjp(_forward, _backward)


def _frame_weights_gradient(
    x: Float[Array, " numbers"], d: Float[Array, "rows O"], shape: Shape, dtype: Any
) -> Float[Array, "conv_rows O"]:
    O = d.shape[1]  # noqa: E741
    tiles = nearest(_FRAME_WEIGHTS, O)
    splits = min(tiles.programs, pl.cdiv(shape.rows, tiles.rows))
    parts = call(
        frame_weights_kernel,
        shape,
        tiles,
        grid=(splits,),
        out_shape=jax.ShapeDtypeStruct((splits, shape.conv_rows, O), jnp.float32),
    )(x, features_of(shape, dtype), d)
    return parts.sum(0)
