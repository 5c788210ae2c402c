"""The GPU kernels of encoder and decoder blocks: what a program does with its tile of pixels.

Forward: convolution (or its transpose), norm, SiLU and both residual layers. Backward: the same from the convolution's
output on, and back down to it; then the gradients of the convolution's weights and of its input.
"""

from collections.abc import Callable
from itertools import accumulate
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float

from acf.nn.block_layout import (
    FEATURES,
    LINE,
    Pixels,
    Shape,
    Tiles,
    find_pixels,
    gather,
    padded,
    read_frames,
    read_tap,
    row_of,
    split,
)
from acf.nn.kernel import fast_tanh, fma, fnma

EPSILON = 1e-6  # nnx.RMSNorm's


def forward_kernel(
    x_ref, features_ref, conv_ref, squares_ref, scale_ref, x0_ref, out_ref, *, shape: Shape, tiles: Tiles
):
    tile, dtype = pl.program_id(0), out_ref.dtype
    here = pl.ds(tile * tiles.rows, tiles.rows)
    pixels = find_pixels(tile, shape, tiles)
    if shape.frames:
        x0 = _conv_frames(read_frames(x_ref, features_ref, pixels, shape), conv_ref)
    else:
        x0 = _conv(x_ref, conv_ref, pixels, shape)
    x0_ref[here, :] = x0.astype(dtype)
    out_ref[here, :] = _chain(x0, ResidualRefs(squares_ref, scale_ref, shape.channels), dtype).out.astype(dtype)


def up_kernel(x_ref, conv_ref, squares_ref, scale_ref, x0_ref, out_ref, *, shape: Shape, tiles: Tiles):
    """A decoder's block. `shape` is that of the convolution which it transposes."""
    parity, tile, dtype = 3 - pl.program_id(0), pl.program_id(1), out_ref.dtype
    here = pl.ds(tile * tiles.rows, tiles.rows)
    x0 = _transposed(x_ref, conv_ref, parity, tile, shape, tiles)
    x0_ref[here, parity, :] = x0.astype(dtype)
    weights = ResidualRefs(squares_ref, scale_ref, shape.channels_in)
    out_ref[here, parity, :] = _chain(x0, weights, dtype).out.astype(dtype)


def backward_kernel(
    x0_ref, squares_ref, scale_ref, g_ref, d_ref, inputs_ref, slopes_ref, d_scale_ref, *, shape: Shape, tiles: Tiles
):
    """Down to the convolution's output. The gradients of the squares are left as operands of a product."""
    tile = pl.program_id(0)
    here = pl.ds(tile * tiles.rows, tiles.rows)
    weights = ResidualRefs(squares_ref, scale_ref, shape.channels)
    at, back = _both_ways(x0_ref, g_ref, weights, tile, shape, tiles, lambda x: x.astype(jnp.float32))
    d_ref[here, :] = back.d
    inputs_ref[0, here, :], inputs_ref[1, here, :] = at.x1, at.x2
    slopes_ref[0, here, :], slopes_ref[1, here, :] = back.d_first, back.d_second
    d_scale_ref[tile, :] = (back.d_normed * at.hat).sum(0)


def backward_sums_kernel(
    x0_ref, squares_ref, scale_ref, g_ref, d_ref, d_squares_ref, d_scale_ref, *, shape: Shape, tiles: Tiles
):
    """The same for narrow blocks, where the gradients of the squares fit in registers: from one share of the rows."""
    me, programs, O = pl.program_id(0), d_squares_ref.shape[0], scale_ref.shape[0]  # noqa: E741
    weights = ResidualRefs(squares_ref, scale_ref, shape.channels).read()

    def add_tile(tile, sums):
        at, back = _both_ways(x0_ref, g_ref, weights, tile, shape, tiles, _as_product)
        d_ref[pl.ds(tile * tiles.rows, tiles.rows), :] = back.d
        of_first = triton.dot(at.x1, back.d_first, trans_a=True)
        of_second = triton.dot(at.x2, back.d_second, trans_a=True)
        return sums[0] + of_first, sums[1] + of_second, fma(back.d_normed, at.hat, sums[2])

    zeros = tuple(jnp.zeros((height, O), jnp.float32) for height in (O, O, tiles.rows))
    first, second, scale = _over_share(add_tile, zeros, d_ref.shape[0] // tiles.rows, me, programs)
    d_squares_ref[me, pl.ds(0, O), :], d_squares_ref[me, pl.ds(O, O), :] = first, second
    d_scale_ref[me, :] = scale.sum(0)


def frame_weights_kernel(x_ref, features_ref, d_ref, out_ref, *, shape: Shape, tiles: Tiles):
    """The gradient of the first convolution's weights from one share of the rows."""
    me, splits, O = pl.program_id(0), out_ref.shape[0], out_ref.shape[2]  # noqa: E741

    def add_tile(tile, sums):
        inputs = read_frames(x_ref, features_ref, find_pixels(tile, shape, tiles), shape)
        d = d_ref[pl.ds(tile * tiles.rows, tiles.rows), :]
        return tuple(total + triton.dot(x, d, trans_a=True) for total, x in zip(sums, inputs, strict=True))

    zeros = tuple(jnp.zeros((height, O), jnp.float32) for height in (LINE, LINE, LINE, FEATURES))
    for n, total in enumerate(_over_share(add_tile, zeros, pl.cdiv(shape.rows, tiles.rows), me, splits)):
        out_ref[me, pl.ds(n * LINE, len(total)), :] = total


def conv_weights_kernel(x_ref, d_ref, _, out_ref, *, shape: Shape, tiles: Tiles):
    """The gradient of one tap's weights from one share of the rows."""
    tap, me, splits = pl.program_id(0), pl.program_id(1), out_ref.shape[0]

    def add_tile(tile, total):
        x = read_tap(x_ref, find_pixels(tile, shape, tiles), tap // 3, tap % 3, shape)
        return total + triton.dot(d_ref[pl.ds(tile * tiles.rows, tiles.rows), :], x, trans_a=True)

    zeros = jnp.zeros(out_ref.shape[:1:-1], jnp.float32)
    out_ref[me, tap] = _over_share(add_tile, zeros, pl.cdiv(shape.rows, tiles.rows), me, splits).T


def conv_input_kernel(d_ref, conv_ref, out_ref, *, shape: Shape, tiles: Tiles):
    """The gradient of the convolution's input."""
    parity, tile = 3 - pl.program_id(0), pl.program_id(1)  # those with the most taps first
    here = pl.ds(tile * tiles.rows, tiles.rows)
    out_ref[here, parity, :] = _transposed(d_ref, conv_ref, parity, tile, shape, tiles).astype(out_ref.dtype)


def conv_kernel(x_ref, conv_ref, out_ref, *, shape: Shape, tiles: Tiles):
    """The convolution alone: the gradient of a transposed one's input."""
    tile = pl.program_id(0)
    x = _conv(x_ref, conv_ref, find_pixels(tile, shape, tiles), shape)
    out_ref[pl.ds(tile * tiles.rows, tiles.rows), :] = x.astype(out_ref.dtype)


def _over_share(add_tile: Callable[[Any, Any], Any], sums: Any, tiles: int, me: Any, shares: int) -> Any:
    """`add_tile` of every tile in this program's share, which is every `shares`-th from its own number on."""
    mine = (tiles - me + shares - 1) // shares
    return jax.lax.fori_loop(0, mine, lambda n, sums: add_tile(me + n * shares, sums), sums)


class ResidualRefs(NamedTuple):
    """Weights inside a kernel, read where they are used: all at once they would not fit in shared memory."""

    squares: Any  # of both residual layers, one below the other
    scale: Any
    channels: int

    def square(self, n: int) -> Float[Array, "O O"]:
        width = self.scale.shape[0]
        return self.squares[pl.ds(n * width, width), :]

    def read(self) -> "ResidualValues":
        return ResidualValues((self.square(0), self.square(1)), self.scale[:], self.channels)


class ResidualValues(NamedTuple):
    """Those of a narrow block, read once for many tiles."""

    squares: tuple[Float[Array, "O O"], Float[Array, "O O"]]
    scale: Float[Array, " O"]
    channels: int

    def square(self, n: int) -> Float[Array, "O O"]:
        return self.squares[n]


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


def _chain(x0: Float[Array, "R O"], weights: ResidualRefs | ResidualValues, dtype: Any) -> Chain:
    r = jax.lax.rsqrt((x0 * x0).sum(1) / weights.channels + EPSILON)[:, None]
    hat = x0 * r
    x1, slope = _silu(hat * weights.scale[:][None, :])
    is_constant = jnp.arange(x0.shape[1])[None, :] == x0.shape[1] - 1
    x1 = jnp.where(is_constant, 1.0, x1)
    x2, slope1 = _silu(triton.dot(x1.astype(dtype), weights.square(0)), x1)
    out, slope2 = _silu(triton.dot(x2.astype(dtype), weights.square(1)), x2)
    return Chain(r, hat, slope, x1.astype(dtype), slope1, x2.astype(dtype), slope2, out)


class Back(NamedTuple):
    """Gradients of the chain."""

    d: Float[Array, "R O"]  # of the convolution's output
    d_first: Float[Array, "R O"]  # of what each residual layer's SiLU is given
    d_second: Float[Array, "R O"]
    d_normed: Float[Array, "R O"]  # of what the first SiLU is given


def _both_ways(
    x0_ref,
    g_ref,
    weights: ResidualRefs | ResidualValues,
    tile: Any,
    shape: Shape,
    tiles: Tiles,
    to_float: Callable[[Array], Array],
) -> tuple[Chain, Back]:
    """The chain again from the convolution's output, and the gradient of the block's output back down to it."""
    dtype, here = g_ref.dtype, pl.ds(tile * tiles.rows, tiles.rows)
    at = _chain(to_float(x0_ref[here, :]), weights, dtype)
    g = to_float(g_ref[here, :])
    if not shape.fills_tiles:
        g = jnp.where(find_pixels(tile, shape, tiles).inside[:, None], g, 0)
    d_second = (g * at.slope2).astype(dtype)
    g += triton.dot(d_second, weights.square(1), trans_b=True)
    d_first = (g * at.slope1).astype(dtype)
    g += triton.dot(d_first, weights.square(0), trans_b=True)
    d_normed = g * at.slope
    d_hat = d_normed * weights.scale[:][None, :]
    mean = (d_hat * at.hat).sum(1) / shape.channels
    d = at.r * fnma(at.hat, mean[:, None], d_hat)
    return at, Back(d.astype(dtype), d_first, d_second, d_normed)


def _as_product(x: Float[Array, "R O"]) -> Float[Array, "R O"]:
    """x in float32, lying in the registers as the result of a product does: it is one, with the identity.

    What is computed from it then meets the chain's products as it is. As it comes from memory it lies otherwise, and
    the compiler works out the first SiLU once for every place where it is needed.
    """
    channel = jnp.arange(x.shape[1])
    return triton.dot(x, (channel[:, None] == channel[None, :]).astype(x.dtype))


def _silu(y: Float[Array, "R O"], base: Array | None = None) -> tuple[Float[Array, "R O"], Float[Array, "R O"]]:
    """`base + silu(2 y)`, and its slope in y."""
    t = fast_tanh(y)
    return fma(y, t, y if base is None else y + base), fma(y, fnma(t, t, 1.0), 1 + t)


def _conv_frames(inputs: list[Float[Array, "R _"]], conv_ref: Any) -> Float[Array, "R O"]:
    """Each input with the rows of the weights that belong to it."""
    starts = accumulate([0, *(x.shape[1] for x in inputs)])
    products = [triton.dot(x, conv_ref[pl.ds(row, x.shape[1]), :]) for row, x in zip(starts, inputs, strict=False)]
    return sum(products[1:], products[0])


def _conv(x_ref: Any, conv_ref: Any, pixels: Pixels, shape: Shape) -> Float[Array, "R O"]:
    """Tap after tap, in a loop that reads ahead: all weights at once would fill the shared memory."""
    I, O = padded(shape.channels_in), conv_ref.shape[1]  # noqa: E741

    def add_tap(tap, total):
        dy, dx = jax.lax.div(tap, jnp.int32(3)), jax.lax.rem(tap, jnp.int32(3))  # a loop's `//` is not lowered
        x = read_tap(x_ref, pixels, dy, dx, shape)
        return total + triton.dot(x, conv_ref[pl.ds(tap * I, I), :])

    return jax.lax.fori_loop(0, 9, add_tap, jnp.zeros((len(pixels.row), O), jnp.float32))


def _transposed(d_ref: Any, conv_ref: Any, parity: Any, tile: Any, shape: Shape, tiles: Tiles) -> Float[Array, "R I"]:
    """The convolution's transpose at one of the four pixels of each 2x2 cell, tap after tap.

    In each direction an even pixel is seen by the middle tap; an odd one by the first, from the next output pixel, and
    by the last.
    """
    I = padded(shape.channels_in)  # noqa: E741
    cell = tile * tiles.rows + jnp.arange(tiles.rows)
    n, y, x = split(cell, shape.h2, shape.w2)
    odd_y, odd_x = parity >> 1, parity & 1

    def add_tap(tap, total):
        last_y, last_x = tap >> odd_x, tap & odd_x
        below, right = odd_y * (1 - last_y), odd_x * (1 - last_x)
        dy, dx = 1 - odd_y + 2 * odd_y * last_y, 1 - odd_x + 2 * odd_x * last_x
        mask = (cell < shape.cells) & (y + below < shape.h2) & (x + right < shape.w2)
        row = jnp.where(mask, row_of(n, y + below, x + right, shape.h2, shape.w2), 0)
        weights = conv_ref[pl.ds((3 * dy + dx) * I, I), :]
        return total + triton.dot(gather(d_ref, row, mask), weights, trans_b=True)

    return jax.lax.fori_loop(0, (1 + odd_y) * (1 + odd_x), add_tap, jnp.zeros((tiles.rows, I), jnp.float32))
