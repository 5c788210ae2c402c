"""The decoder: the encoder's mirror."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from acf.nn import Decoder, ResidualEncoder
from acf.nn.decoder import PACE, centre_crop

ADAM = optax.adam(1e-3)


@pytest.fixture
def make(with_weights):
    def make(frame_shape, **options):
        decoder = with_weights(lambda: Decoder(5, frame_shape, depth=4, hidden=16, rngs=nnx.Rngs(0), **options))
        decoder.bias[...] = decoder.bias[...] / PACE
        return decoder

    return make


def latents():
    return jnp.asarray(np.random.default_rng(0).normal(size=(2, 5)), jnp.float32)


@pytest.mark.parametrize("shape", [(16, 16, 1), (20, 33, 3), (84, 84, 4), (128, 128, 3)], ids=str)
def test_any_frame_size(make, shape):
    decoder = make(shape)
    encoder = nnx.eval_shape(lambda: ResidualEncoder(shape, 5, depth=4, hidden=16, rngs=nnx.Rngs(0)))
    steps = [block.conv for block in decoder.blocks] + [decoder.to_pixels]
    assert [step.in_features for step in steps] == [block.conv.out_features for block in reversed(list(encoder.blocks))]
    x = np.asarray(nnx.jit(decoder)(latents()))
    assert x.shape == (2, *shape)
    assert x.dtype == jnp.float32
    assert (np.abs(x) <= 1).all()
    assert np.abs(x).min() < 0.9, "not all at the ends of tanh"
    assert (x[0] != x[1]).mean() > 0.9, "two codes, two frames"


def test_every_pixel_hangs_on_the_latents(make):
    # with a size that is cropped on both axes, and pixels that only the border taps of the 3x3 kernels reach
    decoder, z = make((20, 33, 1)), latents()[:1]
    _, slope = jax.jit(lambda z: jax.jvp(decoder, (z,), (jnp.ones_like(z),)))(z)
    assert np.asarray(slope != 0).all()


def test_the_mean_frame_is_learned_first(make):
    """A few dozen steps of Adam make it, by the bias alone; the networks would need hundreds."""
    decoder = make((16, 16, 1))
    decoder.bias[...] = jnp.zeros_like(decoder.bias[...])
    pattern = 0.9 * jnp.sign(jnp.asarray(np.random.default_rng(1).normal(size=(16, 16, 1)), jnp.float32))
    graph, params = nnx.split(decoder)
    z = jnp.asarray(np.random.default_rng(0).normal(size=(64, 5)), jnp.float32)

    def error(params):
        made = nnx.merge(graph, params)(z)
        return ((made - pattern) ** 2).mean()

    def step(carry, _):
        params, state = carry
        updates, state = ADAM.update(jax.grad(error)(params), state)
        return (optax.apply_updates(params, updates), state), None

    (learned, _), _ = jax.jit(lambda params: jax.lax.scan(step, (params, ADAM.init(params)), length=60))(params)
    mean = jnp.tanh(PACE * nnx.merge(graph, learned).bias[...])
    assert np.array_equal(np.sign(mean), np.sign(pattern))
    assert np.abs(mean).min() > 0.3


def test_bf16_arithmetic_keeps_float32_output(make):
    exact, rounded = (nnx.jit(make((16, 16, 3), dtype=dtype))(latents()) for dtype in (jnp.float32, jnp.bfloat16))
    assert rounded.dtype == jnp.float32
    assert 0 < np.abs(np.asarray(exact - rounded)).mean() < 0.05


def test_centre_crop_by_hand():
    x = jnp.arange(6 * 5).reshape(1, 6, 5, 1).astype(jnp.float32)
    # one row off each end; of the two columns too many, one off each side
    np.testing.assert_array_equal(centre_crop(x, (4, 3, 1))[0, ..., 0], x[0, 1:5, 1:4, 0])
    # an odd one too many goes from the end
    np.testing.assert_array_equal(centre_crop(x, (5, 4, 1))[0, ..., 0], x[0, :5, :4, 0])
