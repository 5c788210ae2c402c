"""The guard against collapse: silent for healthy latents, a way back for the others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acf.methods.guard import MAX_MEAN, MIN_SPREAD, guard_loss

value_and_gradient = jax.jit(jax.value_and_grad(guard_loss))


def test_silent_for_healthy_latents():
    rng = np.random.default_rng(0)
    z = jnp.asarray(np.tanh(rng.normal([0, 0.4, -0.3], [0.5, 0.6, 1.0], (64, 3))), jnp.float32)
    assert (np.abs(np.mean(z, 0)) < MAX_MEAN).all()
    assert (np.std(z, 0) > MIN_SPREAD).all()
    value, gradient = value_and_gradient(z)
    assert float(value) == 0
    assert not np.any(gradient)


@pytest.mark.parametrize("constant", [0.0, 0.3, -0.99, 1.0])
def test_finite_for_constant_latents(constant):
    value, gradient = value_and_gradient(jnp.full((8, 2), constant))
    expected = max(abs(constant) - MAX_MEAN, 0) ** 2 + MIN_SPREAD**2
    assert float(value) == pytest.approx(expected, rel=1e-4)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("sign", [1, -1])
def test_pushes_a_saturated_latent_back(sign):
    """One latent at the end of tanh beside a healthy one: a step down the gradient moves it, and it alone."""
    rng = np.random.default_rng(0)
    healthy = rng.uniform(-0.9, 0.9, 32)
    saturated = sign * rng.uniform(0.95, 0.99, 32)
    z = jnp.asarray(np.stack([saturated, healthy], 1), jnp.float32)
    gradient = np.asarray(value_and_gradient(z)[1])
    assert float(gradient[:, 0].mean()) * sign > 0
    assert not gradient[:, 1].any()
    moved = np.asarray(z) - 2 * gradient
    assert abs(moved[:, 0].mean()) < abs(saturated.mean())


def test_spreads_latents_that_are_close():
    z = jnp.asarray(np.random.default_rng(0).normal(0, 0.01, (32, 1)), jnp.float32)
    gradient = np.asarray(value_and_gradient(z)[1])
    centred = np.asarray(z) - np.mean(z)
    assert ((gradient * centred) < 0).all(), "each moves away from the mean"


def test_is_the_mean_over_latents():
    z = jnp.asarray([[0.9, -0.5], [0.9, 0.5]] * 4)
    assert float(value_and_gradient(z)[0]) == pytest.approx((0.4**2 + 0.25**2) / 2, rel=1e-4)
