"""The residual encoder: shapes, ranges, precision, position channels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from acf.nn import ResidualEncoder
from acf.nn.blocks import Down
from acf.nn.residual import with_positions

# frame shape, channels of each block, shape of what is flattened
PLANS = {
    (16, 16, 1): ([4, 8], (4, 4)),
    (20, 33, 3): ([4, 8, 16, 32], (2, 3)),
    (84, 84, 4): ([4, 8, 16, 32, 64], (3, 3)),
    (128, 128, 3): ([4, 8, 16, 32, 64], (4, 4)),
    (16, 128, 2): ([4, 8, 16, 32, 64], (1, 4)),
}


@pytest.fixture
def make(with_weights):
    def make(frame_shape=(16, 16, 3), **options):
        return with_weights(lambda: ResidualEncoder(frame_shape, 5, depth=4, hidden=16, rngs=nnx.Rngs(0), **options))

    return make


def frames(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8))


@pytest.mark.parametrize("shape", PLANS, ids=str)
def test_any_frame_size(make, shape):
    channels, (h, w) = PLANS[shape]
    encoder = make(shape)
    widths_in = [shape[2] + 2, *channels[:-1]]
    assert [block.conv.kernel.shape for block in encoder.blocks] == [
        (9 * m, n) for m, n in zip(widths_in, channels, strict=True)
    ]
    assert encoder.head.layers[0].kernel.shape == (h * w * channels[-1], 16)
    z = np.asarray(nnx.jit(encoder)(frames(3, *shape)))
    assert z.shape == (3, 5)
    assert z.dtype == jnp.float32
    assert (np.abs(z) < 1).all()
    assert (np.abs(z[0] - z[1]) > 1e-5).all(), "two frames, two codes"


def test_the_papers_widths():
    encoder = nnx.eval_shape(lambda: ResidualEncoder((32, 32, 3), 6, rngs=nnx.Rngs(0)))
    assert [block.conv.out_features for block in encoder.blocks] == [24, 48, 96]
    assert [layer.kernel.shape for layer in encoder.head.layers] == [(4 * 4 * 96, 256), (256, 256), (256, 6)]


def test_against_xla_convolutions(make):
    """The whole encoder written once more, from its weights."""

    @nnx.jit
    def plain(encoder, x):
        line = jnp.linspace(-1, 1, 16)
        y_channel, x_channel = (jnp.broadcast_to(c, (4, 16, 16))[..., None] for c in (line[:, None], line[None, :]))
        h = jnp.concatenate([x.astype(jnp.float32) / 255 * 2 - 1, y_channel, x_channel], -1)
        for block in encoder.blocks:
            kernel = block.conv.kernel[...].reshape(3, 3, h.shape[-1], -1)
            h = jax.lax.conv_general_dilated(
                h, kernel, (2, 2), ((1, 1), (1, 1)), dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            h = block.residuals(h + block.conv.bias[...])
        return jnp.tanh(encoder.head(h.reshape(4, -1)))

    encoder, x = make(), frames(4, 16, 16, 3)
    np.testing.assert_allclose(nnx.jit(encoder)(x), plain(encoder, x), atol=1e-5)


def test_unbounded_is_without_the_tanh(make):
    x = frames(4, 16, 16, 3)
    np.testing.assert_allclose(nnx.jit(make())(x), np.tanh(nnx.jit(make(bounded=False))(x)), rtol=1e-6)


def test_bf16_arithmetic_keeps_float32_weights_and_output(make):
    x = frames(16, 32, 32, 3)
    exact, rounded = make((32, 32, 3)), make((32, 32, 3), dtype=jnp.bfloat16)
    assert {leaf.dtype for leaf in jax.tree.leaves(nnx.state(rounded))} == {jnp.dtype(jnp.float32)}
    z, z16 = (np.asarray(nnx.jit(encoder)(x)) for encoder in (exact, rounded))
    assert z16.dtype == jnp.float32
    difference = np.abs(z - z16)
    assert 0 < difference.max() < 0.03, "bf16 has 8 bits: near, but not equal"
    assert (difference.max(0) < 0.2 * z.std(0)).all(), "the rounding is small beside what tells frames apart"


def test_with_positions():
    x = with_positions(jnp.full((2, 3, 5, 1), 7.0))
    assert x.shape == (2, 3, 5, 3)
    for frame in x:
        np.testing.assert_allclose(frame[..., 0], 7)
        np.testing.assert_allclose(frame[..., 1], np.tile([[-1.0], [0.0], [1.0]], (1, 5)))
        np.testing.assert_allclose(frame[..., 2], np.tile([-1, -0.5, 0, 0.5, 1], (3, 1)))


def test_positions_make_a_moved_blob_another_one(with_weights):
    """A convolution alone moves its features with the blob: their sum says nothing. The position channels do."""
    x = np.zeros((2, 32, 32, 1), np.float32)
    x[0, 6:10, 6:10] = x[1, 6:10, 18:22] = 1  # an even distance apart, far from the borders
    block = with_weights(lambda: Down(3, 8, dtype=jnp.float32, rngs=nnx.Rngs(0)))
    features = nnx.jit(lambda block, x: block(x).sum((1, 2)))
    blind = features(block, jnp.pad(x, ((0, 0), (0, 0), (0, 0), (0, 2))))
    seeing = np.asarray(features(block, with_positions(jnp.asarray(x))))
    np.testing.assert_allclose(blind[0], blind[1], rtol=1e-4, atol=1e-3)
    assert np.abs(seeing[0] - seeing[1]).max() > 1
