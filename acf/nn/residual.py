"""From frames to latents: the paper's residual convolutional encoder."""

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, UInt8

from acf.nn.blocks import Down
from acf.nn.mlp import MLP

MIN_RESOLUTION = 4


class ResidualEncoder(nnx.Module):
    """Position channels, blocks that halve the resolution and double the depth down to 4x4, an MLP, tanh.

    `bounded=False` leaves out the tanh. Parameters and the output are float32; `dtype` is that of the arithmetic.
    """

    def __init__(
        self,
        frame_shape: tuple[int, int, int],
        latents: int,
        *,
        depth: int = 24,
        hidden: int = 256,
        bounded: bool = True,
        dtype=jnp.float32,
        rngs: nnx.Rngs,
    ):
        self.bounded = bounded
        self.dtype = dtype
        h, w, c = frame_shape
        channels, blocks = c + 2, []
        while max(h, w) > MIN_RESOLUTION:
            blocks.append(Down(channels, depth, dtype=dtype, rngs=rngs))
            h, w, channels, depth = -(-h // 2), -(-w // 2), depth, 2 * depth
        self.blocks = nnx.List(blocks)
        self.head = MLP(h * w * channels, (hidden, hidden), latents, dtype=dtype, rngs=rngs)

    def __call__(self, frames: UInt8[Array, "N H W C"]) -> Float[Array, "N d"]:
        x = with_positions(frames.astype(self.dtype) / 127.5 - 1)
        for block in self.blocks:
            x = block(x)
        z = self.head(x.reshape(len(x), -1)).astype(jnp.float32)
        return jnp.tanh(z) if self.bounded else z


def with_positions(x: Float[Array, "N H W C"]) -> Float[Array, "N H W C2"]:
    """Append two channels that hold each pixel's y and x in [-1, 1]."""
    n, h, w, _ = x.shape
    y, x_position = jnp.meshgrid(jnp.linspace(-1, 1, h), jnp.linspace(-1, 1, w), indexing="ij")
    positions = jnp.stack([y, x_position], axis=-1).astype(x.dtype)
    return jnp.concatenate([x, jnp.broadcast_to(positions, (n, h, w, 2))], axis=-1)
