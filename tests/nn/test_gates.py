"""Gumbel-sigmoid gates: how often they open, what passes when they do not, and their gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acf.nn import sample_gates

ROWS = 20_000
LOGITS = jnp.array([[-2.0, 0.0], [1.0, 5.0]])
sample = jax.jit(sample_gates, static_argnums=2)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 7.4])
def test_hard_gates_are_open_as_often_as_the_logit_says(temperature):
    gates = np.asarray(sample(LOGITS, jax.random.key(0), ROWS, temperature))
    assert gates.shape == (ROWS, 2, 2)
    np.testing.assert_allclose(gates, gates.round(), atol=1e-6)
    probability = 1 / (1 + np.exp(-np.asarray(LOGITS)))
    error = np.abs(gates.mean(0) - probability) / np.sqrt(probability * (1 - probability) / ROWS)
    assert error.max() < 4, "standard errors"


def test_rows_and_edges_are_independent():
    gates = np.asarray(sample(jnp.zeros(3), jax.random.key(0), ROWS, 1.0))
    assert np.abs(np.corrcoef(gates.T) - np.eye(3)).max() < 0.03
    assert abs(np.corrcoef(gates[1:, 0], gates[:-1, 0])[0, 1]) < 0.03


def test_soft_gates_leak_at_a_high_temperature():
    """Why hard ones are the default: at the paper's 7.417, open is 0.66 and closed 0.34 on average."""
    soft = np.asarray(sample(jnp.array([5.0, -5.0]), jax.random.key(0), ROWS, 7.417, 0.0))
    np.testing.assert_allclose(soft.mean(0), [0.660, 0.340], atol=0.003)
    assert ((soft > 0) & (soft < 1)).all()


@pytest.mark.parametrize("hard", [0.0, 1.0])
def test_the_gradient_is_that_of_the_soft_sample(hard):
    key = jax.random.key(0)
    slope = jax.jit(jax.grad(lambda logits: sample_gates(logits, key, 4, 2.0, hard).sum()))(LOGITS)
    soft = np.asarray(sample(LOGITS, key, 4, 2.0, 0.0))
    np.testing.assert_allclose(slope, (soft * (1 - soft) / 2).sum(0), rtol=1e-5)
    assert (np.asarray(slope) > 0).all()


def test_finite_for_the_most_extreme_draws():
    logits = jnp.array([-50.0, 50.0])
    value, slope = jax.jit(jax.value_and_grad(lambda a: sample_gates(a, jax.random.key(0), ROWS, 0.1).sum()))(logits)
    assert np.isfinite(value)
    assert np.isfinite(slope).all()
