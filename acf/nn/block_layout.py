"""Where the pixels of an encoder or decoder block lie, and how a GPU kernel reads them.

- Between blocks, pixels lie in the order of the 2x2 cells that the next convolution steps over,
  (n, y // 2, x // 2, y % 2, x % 2), so that a tile of its gradients is contiguous.
- Channels are padded with zeros to a power of two; weights padded with zeros keep them there.
- The last channel of what a block makes is always 1. Its row of a matrix is the bias, and a bias' gradient needs no sum
  of its own.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Bool, Float, Int, UInt8

LARGEST_TILE = 128  # rows; arrays of rows are padded to a multiple of it
LINE = 16  # columns for one line of a 3x3 patch of a frame: 4 channels of 3 pixels, and of a fourth without weight
FEATURES = 32  # columns for what a patch holds besides bytes: "inside", y and x of 9 taps, and the constant 1


class Tiles(NamedTuple):
    """How a kernel's work is cut."""

    rows: int  # output pixels at a time
    warps: int
    programs: int = 0  # that share a member's rows, where each adds up gradients
    stages: int = 1  # how far a loop over rows reads ahead


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
        """Output pixels in the order of their cells; at odd sizes some lie outside: finite, and without effect."""
        return -(-self.h2 // 2) * -(-self.w2 // 2) * 4

    @property
    def rows(self) -> int:
        return self.N * self.rows_a_frame

    @property
    def fills_tiles(self) -> bool:
        """Whether no row lies outside, neither of a frame nor of the last tile."""
        return self.rows == self.cells and self.rows % LARGEST_TILE == 0

    @property
    def conv_rows(self) -> int:
        """Of the convolution's packed weights."""
        return 3 * LINE + FEATURES if self.frames else 9 * padded(self.channels_in)


class Pixels(NamedTuple):
    """The output pixels of a tile."""

    row: Int[Array, " R"]
    n: Int[Array, " R"]
    y: Int[Array, " R"]
    x: Int[Array, " R"]
    inside: Bool[Array, " R"]


def find_pixels(tile: Int[Array, ""], shape: Shape, tiles: Tiles) -> Pixels:
    row = tile * tiles.rows + jnp.arange(tiles.rows)
    n, cell_y, cell_x = split(row >> 2, -(-shape.h2 // 2), -(-shape.w2 // 2))
    y, x = 2 * cell_y + (row >> 1 & 1), 2 * cell_x + (row & 1)
    return Pixels(row, n, y, x, (row < shape.rows) & (y < shape.h2) & (x < shape.w2))


def split(place: Int[Array, " R"], h: int, w: int) -> tuple[Array, Array, Array]:
    """(n, y, x) of a place in [N, h, w]. Unsigned, a division by a power of two is one shift; signed, it is many."""
    place = place.astype(jnp.uint32)
    parts = (place // jnp.uint32(h * w), place // jnp.uint32(w) % jnp.uint32(h), place % jnp.uint32(w))
    return tuple(part.astype(jnp.int32) for part in parts)


def row_of(n: Array, y: Array, x: Array, h: int, w: int) -> Array:
    """Where a pixel of an h x w image lies in the order of cells."""
    return ((n * -(-h // 2) + (y >> 1)) * -(-w // 2) + (x >> 1)) * 4 + (y & 1) * 2 + (x & 1)


def to_rows(x: Float[Array, "N h w c"], width: int) -> Float[Array, "rows width"]:
    """An image's pixels in the order of cells, the channels padded with zeros; rows to fill the last tile."""
    N, h, w, c = x.shape
    h2, w2 = -(-h // 2), -(-w // 2)
    x = jnp.pad(x, ((0, 0), (0, 2 * h2 - h), (0, 2 * w2 - w), (0, width - c)))
    x = x.reshape(N, h2, 2, w2, 2, width).transpose(0, 1, 3, 2, 4, 5).reshape(-1, width)
    return jnp.pad(x, ((0, tiled(len(x)) - len(x)), (0, 0)))


def from_rows(x: Float[Array, "rows width"], N: int, h: int, w: int, channels: int) -> Float[Array, "N h w c"]:
    """The way back."""
    h2, w2 = -(-h // 2), -(-w // 2)
    x = x[: N * h2 * w2 * 4].reshape(N, h2, w2, 2, 2, -1).transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(N, 2 * h2, 2 * w2, -1)[:, :h, :w, :channels]


def padded(channels: int) -> int:
    """With room for the constant channel; 16 is the smallest the matrix units take."""
    return max(16, 1 << channels.bit_length())


def tiled(rows: int) -> int:
    return pl.cdiv(rows, LARGEST_TILE) * LARGEST_TILE


def read_frames(x_ref, features_ref, pixels: Pixels, shape: Shape) -> list[Float[Array, "R _"]]:
    """What the first convolution sees: three lines of pixels, and the features."""
    features = gather(features_ref, pixels.row - pixels.n * shape.rows_a_frame, pixels.inside)
    return [*(_line(x_ref, pixels, dy, shape) for dy in range(3)), features]


def read_tap(x_ref, pixels: Pixels, dy: Any, dx: Any, shape: Shape) -> Float[Array, "R i"]:
    """The input pixel that one tap of the convolution sees; zeros outside."""
    y, x = 2 * pixels.y + dy - 1, 2 * pixels.x + dx - 1
    mask = pixels.inside & (y >= 0) & (y < shape.h) & (x >= 0) & (x < shape.w)
    return gather(x_ref, jnp.where(mask, row_of(pixels.n, y, x, shape.h, shape.w), 0), mask)


def _line(x_ref, pixels: Pixels, dy: int, shape: Shape) -> Float[Array, "R LINE"]:
    """One line of a patch, of frames as `lay_out` leaves them. Nothing depends on what rows outside read."""
    height, width = _laid_out(shape)
    n, y, x = (jnp.where(pixels.inside, place, 0) for place in (pixels.n, pixels.y, pixels.x))
    start = ((n * height + 2 * y + dy) * (width // 2) + x) * (LINE // 2)  # as a multiple: 16 bytes are read at once
    return triton.load(x_ref.at[start[:, None] + jnp.arange(LINE)[None, :]])


def lay_out(frames: UInt8[Array, "N H W C"], shape: Shape, dtype: Any) -> Float[Array, " numbers"]:
    """Frames with a margin of zeros for the taps outside, four channels a pixel: any line of a patch is 16 numbers."""
    height, width = _laid_out(shape)
    margins = (0, 0), (1, height - 1 - shape.h), (1, width - 1 - shape.w), (0, LINE // 4 - frames.shape[3])
    return jnp.pad(frames, margins).astype(dtype).reshape(-1)


def _laid_out(shape: Shape) -> tuple[int, int]:
    return 2 * shape.h2 + 1, 2 * shape.w2 + 2


def features_of(shape: Shape, dtype: Any) -> Float[Array, "rows features"]:
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


def gather(ref, row: Int[Array, " R"], mask: Bool[Array, " R"]) -> Float[Array, "R c"]:
    channel = jnp.arange(ref.shape[1])[None, :]
    return triton.load(ref.at[row[:, None], channel], mask=mask[:, None], other=0)
