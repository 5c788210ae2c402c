"""An encoder block as a few GPU kernels: convolution, norm, SiLU and both residual layers without a trip to memory.

A block is one small network a pixel, applied to the pixel's 3x3 neighbourhood, so a tile of output pixels needs nothing
from other tiles. Forward it is one kernel, which also keeps the convolution's output. Backward, one kernel recomputes
the rest from it and walks the chain rule back down to it; what it leaves behind are the two operands of each weight
gradient, which are plain products.

- Between blocks, pixels lie in the order of the 2x2 cells that the next convolution steps over,
  (n, y // 2, x // 2, y % 2, x % 2), so that a tile of its gradients is contiguous.
- Channels are padded with zeros to a power of two; weights padded with zeros keep them there.
- The last channel is always 1. Its row of a matrix is the bias, and a bias' gradient needs no sum of its own.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Bool, Float, Int, UInt8

from acf.nn.blocks import Weights
from acf.nn.kernel import fast_tanh

EPSILON = 1e-6  # nnx.RMSNorm's
WIDEST = 128  # channels whose weights fit a processor's shared memory
LARGEST_TILE = 128  # rows; arrays of rows are padded to a multiple of it
LINE = 16  # columns for one line of a 3x3 patch of a frame: 3 pixels of up to 4 channels
FEATURES = 32  # columns for what a patch holds besides bytes: "inside", y and x of 9 taps, and the constant 1


class Tiles(NamedTuple):
    """How a kernel's work is cut."""

    rows: int  # output pixels at a time
    warps: int
    programs: int = 0  # that share a member's rows, where each adds up gradients


# Measured on an H200 (`benchmarks/tiles.py`), by padded width of the block.
FORWARD = {32: Tiles(64, 4), 64: Tiles(128, 8), 128: Tiles(64, 4)}
BACKWARD = {32: Tiles(16, 1), 64: Tiles(64, 4), 128: Tiles(32, 8)}
FRAME_WEIGHTS = {32: Tiles(32, 2, 256)}
CONV_WEIGHTS = {64: Tiles(64, 2, 16), 128: Tiles(128, 4, 8)}
CONV_INPUT = {64: Tiles(128, 8), 128: Tiles(128, 8)}


class Shape(NamedTuple):
    """Compile-time constants of a block: N frames of h x w x i to o channels; `frames` where the input is pixels."""

    N: int
    h: int
    w: int
    channels_in: int
    channels: int
    frames: bool

    @property
    def h2(self) -> int:
        return -(-self.h // 2)

    @property
    def w2(self) -> int:
        return -(-self.w // 2)

    @property
    def cells(self) -> int:
        """Of the input: one for every output pixel."""
        return self.N * self.h2 * self.w2

    @property
    def rows_a_frame(self) -> int:
        """Output pixels in the order of their cells; at odd sizes some lie outside and are never read."""
        return -(-self.h2 // 2) * -(-self.w2 // 2) * 4

    @property
    def rows(self) -> int:
        return self.N * self.rows_a_frame

    @property
    def conv_rows(self) -> int:
        """Of the packed weights: the convolution's come first."""
        return 3 * LINE + FEATURES if self.frames else 9 * _padded(self.channels_in)


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
    i, o, O = shape.channels_in, shape.channels, _padded(shape.channels)  # noqa: E741
    if shape.frames:
        # A pixel is byte / 127.5 - 1 inside the frame and 0 outside: the bytes as they are, and the -1 as a feature.
        taps = weights.conv.reshape(3, 3, i, o)
        pixels, positions = taps[:, :, :-2], taps[:, :, -2:]
        lines = _pad(pixels.reshape(3, -1, o) / 127.5, (3, LINE, O))
        features = jnp.concatenate([-pixels.sum(2, keepdims=True), positions], axis=2)
        features = jnp.concatenate([features.reshape(27, o), weights.conv_bias[None]])
        conv = [lines.reshape(-1, O), _pad(features, (FEATURES, O))]
    else:
        I = _padded(i)  # noqa: E741
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
        _forward_kernel,
        shape,
        tiles,
        grid=(_tiled(shape.rows) // tiles.rows,),
        out_shape=[jax.ShapeDtypeStruct((_tiled(shape.rows), len(scale)), dtype)] * 2,
    )(x, _features(shape, dtype), matrices, scale)
    return out, (x, x0, matrices, scale)


def _backward(shape: Shape, dtype: Any, saved: tuple[Array, ...], g: Float[Array, "rows O"]):
    x, x0, matrices, scale = saved
    rows, O = g.shape  # noqa: E741
    tiles = _tiles(BACKWARD, scale)
    d, inputs, slopes, d_scale = _call(
        _backward_kernel,
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
            _frame_weights_kernel,
            shape,
            tiles,
            grid=(splits,),
            out_shape=jax.ShapeDtypeStruct((splits, shape.conv_rows, O), jnp.float32),
        )(x, _features(shape, dtype), d)
        return None, jnp.concatenate([conv.sum(0), square]), _sum_rows(d_scale)
    I = _padded(shape.channels_in)  # noqa: E741
    tiles = _tiles(CONV_INPUT, scale)
    dx = _call(
        _conv_input_kernel,
        shape,
        tiles,
        grid=(pl.cdiv(shape.cells, tiles.rows),),
        out_shape=jax.ShapeDtypeStruct((_tiled(shape.cells), 4, I), dtype),
    )(d, matrices)
    tiles = _tiles(CONV_WEIGHTS, scale)
    splits = min(tiles.programs, pl.cdiv(shape.rows, tiles.rows))
    # It is given dx so that it comes after it: the block before waits for dx, nobody for the weights' gradient.
    conv = _call(
        _conv_weights_kernel,
        shape,
        tiles,
        grid=(9, splits),
        out_shape=jax.ShapeDtypeStruct((splits, 9, I, O), jnp.float32),
    )(x, d, dx)
    d_matrices = jnp.concatenate([conv.sum(0).reshape(-1, O), square])
    return dx.reshape(-1, I)[: len(x)], d_matrices, _sum_rows(d_scale)


_block.defvjp(_forward, _backward)


def _forward_kernel(x_ref, features_ref, matrices_ref, scale_ref, x0_ref, out_ref, *, shape: Shape, tiles: Tiles):
    tile = pl.program_id(0)
    here = pl.ds(tile * tiles.rows, tiles.rows)
    weights = Packed(matrices_ref, scale_ref, shape)
    x0 = _conv(_inputs(x_ref, features_ref, _pixels(tile, shape, tiles), shape, out_ref.dtype), weights)
    x0_ref[here, :] = x0.astype(x0_ref.dtype)
    out_ref[here, :] = _chain(x0, weights, out_ref.dtype).out.astype(out_ref.dtype)


def _backward_kernel(
    x0_ref, matrices_ref, scale_ref, g_ref, d_ref, inputs_ref, slopes_ref, d_scale_ref, *, shape: Shape, tiles: Tiles
):
    tile, dtype = pl.program_id(0), d_ref.dtype
    here = pl.ds(tile * tiles.rows, tiles.rows)
    weights = Packed(matrices_ref, scale_ref, shape)
    at = _chain(x0_ref[here, :].astype(jnp.float32), weights, dtype)
    inputs_ref[0, here, :] = at.x1
    inputs_ref[1, here, :] = at.x2
    inside = _pixels(tile, shape, tiles).inside
    g = jnp.where(inside[:, None], g_ref[here, :].astype(jnp.float32), 0)
    d_second = (g * at.slope2).astype(dtype)
    slopes_ref[1, here, :] = d_second
    g += triton.dot(d_second, weights.square(1), trans_b=True)
    d_first = (g * at.slope1).astype(dtype)
    slopes_ref[0, here, :] = d_first
    g += triton.dot(d_first, weights.square(0), trans_b=True)
    d_normed = g * at.slope
    d_scale_ref[tile, :] = (d_normed * at.hat).sum(0)
    d_hat = d_normed * weights.scale[:][None, :]
    mean = (d_hat * at.hat).sum(1) / shape.channels
    d_ref[here, :] = (at.r * (d_hat - at.hat * mean[:, None])).astype(dtype)


def _frame_weights_kernel(x_ref, features_ref, d_ref, out_ref, *, shape: Shape, tiles: Tiles):
    """The gradient of the first convolution's weights from one share of the rows."""
    me, splits, O = pl.program_id(0), out_ref.shape[0], out_ref.shape[2]  # noqa: E741

    def add_tile(n, sums):
        tile = me + n * splits
        inputs = _inputs(x_ref, features_ref, _pixels(tile, shape, tiles), shape, d_ref.dtype)
        d = d_ref[pl.ds(tile * tiles.rows, tiles.rows), :]
        return tuple(total + triton.dot(x, d, trans_a=True) for total, x in zip(sums, inputs, strict=True))

    mine = (pl.cdiv(shape.rows, tiles.rows) - me + splits - 1) // splits
    zeros = tuple(jnp.zeros((height, O), jnp.float32) for height in (LINE, LINE, LINE, FEATURES))
    for n, total in enumerate(jax.lax.fori_loop(0, mine, add_tile, zeros)):
        out_ref[me, pl.ds(n * LINE, len(total)), :] = total


def _conv_weights_kernel(x_ref, d_ref, _, out_ref, *, shape: Shape, tiles: Tiles):
    """The gradient of one tap's weights from one share of the rows."""
    tap, me, splits = pl.program_id(0), pl.program_id(1), out_ref.shape[0]

    def add_tile(n, total):
        tile = me + n * splits
        x = _tap(x_ref, _pixels(tile, shape, tiles), tap // 3, tap % 3, shape)
        return total + triton.dot(x, d_ref[pl.ds(tile * tiles.rows, tiles.rows), :], trans_a=True)

    mine = (pl.cdiv(shape.rows, tiles.rows) - me + splits - 1) // splits
    out_ref[me, tap] = jax.lax.fori_loop(0, mine, add_tile, jnp.zeros(out_ref.shape[2:], jnp.float32))


def _conv_input_kernel(d_ref, matrices_ref, out_ref, *, shape: Shape, tiles: Tiles):
    """The gradient of the four input pixels of each 2x2 cell: an odd pixel is seen by two taps, an even one by one."""
    start, I = pl.program_id(0) * tiles.rows, out_ref.shape[2]  # noqa: E741
    cell = start + jnp.arange(tiles.rows)
    n, y, x = cell // (shape.h2 * shape.w2), cell // shape.w2 % shape.h2, cell % shape.w2
    around = {}
    for below in (0, 1):
        for right in (0, 1):
            mask = (cell < shape.cells) & (y + below < shape.h2) & (x + right < shape.w2)
            row = jnp.where(mask, _row(n, y + below, x + right, shape.h2, shape.w2), 0)
            around[below, right] = _gather(d_ref, row, mask)
    seen_by = {0: [(1, 0)], 1: [(0, 1), (2, 0)]}  # an input's parity: (tap, how far below or right its output is)
    for odd_y in (0, 1):
        for odd_x in (0, 1):
            total = sum(
                triton.dot(around[below, right], matrices_ref[pl.ds((3 * dy + dx) * I, I), :], trans_b=True)
                for dy, below in seen_by[odd_y]
                for dx, right in seen_by[odd_x]
            )
            out_ref[pl.ds(start, tiles.rows), 2 * odd_y + odd_x, :] = jnp.asarray(total).astype(out_ref.dtype)


class Packed(NamedTuple):
    """A block's weights inside a kernel, read where they are used: all at once they would not fit in shared memory."""

    matrices: Any
    scale: Any
    shape: Shape

    def conv(self, n: int) -> Float[Array, "i O"]:
        """For the n-th of the convolution's inputs."""
        if self.shape.frames:
            return self.matrices[pl.ds(n * LINE, FEATURES if n == 3 else LINE), :]
        width = _padded(self.shape.channels_in)
        return self.matrices[pl.ds(n * width, width), :]

    def square(self, n: int) -> Float[Array, "O O"]:
        """Of the first or second residual layer."""
        width = self.scale.shape[0]
        return self.matrices[pl.ds(self.shape.conv_rows + n * width, width), :]


class Chain(NamedTuple):
    """What follows the convolution, and what the backward pass needs of it."""

    r: Float[Array, "R 1"]
    hat: Float[Array, "R O"]  # normed, before the scale
    slope: Float[Array, "R O"]  # of each SiLU
    x1: Float[Array, "R O"]
    slope1: Float[Array, "R O"]
    x2: Float[Array, "R O"]
    slope2: Float[Array, "R O"]
    out: Float[Array, "R O"]


def _chain(x0: Float[Array, "R O"], weights: Packed, dtype: Any) -> Chain:
    r = jax.lax.rsqrt((x0 * x0).sum(1) / weights.shape.channels + EPSILON)[:, None]
    hat = x0 * r
    x1, slope = _silu(hat * weights.scale[:][None, :])
    is_constant = jnp.arange(x0.shape[1])[None, :] == x0.shape[1] - 1
    x1 = jnp.where(is_constant, 1.0, x1)
    silu, slope1 = _silu(triton.dot(x1.astype(dtype), weights.square(0)))
    x2 = x1 + silu
    silu, slope2 = _silu(triton.dot(x2.astype(dtype), weights.square(1)))
    return Chain(r, hat, slope, x1.astype(dtype), slope1, x2.astype(dtype), slope2, x2 + silu)


def _silu(x: Float[Array, "R O"]) -> tuple[Float[Array, "R O"], Float[Array, "R O"]]:
    """And its slope."""
    s = 0.5 + 0.5 * fast_tanh(0.5 * x)  # the logistic function
    silu = x * s
    return silu, s + silu * (1 - s)


def _conv(inputs: list[Float[Array, "R _"]], weights: Packed) -> Float[Array, "R O"]:
    products = [triton.dot(x, weights.conv(n)) for n, x in enumerate(inputs)]
    return sum(products[1:], products[0])


class Pixels(NamedTuple):
    """The output pixels of a tile."""

    row: Int[Array, " R"]
    n: Int[Array, " R"]
    y: Int[Array, " R"]
    x: Int[Array, " R"]
    inside: Bool[Array, " R"]


def _pixels(tile: Int[Array, ""], shape: Shape, tiles: Tiles) -> Pixels:
    row = tile * tiles.rows + jnp.arange(tiles.rows)
    cell, h4, w4 = row // 4, -(-shape.h2 // 2), -(-shape.w2 // 2)
    y, x = 2 * (cell // w4 % h4) + row // 2 % 2, 2 * (cell % w4) + row % 2
    return Pixels(row, cell // (h4 * w4), y, x, (row < shape.rows) & (y < shape.h2) & (x < shape.w2))


def _row(n: Array, y: Array, x: Array, h: int, w: int) -> Array:
    """Where a pixel of an h x w image lies in the order of cells."""
    return ((n * -(-h // 2) + y // 2) * -(-w // 2) + x // 2) * 4 + y % 2 * 2 + x % 2


def _inputs(x_ref, features_ref, pixels: Pixels, shape: Shape, dtype: Any) -> list[Float[Array, "R _"]]:
    """What the convolution sees: nine taps of another block's output; or three lines of bytes, and the features."""
    if not shape.frames:
        return [_tap(x_ref, pixels, dy, dx, shape) for dy in range(3) for dx in range(3)]
    features = _gather(features_ref, pixels.row % shape.rows_a_frame, pixels.inside)
    return [*(_line(x_ref, pixels, dy, shape).astype(dtype) for dy in range(3)), features]


def _tap(x_ref, pixels: Pixels, dy: Any, dx: Any, shape: Shape) -> Float[Array, "R i"]:
    """The input pixel that one tap of the convolution sees; zeros outside."""
    y, x = 2 * pixels.y + dy - 1, 2 * pixels.x + dx - 1
    mask = pixels.inside & (y >= 0) & (y < shape.h) & (x >= 0) & (x < shape.w)
    return _gather(x_ref, jnp.where(mask, _row(pixels.n, y, x, shape.h, shape.w), 0), mask)


def _line(x_ref, pixels: Pixels, dy: int, shape: Shape) -> UInt8[Array, "R bytes"]:
    """The bytes of three neighbouring pixels, which lie beside each other; zeros outside."""
    C, byte = shape.channels_in - 2, jnp.arange(LINE)[None, :]
    y, x = (2 * pixels.y + dy - 1)[:, None], (2 * pixels.x - 1)[:, None]
    at = x + byte // C
    mask = pixels.inside[:, None] & (y >= 0) & (y < shape.h) & (at >= 0) & (at < shape.w) & (byte < 3 * C)
    index = jnp.where(mask, ((pixels.n[:, None] * shape.h + y) * shape.w + x) * C + byte, 0)
    return triton.load(x_ref.at[index], mask=mask, other=0)


def _features(shape: Shape, dtype: Any) -> Float[Array, "rows features"]:
    """For each of a frame's output pixels: of each tap whether it is inside, and if so y and x in [-1, 1]; and a 1."""
    rows = np.arange(shape.rows_a_frame if shape.frames else 1)
    w4 = -(-shape.w2 // 2)
    y, x = 2 * (rows // 4 // w4) + rows // 2 % 2, 2 * (rows // 4 % w4) + rows % 2
    dy, dx = np.divmod(np.arange(9), 3)
    y, x = 2 * y[:, None] + dy - 1, 2 * x[:, None] + dx - 1
    inside = (y >= 0) & (y < shape.h) & (x >= 0) & (x < shape.w)
    positions = 2 * y / max(shape.h - 1, 1) - 1, 2 * x / max(shape.w - 1, 1) - 1
    features = np.stack([inside, *(inside * position for position in positions)], axis=-1).reshape(len(rows), 27)
    return jnp.asarray(np.pad(features, [(0, 0), (0, FEATURES - 27)]) + (np.arange(FEATURES) == 27), dtype)


def _gather(ref, row: Int[Array, " R"], mask: Bool[Array, " R"]) -> Float[Array, "R c"]:
    channel = jnp.arange(ref.shape[1])[None, :]
    return triton.load(ref.at[row[:, None], channel], mask=mask[:, None], other=0)


def _sum_rows(x: Float[Array, "rows O"], groups: int = 64) -> Float[Array, " O"]:
    """In two steps: few columns of many rows would leave most of a GPU idle."""
    if len(x) % groups:
        return x.sum(0)
    return x.reshape(len(x) // groups, -1).sum(0).reshape(groups, -1).sum(0)


def _padded(channels: int) -> int:
    """With room for the constant channel; 16 is the smallest the matrix units take."""
    return max(16, 1 << channels.bit_length())


def _tiles(table: dict[int, Tiles], scale: Float[Array, " O"]) -> Tiles:
    return table[min(table, key=lambda width: abs(width - len(scale)))]


def _tiled(rows: int) -> int:
    return pl.cdiv(rows, LARGEST_TILE) * LARGEST_TILE


def _pad(x: Array, shape: tuple[int, ...]) -> Array:
    return jnp.pad(x, [(0, big - small) for big, small in zip(shape, x.shape, strict=True)])


def _call(kernel, shape: Shape, tiles: Tiles, **specs):
    """Where there is no GPU the kernel is interpreted, for tests."""
    return pl.pallas_call(
        partial(kernel, shape=shape, tiles=tiles),
        compiler_params=triton.CompilerParams(num_warps=tiles.warps, num_stages=1),
        interpret=jax.default_backend() != "gpu",
        name=kernel.__name__.strip("_") + f"_{shape.channels}",
        **specs,
    )
