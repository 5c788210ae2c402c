"""The encoder over places: what adds up, what moves by the same amount everywhere, and any size of frame."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from acf.nn import PlacesEncoder
from acf.nn.places import REACH, patches, places

# frame shape, the stride, places down and across
PLANS = {
    (16, 16, 1): (1, 16, 16),
    (32, 32, 3): (2, 16, 16),
    (40, 40, 3): (2, 20, 20),
    (20, 33, 2): (2, 10, 17),
    (84, 84, 4): (5, 17, 17),
    (210, 160, 3): (11, 20, 15),
    (16, 128, 2): (3, 6, 43),
    (256, 256, 3): (16, 16, 16),
}


@pytest.fixture
def make(with_weights):
    def make(frame_shape=(32, 32, 3), mean=0.0, **options):
        encoder = with_weights(lambda: PlacesEncoder(frame_shape, 5, width=8, rngs=nnx.Rngs(0), **options))
        encoder.mean[...] = jnp.full(frame_shape, mean)
        return encoder

    return make


def draw(*objects, background=0, shape=(32, 32, 3)):
    """A picture with objects of 4 x 4 pixels at these rows and columns, each of its own colour."""
    frame = np.full(shape, background, np.uint8)
    for row, column, colour in objects:
        frame[row : row + 4, column : column + 4] = colour
    return frame


def encode(encoder, *frames):
    return np.asarray(nnx.jit(encoder)(jnp.asarray(np.stack(frames))), np.float64)


RED, GREEN = (250, 20, 30), (10, 240, 90)


@pytest.mark.parametrize("shape", PLANS, ids=str)
def test_any_frame_has_a_few_hundred_places(make, shape):
    stride, h, w = PLANS[shape]
    encoder = make(shape)
    assert encoder.stride == stride
    x = np.random.default_rng(0).integers(0, 256, (3, *shape), dtype=np.uint8)
    assert patches(jnp.asarray(x), stride).shape == (3, h, w, (2 * stride) ** 2 * shape[2])
    assert 150 <= h * w <= 400
    z = encode(encoder, *x)
    assert z.shape == (3, 5)
    assert (np.abs(z) <= 1).all()
    assert (np.abs(z[0] - z[1]) > 1e-6).any(), "two frames, two codes"


def test_patches_are_the_neighbourhoods():
    """By hand: place (r, c) sees the stride's pixels around (s·r, s·c), from s // 2 before it on; zeros outside."""
    frames = np.random.default_rng(0).integers(1, 256, (2, 7, 9, 2), dtype=np.uint8)
    s, before = 3, 1
    found = np.asarray(patches(jnp.asarray(frames), s))
    assert found.shape == (2, 3, 3, 2 * s * 2 * s * 2)
    padded = np.pad(frames, ((0, 0), (before, 20), (before, 20), (0, 0)))
    for r in range(3):
        for c in range(3):
            patch = padded[:, s * r : s * r + 2 * s, s * c : s * c + 2 * s]
            np.testing.assert_array_equal(found[:, r, c], patch.reshape(2, -1))


def test_the_mean_picture_gives_the_bias(make):
    for mean in (0.0, 90.0):
        encoder = make(bounded=False, mean=mean)
        z = encode(encoder, draw(background=int(mean)))
        np.testing.assert_allclose(z[0], encoder.add_up.bias[...], atol=1e-6)


def test_what_far_apart_objects_add_adds_up(make):
    encoder = make(bounded=False)
    both, red, green, none = encode(
        encoder, draw((4, 4, RED), (20, 22, GREEN)), draw((4, 4, RED)), draw((20, 22, GREEN)), draw()
    )
    assert np.abs(red - none).max() > 0.05, "something to add"
    np.testing.assert_allclose(both - none, (red - none) + (green - none), atol=1e-5)


def test_what_an_object_adds_does_not_hang_on_the_layout(make):
    encoder = make(bounded=False)
    for layout in ([], [(24, 24, GREEN)], [(24, 2, GREEN), (14, 24, GREEN)]):
        there, gone = encode(encoder, draw((6, 8, RED), *layout), draw(*layout))
        change = there - gone
        expected = encode(encoder, draw((6, 8, RED)))[0] - encode(encoder, draw())[0]
        np.testing.assert_allclose(change, expected, atol=1e-5)


def test_a_move_changes_the_latents_by_the_same_amount_everywhere(make):
    encoder = make(bounded=False)
    moves = [(4, 4), (12, 8), (20, 18)]
    right = [encode(encoder, draw((r, c, RED)), draw((r, c + 2, RED))) for r, c in moves]
    down = [encode(encoder, draw((r, c, RED)), draw((r + 2, c, RED))) for r, c in moves]
    for pairs in (right, down):
        changes = np.array([after - before for before, after in pairs])
        assert np.abs(changes).max() > 1e-3
        np.testing.assert_allclose(changes, np.tile(changes[:1], (3, 1)), atol=1e-5)
    assert np.abs((right[0][1] - right[0][0]) - (down[0][1] - down[0][0])).max() > 1e-3, "but x is not y"


def test_the_shares_of_the_places_add_up_to_the_latents(make):
    encoder = make(bounded=False)
    frames = jnp.asarray(np.stack([draw((4, 4, RED)), draw((20, 22, GREEN))]))
    seen = nnx.jit(lambda encoder, x: encoder.seen(x))(encoder, frames)
    np.testing.assert_allclose(seen.z, nnx.jit(encoder)(frames), atol=1e-5)
    np.testing.assert_allclose(seen.shares.sum(1) + encoder.add_up.bias[...], seen.z, atol=1e-4)
    looked_at = np.abs(np.asarray(seen.shares)).max(2).reshape(2, 16, 16) > 1e-6
    assert looked_at[0, 2:4, 2:4].all()
    assert not looked_at[0, 5:].any(), "only where the object is"


def test_the_coordinates_of_places():
    where = np.asarray(places(3, 5)).reshape(3, 5, 3) * np.sqrt(15) / 2
    np.testing.assert_allclose(where[..., 0], 1, rtol=1e-6)
    np.testing.assert_allclose(where[..., 1], np.tile(np.linspace(-REACH, REACH, 5), (3, 1)), rtol=1e-6)
    np.testing.assert_allclose(where[..., 2], np.tile(np.linspace(-REACH, REACH, 3)[:, None], (1, 5)), rtol=1e-6)


def test_bounded_ends_in_tanh(make):
    frame = draw((4, 4, RED))
    np.testing.assert_allclose(encode(make(), frame), np.tanh(encode(make(bounded=False), frame)), rtol=1e-6)


def test_bf16_keeps_float32_weights_and_output(make):
    frames = np.random.default_rng(0).integers(0, 256, (8, 32, 32, 3), dtype=np.uint8)
    exact, rounded = make(bounded=False), make(bounded=False, dtype=jnp.bfloat16)
    assert {leaf.dtype for leaf in jax.tree.leaves(nnx.state(rounded))} == {jnp.dtype(jnp.float32)}
    assert nnx.jit(rounded)(jnp.asarray(frames)).dtype == jnp.float32
    z, z16 = encode(exact, *frames), encode(rounded, *frames)
    assert 0 < np.abs(z - z16).max() < 0.05 * np.abs(z).max()


def test_the_mean_does_not_learn(make):
    encoder, x = make(mean=60.0), jnp.asarray(draw((4, 4, RED)))[None]
    gradient = nnx.jit(nnx.grad(lambda encoder: encoder(x).sum()))(encoder)
    assert not np.asarray(gradient["mean"][...]).any()
    assert np.asarray(gradient["add_up"]["kernel"][...]).any()
