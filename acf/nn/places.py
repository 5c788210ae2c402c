"""From frames to latents: an encoder that looks at each place of the picture alone and adds up what it sees.

What an object contributes cannot depend on what stands elsewhere. An encoder that sees the whole picture learns a chart
of its own for every layout, or the transitions by heart; this one can do neither.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Num, UInt8

from acf.nn.mlp import MLP

PLACES = 256  # about so many, whatever the size of the picture
REACH = 2.0  # the coordinates of places go from -REACH to REACH
SCALE = 64.0  # of pixels: from black to white is 4


class Seen(NamedTuple):
    """What the encoder makes of frames, place by place."""

    z: Float[Array, "N d"]
    moments: Float[Array, "N F3"]
    shares: Float[Array, "N P d"]
    """What each place adds to each latent."""


class PlacesEncoder(nnx.Module):
    """An MLP sees the patch at each place, not where it is: features f. Latents are linear in Σ f, Σ f·x and Σ f·y.

    So a latent is a count or a coordinate. What several objects contribute adds up; an object that moves by one place
    changes the latents by the same amount wherever it was. A place that looks as it does in the mean picture, which is
    black until it is told, adds nothing. Patches are 2s x 2s pixels, s apart,
    where s = √(H·W / 256), rounded: about 256 places at any size, 2 pixels apart at 32x32, 5 at 84x84, 11 at 210x160.

    `bounded` puts a tanh behind. Parameters, sums and output are float32; `dtype` is that of the rest.
    """

    def __init__(
        self,
        frame_shape: tuple[int, int, int],
        latents: int,
        *,
        width: int = 128,
        bounded: bool = True,
        dtype=jnp.float32,
        rngs: nnx.Rngs,
    ):
        h, w, c = frame_shape
        self.bounded = bounded
        self.dtype = dtype
        self.stride = max(1, round(math.sqrt(h * w / PLACES)))
        self.mean = nnx.Param(jnp.zeros(frame_shape))  # of the data's pictures; it does not learn
        self.look = MLP((2 * self.stride) ** 2 * c, (width, width), width, dtype=dtype, rngs=rngs)
        self.add_up = nnx.Linear(3 * width, latents, rngs=rngs)

    def __call__(self, frames: UInt8[Array, "N H W C"]) -> Float[Array, "N d"]:
        z = self.add_up(self.moments(frames))
        return jnp.tanh(z) if self.bounded else z

    def moments(self, frames: UInt8[Array, "N H W C"]) -> Float[Array, "N F3"]:
        """Σ f, Σ f·x and Σ f·y over the places."""
        return self._moments(*self.features(frames))

    def seen(self, frames: UInt8[Array, "N H W C"]) -> Seen:
        """The latents of an unbounded encoder, and what each place adds to them."""
        features, where = self.features(frames)
        kernel = self.add_up.kernel[...].reshape(3, -1, self.add_up.out_features)
        each = jnp.einsum("npf,mfd->npmd", features, kernel)
        moments = self._moments(features, where)
        return Seen(self.add_up(moments), moments, (each * where[:, :, None]).sum(2))

    def features(self, frames: UInt8[Array, "N H W C"]) -> tuple[Float[Array, "N P F"], Float[Array, "P 3"]]:
        """f at every place, less what the mean picture has there; and the weights of the three sums: 1, x and y."""
        x, mean = patches(frames, self.stride), patches(jax.lax.stop_gradient(self.mean[...])[None], self.stride)
        return (self._see(x) - self._see(mean)).astype(jnp.float32), places(*x.shape[1:3])

    def _moments(self, features: Float[Array, "N P F"], where: Float[Array, "P 3"]) -> Float[Array, "N F3"]:
        return jnp.einsum("npf,pm->nmf", features, where).reshape(len(features), -1)

    def _see(self, x: Num[Array, "N h w p"]) -> Float[Array, "N P F"]:
        rows = x.reshape(-1, x.shape[-1]).astype(self.dtype) / SCALE
        return jax.nn.silu(self.look(rows)).reshape(len(x), -1, self.look.layers[-1].out_features)


def places(h: int, w: int) -> Float[Array, "P 3"]:
    """1, x and y of each place, on the scale that makes the sums over all of them about 1."""
    y, x = jnp.meshgrid(jnp.linspace(-REACH, REACH, h), jnp.linspace(-REACH, REACH, w), indexing="ij")
    return jnp.stack([jnp.ones((h, w)), x, y], axis=-1).reshape(h * w, 3) * 2 / math.sqrt(h * w)


def patches(frames: Num[Array, "N H W C"], stride: int) -> Num[Array, "N h w p"]:
    """The neighbourhood of each place, twice the stride high and wide; zeros outside the picture."""
    N, H, W, C = frames.shape
    h, w, before = -(-H // stride), -(-W // stride), stride // 2
    ends = [(before, (n + 1) * stride - size - before) for n, size in ((h, H), (w, W))]
    x = jnp.pad(frames, ((0, 0), *ends, (0, 0)))
    # A stride's pixels of a line lie side by side: few and long pieces to copy.
    x = x.reshape(N, (h + 1) * stride, w + 1, stride * C)
    lines = [x[:, line : line + h * stride : stride] for line in range(2 * stride)]
    return jnp.concatenate([part for line in lines for part in (line[:, :, :-1], line[:, :, 1:])], axis=-1)
