"""An encoder block as a few GPU kernels: convolution, norm, SiLU and both residual layers without a trip to memory.

A block is one small network a pixel, applied to the pixel's 3x3 neighbourhood, so a tile of output pixels needs nothing
from other tiles. Forward it is one kernel, which also keeps the convolution's output. Backward, one kernel recomputes
the rest from it and walks the chain rule back down to it; what it leaves behind are the two operands of each weight
gradient, which are plain products. `block_kernels` has the kernels, `block_layout` the order of the pixels.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float, UInt8

from acf.nn.block_kernels import (
    backward_kernel,
    conv_input_kernel,
    conv_weights_kernel,
    forward_kernel,
    frame_weights_kernel,
)
from acf.nn.block_layout import FEATURES, LINE, Shape, Tiles, features_of, padded, tiled
from acf.nn.blocks import Weights

WIDEST = 128  # channels whose weights fit a processor's shared memory

# Measured on an H200 (`benchmarks/tiles.py`), by padded width of the block.
FORWARD = {32: Tiles(64, 4), 64: Tiles(128, 8), 128: Tiles(64, 4)}
BACKWARD = {32: Tiles(16, 1), 64: Tiles(64, 4), 128: Tiles(32, 8)}
FRAME_WEIGHTS = {32: Tiles(32, 2, 256)}
CONV_WEIGHTS = {64: Tiles(64, 2, 16), 128: Tiles(128, 4, 8)}
CONV_INPUT = {64: Tiles(128, 8), 128: Tiles(128, 8)}


def encode(frames: UInt8[Array, "N H W C"], blocks: Sequence[Weights], dtype: Any) -> Float[Array, "N h w o"]:
    """All blocks, one after the other, on frames with two position channels appended."""
    N, h, w, _ = frames.shape
    x: Array = frames.reshape(-1)
    for n, weights in enumerate(blocks):
        shape = Shape(N, h, w, weights.conv.shape[0] // 9, weights.conv.shape[1], frames=n == 0)
        x = _block(x, *pack(weights, shape), shape, dtype)
        h, w = shape.h2, shape.w2
    h2, w2 = -(-h // 2), -(-w // 2)
    x = x[: N * h2 * w2 * 4].reshape(N, h2, w2, 2, 2, -1).transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(N, 2 * h2, 2 * w2, -1)[:, :h, :w, : blocks[-1].conv.shape[1]]


def pack(weights: Weights, shape: Shape) -> tuple[Float[Array, "rows O"], Float[Array, " O"]]:
    """A block's weights as one padded stack of matrices (convolution, first, second), and the norm's scale."""
    i, o, O = shape.channels_in, shape.channels, padded(shape.channels)  # noqa: E741
    if shape.frames:
        # A pixel is byte / 127.5 - 1 inside the frame and 0 outside: the bytes as they are, and the -1 as a feature.
        taps = weights.conv.reshape(3, 3, i, o)
        pixels, positions = taps[:, :, :-2], taps[:, :, -2:]
        lines = _pad(pixels.reshape(3, -1, o) / 127.5, (3, LINE, O))
        features = jnp.concatenate([-pixels.sum(2, keepdims=True), positions], axis=2)
        features = jnp.concatenate([features.reshape(27, o), weights.conv_bias[None]])
        conv = [lines.reshape(-1, O), _pad(features, (FEATURES, O))]
    else:
        I = padded(i)  # noqa: E741
        taps = _pad(weights.conv.reshape(9, i, o), (9, I, O)).reshape(-1, O)
        bias = jax.lax.pad(weights.conv_bias[None], 0.0, [(5 * I - 1, 4 * I, 0), (0, O - o, 0)])  # the middle tap's
        conv = [taps + bias]
    layers = ((weights.first, weights.first_bias), (weights.second, weights.second_bias))
    square = [jnp.concatenate([_pad(matrix, (O - 1, O)), _pad(bias[None], (1, O))]) for matrix, bias in layers]
    return jnp.concatenate([*conv, *square]), _pad(weights.scale, (O,))


@partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def _block(x: Array, matrices: Array, scale: Array, shape: Shape, dtype: Any) -> Float[Array, "rows O"]:
    return _forward(x, matrices, scale, shape, dtype)[0]


def _forward(x: Array, matrices: Array, scale: Array, shape: Shape, dtype: Any):
    matrices, tiles = matrices.astype(dtype), _tiles(FORWARD, scale)
    x0, out = _call(
        forward_kernel,
        shape,
        tiles,
        grid=(tiled(shape.rows) // tiles.rows,),
        out_shape=[jax.ShapeDtypeStruct((tiled(shape.rows), len(scale)), dtype)] * 2,
    )(x, features_of(shape, dtype), matrices, scale)
    return out, (x, x0, matrices, scale)


def _backward(shape: Shape, dtype: Any, saved: tuple[Array, ...], g: Float[Array, "rows O"]):
    x, x0, matrices, scale = saved
    rows, O = g.shape  # noqa: E741
    tiles = _tiles(BACKWARD, scale)
    d, inputs, slopes, d_scale = _call(
        backward_kernel,
        shape,
        tiles,
        grid=(rows // tiles.rows,),
        out_shape=[
            jax.ShapeDtypeStruct((rows, O), dtype),
            jax.ShapeDtypeStruct((2, rows, O), dtype),
            jax.ShapeDtypeStruct((2, rows, O), dtype),
            jax.ShapeDtypeStruct((rows // tiles.rows, O), jnp.float32),
        ],
    )(x0, matrices, scale, g)
    square = jnp.einsum("lri,lro->lio", inputs, slopes, preferred_element_type=jnp.float32).reshape(2 * O, O)
    if shape.frames:
        tiles = _tiles(FRAME_WEIGHTS, scale)
        splits = min(tiles.programs, pl.cdiv(shape.rows, tiles.rows))
        conv = _call(
            frame_weights_kernel,
            shape,
            tiles,
            grid=(splits,),
            out_shape=jax.ShapeDtypeStruct((splits, shape.conv_rows, O), jnp.float32),
        )(x, features_of(shape, dtype), d)
        return None, jnp.concatenate([conv.sum(0), square]), _sum_rows(d_scale)
    I = padded(shape.channels_in)  # noqa: E741
    tiles = _tiles(CONV_INPUT, scale)
    dx = _call(
        conv_input_kernel,
        shape,
        tiles,
        grid=(pl.cdiv(shape.cells, tiles.rows),),
        out_shape=jax.ShapeDtypeStruct((tiled(shape.cells), 4, I), dtype),
    )(d, matrices)
    tiles = _tiles(CONV_WEIGHTS, scale)
    splits = min(tiles.programs, pl.cdiv(shape.rows, tiles.rows))
    # It is given dx so that it comes after it: the block before waits for dx, nobody for the weights' gradient.
    conv = _call(
        conv_weights_kernel,
        shape,
        tiles,
        grid=(9, splits),
        out_shape=jax.ShapeDtypeStruct((splits, 9, I, O), jnp.float32),
    )(x, d, dx)
    d_matrices = jnp.concatenate([conv.sum(0).reshape(-1, O), square])
    return dx.reshape(-1, I)[: len(x)], d_matrices, _sum_rows(d_scale)


_block.defvjp(_forward, _backward)


def _sum_rows(x: Float[Array, "rows O"], groups: int = 64) -> Float[Array, " O"]:
    """In two steps: few columns of many rows would leave most of a GPU idle."""
    if len(x) % groups:
        return x.sum(0)
    return x.reshape(len(x) // groups, -1).sum(0).reshape(groups, -1).sum(0)


def _tiles(table: dict[int, Tiles], scale: Float[Array, " O"]) -> Tiles:
    return table[min(table, key=lambda width: abs(width - len(scale)))]


def _pad(x: Array, shape: tuple[int, ...]) -> Array:
    return jnp.pad(x, [(0, big - small) for big, small in zip(shape, x.shape, strict=True)])


def _call(kernel, shape: Shape, tiles: Tiles, **specs):
    """Where there is no GPU the kernel is interpreted, for tests."""
    return pl.pallas_call(
        partial(kernel, shape=shape, tiles=tiles),
        compiler_params=triton.CompilerParams(num_warps=tiles.warps, num_stages=1),
        interpret=jax.default_backend() != "gpu",
        name=f"{kernel.__name__}_{shape.channels}",
        **specs,
    )
