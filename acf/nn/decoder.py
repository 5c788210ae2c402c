"""From latents to frames: the encoder mirrored, for methods that reconstruct."""

from itertools import pairwise

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, UInt8

from acf.nn.blocks import Up, overlap_add
from acf.nn.mlp import MLP
from acf.nn.residual import MIN_RESOLUTION

PACE = 100.0  # of the mean frame, against the networks


class Decoder(nnx.Module):
    """An MLP to 4x4, blocks that double the resolution and halve the depth, a last step to pixels, centre crop, tanh.

    The encoder's first block goes from pixels to features; so its mirror goes from features at half the resolution
    straight to pixels, with one transposed convolution. Frames are in [-1, 1].

    Every pixel has a bias of its own that learns `PACE` times as fast as the networks, so that it is the mean frame
    within a few dozen steps. Otherwise the networks make the mean frame first, and forget the latents over it.
    """

    def __init__(
        self,
        latents: int,
        frame_shape: tuple[int, int, int],
        *,
        depth: int = 24,
        hidden: int = 256,
        dtype=jnp.float32,
        rngs: nnx.Rngs,
    ):
        self.frame_shape = frame_shape
        h, w, c = frame_shape
        h, w, channels = -(-h // 2), -(-w // 2), depth
        widths = [channels]
        while max(h, w) > MIN_RESOLUTION:
            h, w, channels = -(-h // 2), -(-w // 2), 2 * channels
            widths.insert(0, channels)
        self.smallest = (h, w, channels)
        self.head = MLP(latents, (hidden, hidden), h * w * channels, dtype=dtype, rngs=rngs)
        self.blocks = nnx.List([Up(i, o, dtype=dtype, rngs=rngs) for i, o in pairwise(widths)])
        # In float32 whatever the rest: bfloat16 steps are larger than the error of a good reconstruction.
        self.to_pixels = nnx.Linear(depth, 9 * c, use_bias=False, rngs=rngs)
        self.bias = nnx.Param(jnp.zeros(frame_shape))

    def __call__(self, z: Float[Array, "N d"]) -> Float[Array, "N H W C"]:
        x = self.head(z).reshape(len(z), *self.smallest)
        for block in self.blocks:
            x = block(x)
        pixels = overlap_add(self.to_pixels(x.astype(jnp.float32)))
        return jnp.tanh(centre_crop(pixels, self.frame_shape) + PACE * self.bias[...])


def as_pixels(frames: UInt8[Array, "*N H W C"]) -> Float[Array, "*N H W C"]:
    """Frames in the decoder's range, to compare with what it made."""
    return frames.astype(jnp.float32) / 127.5 - 1


def centre_crop(x: Float[Array, "N h w c"], frame_shape: tuple[int, int, int]) -> Float[Array, "N H W c"]:
    top, left = (x.shape[1] - frame_shape[0]) // 2, (x.shape[2] - frame_shape[1]) // 2
    return x[:, top : top + frame_shape[0], left : left + frame_shape[1]]
