"""From latents to frames: the encoder mirrored, for methods that reconstruct."""

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, UInt8

from acf.nn.blocks import Up
from acf.nn.encoder import MIN_RESOLUTION
from acf.nn.mlp import MLP


class Decoder(nnx.Module):
    """An MLP to 4x4, blocks that double the resolution and halve the depth, centre crop, tanh: frames in [-1, 1]."""

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
        n_blocks = 0
        while max(h, w) > MIN_RESOLUTION:
            h, w, n_blocks = -(-h // 2), -(-w // 2), n_blocks + 1
        channels = depth * 2 ** max(n_blocks - 1, 0)
        self.smallest = (h, w, channels)
        self.head = MLP(latents, (hidden, hidden), h * w * channels, dtype=dtype, rngs=rngs)
        blocks = []
        for _ in range(n_blocks):
            blocks.append(Up(channels, max(channels // 2, depth), dtype=dtype, rngs=rngs))
            channels = max(channels // 2, depth)
        self.blocks = nnx.List(blocks)
        # In float32 whatever the rest: bfloat16 steps are larger than the error of a good reconstruction.
        self.to_pixels = nnx.Linear(channels, c, rngs=rngs)

    def __call__(self, z: Float[Array, "N d"]) -> Float[Array, "N H W C"]:
        x = self.head(z).reshape(len(z), *self.smallest)
        for block in self.blocks:
            x = block(x)
        return jnp.tanh(self.to_pixels(centre_crop(x, self.frame_shape).astype(jnp.float32)))


def as_pixels(frames: UInt8[Array, "*N H W C"]) -> Float[Array, "*N H W C"]:
    """Frames in the decoder's range, to compare with what it made."""
    return frames.astype(jnp.float32) / 127.5 - 1


def centre_crop(x: Float[Array, "N h w c"], frame_shape: tuple[int, int, int]) -> Float[Array, "N H W c"]:
    top, left = (x.shape[1] - frame_shape[0]) // 2, (x.shape[2] - frame_shape[1]) // 2
    return x[:, top : top + frame_shape[0], left : left + frame_shape[1]]
