"""Nodes: a function of one number, known at a few of its values, is known at all."""

import jax.numpy as jnp
import numpy as np
import pytest

from acf.nn.nodes import STEP, choose, enough

STEEPNESSES = (0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 13.0, 20.0, 30.0, 45.0)
ROOM = 400


def silu(x):
    return x / (1 + np.exp(-x))


def slope(x):
    s = 1 / (1 + np.exp(-x))
    return s * (1 + x * (1 - s))


def polynomial(count, v):
    """Chebyshev's points in (-1, 1), and what a value at each of them adds at every v. In float64, by cosines."""
    angle = np.pi * (np.arange(count) + 0.5) / count
    degree = np.arange(count)[:, None]
    cosines = np.cos(degree * np.arccos(v)) * np.where(degree == 0, 1, 2) / count
    return np.cos(angle), np.cos(degree * angle).T @ cosines


def worst(f, count, steepness):
    """The largest error of f(u + w v) anywhere in v and, of all that u can do, for the worst u."""
    v = np.cos(np.linspace(0, np.pi, 501))
    t, weights = polynomial(count, v)
    u = np.linspace(-steepness - 3, steepness + 3, 81)[:, None]
    return abs(f(u + steepness * t) @ weights - f(u + steepness * v)).max()


@pytest.mark.parametrize("steepness", STEEPNESSES)
def test_as_many_as_are_needed(steepness):
    count = int(enough(jnp.array(steepness), ROOM))
    assert worst(silu, count, steepness) < 1.2e-7
    assert worst(slope, count, steepness) < 1.2e-6


@pytest.mark.parametrize("steepness", [6.0, 9.0, 20.0, 45.0])
def test_and_not_many_more(steepness):
    """With a quarter less, float32 would show it."""
    count = int(enough(jnp.array(steepness), ROOM))
    assert worst(silu, 3 * count // 4, steepness) > 1e-6


@pytest.mark.parametrize("steepness", STEEPNESSES)
@pytest.mark.parametrize("middle", [0.0, -0.7])
def test_in_float32(steepness, middle):
    rng = np.random.default_rng(0)
    v = jnp.asarray(middle + rng.uniform(-1, 1, ROOM), jnp.float32)
    nodes = choose(v, jnp.array([steepness, -0.3]))
    assert nodes.t.shape == (ROOM,)
    assert nodes.weights.shape == (ROOM, ROOM)
    assert nodes.used < ROOM
    assert (nodes.weights[nodes.used :] == 0).all()
    np.testing.assert_allclose(nodes.weights.sum(0), 1, atol=1e-5)
    t, weights, v = (np.asarray(x, np.float64) for x in (nodes.t, nodes.weights, v))
    for w in (steepness, -0.3):
        for u in (-steepness, 0.0, 1.0):
            np.testing.assert_allclose(silu(u + w * t) @ weights, silu(u + w * v), atol=2e-6 * max(1, steepness))


@pytest.mark.parametrize(
    ("w", "reach", "count"), [((1.0, 0.0), 1.0, 16), ((6.0, -1.0), 1.0, 40), ((-6.0, 2.0), 0.1, 16)]
)
def test_how_many_follows_from_steepness_and_range(w, reach, count):
    """⌈5.5 |w| r + 5⌉, in eights."""
    assert choose(reach * jnp.linspace(-1, 1, 200), jnp.array(w)).used == count


def test_numbers_themselves_where_that_is_not_more():
    v = jnp.asarray(np.random.default_rng(0).normal(size=20), jnp.float32)
    assert choose(v, jnp.array([0.1])).used == STEP
    nodes = choose(v, jnp.array([9.0]))
    assert nodes.used == 24
    np.testing.assert_array_equal(nodes.t, [*v, 0, 0, 0, 0])
    np.testing.assert_array_equal(nodes.weights, np.eye(24, 20))


@pytest.mark.parametrize("size", [3, 100])
def test_numbers_that_are_all_the_same(size):
    """Collapsed latents have no range."""
    v = jnp.full(size, 0.25)
    nodes = choose(v, jnp.ones(1))
    np.testing.assert_allclose(nodes.t @ nodes.weights, v, rtol=1e-5)


def test_numbers_that_are_nodes():
    """No 0 / 0."""
    w, ends, rest = jnp.ones(1), jnp.array([-1.0, 1.0]), jnp.zeros(98)
    t = choose(jnp.concatenate([ends, rest]), w).t[:16]
    v = jnp.concatenate([ends, t, rest])
    nodes = choose(v, w)
    assert nodes.used == 16
    np.testing.assert_allclose(nodes.weights[:16, 2:18], np.eye(16), atol=1e-9)
    np.testing.assert_allclose(nodes.t @ nodes.weights, v, atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_network_that_has_diverged_does_not_take_forever(bad):
    v = jnp.linspace(-1, 1, 64)
    assert choose(v, jnp.array([bad])).used == 64
    assert 0 < choose(v.at[3].set(bad), jnp.ones(1)).used <= 64
