"""Each term where its value is known."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from scipy.optimize import minimize

from acf.methods.acf import ACF, Latents, add_noise, forward_loss, losses, ramp, ratio_loss
from acf.methods.base import Spec

N, K, A, NOOP = 7, 2, 3, 1
SPEC = Spec((16, 16, 1), n_actions=A, noop=NOOP, latents=K, depth=1, hidden=4)


@pytest.fixture
def model(with_weights):
    return with_weights(lambda: ACF(SPEC, rngs=nnx.Rngs(0)))


def latents(n=N):
    rng = np.random.default_rng(0)
    z, z_next = jnp.asarray(rng.uniform(-1, 1, (2, n, K)), jnp.float32)
    return Latents(z, jnp.asarray(rng.integers(0, A, n)), z_next)


def zero(module):
    nnx.update(module, jax.tree.map(jnp.zeros_like, nnx.state(module)))


def test_constant_energies(model):
    """Then no next latent is likelier than another, and an action is as likely as the policy makes it."""
    model.energies.w_out[...] = jnp.zeros_like(model.energies.w_out[...])
    model.energies.b_out[...] = jnp.full_like(model.energies.b_out[...], 0.7)
    batch = latents()
    terms = nnx.jit(losses)(model, batch)
    assert float(terms["fwd"]) == pytest.approx(math.log(N), rel=1e-6)
    log_pi = np.asarray(nnx.jit(lambda model: jax.nn.log_softmax(model.policy(batch.z)))(model))
    assert float(terms["inv"]) == pytest.approx(-log_pi[np.arange(N), batch.action].mean(), rel=1e-5)
    assert float(terms["sparsity"]) == pytest.approx(0, abs=1e-6), "no action has an effect: nothing to make sparse"


def test_energies_equal_across_actions(model):
    """Not constant in z', but no action's effect differs from another's."""
    energies = model.energies
    energies.w_out[...] = jnp.broadcast_to(energies.w_out[...][..., :1], energies.w_out.shape)
    energies.b_out[...] = jnp.broadcast_to(energies.b_out[...][..., :1], energies.b_out.shape)
    batch = latents()
    terms = nnx.jit(losses)(model, batch)
    log_pi = np.asarray(nnx.jit(lambda model: jax.nn.log_softmax(model.policy(batch.z)))(model))
    assert float(terms["inv"]) == pytest.approx(-log_pi[np.arange(N), batch.action].mean(), rel=1e-5)
    assert abs(float(terms["fwd"]) - math.log(N)) > 1e-3


def test_policy_that_says_nothing(model):
    zero(model.policy)
    terms = nnx.jit(losses)(model, latents())
    assert float(terms["policy"]) == pytest.approx(math.log(A), rel=1e-6)


def test_ratio_loss_by_hand():
    energies = jnp.array([[1.0, 2.0, 0.5], [0.0, -1.0, 1.0]])
    pi = jnp.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]])
    actual = jax.jit(ratio_loss, static_argnums=3)(energies, jnp.log(pi), jnp.array([0, 1]), 1)

    def softplus(x):
        return math.log(1 + math.exp(x))

    # Two transitions, two classifiers each (0 against 1, 2 against 1). The first was action 0; the second the no-op,
    # which both classifiers deny.
    first = softplus(-((1 - 2) + math.log(0.2 / 0.5))) + softplus((0.5 - 2) + math.log(0.3 / 0.5))
    second = softplus((0 + 1) + math.log(0.6 / 0.1)) + softplus((1 + 1) + math.log(0.3 / 0.1))
    assert float(actual) == pytest.approx((first + second) / 2, rel=1e-6)


def test_ratio_loss_is_least_at_the_log_odds_of_one_action_against_the_rest():
    """Free energies at four (z, z'), and as many transitions of each action as P(a | z, z') says."""
    counts = np.array([[10, 5, 5], [1, 18, 1], [6, 6, 8], [15, 3, 2]])  # out of 20
    point = np.repeat(np.arange(4), 20)
    action = jnp.asarray(np.concatenate([np.repeat(np.arange(A), row) for row in counts]))
    log_pi = np.log(np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3], [1 / 3, 1 / 3, 1 / 3], [0.1, 0.1, 0.8]], np.float32))

    @jax.jit
    @jax.value_and_grad
    def objective(flat):
        return ratio_loss(flat.reshape(4, A)[point], jnp.asarray(log_pi[point]), action, NOOP)

    def in_float64(flat):
        value, gradient = objective(jnp.asarray(flat, jnp.float32))
        return float(value), np.asarray(gradient, np.float64)

    energies = minimize(in_float64, np.zeros(4 * A), jac=True, method="BFGS", options={"gtol": 1e-6}).x.reshape(4, A)
    zeta = log_pi - log_pi[:, [NOOP]]
    logits = energies - energies[:, [NOOP]] + zeta
    probabilities = counts / 20
    for a in (0, 2):
        np.testing.assert_allclose(logits[:, a], np.log(probabilities[:, a] / (1 - probabilities[:, a])), atol=2e-3)


def test_each_next_latent_is_counted_once():
    """By hand: were a transition's own pair also among its negatives, the first row would give log 6/2, not log 4/2."""
    loss = jax.jit(lambda counts: forward_loss(jnp.log(counts)))
    pairs = jnp.array([[2.0, 1.0, 1.0], [1.0, 3.0, 1.0], [1.0, 1.0, 4.0]])
    expected = (math.log(4 / 2) + math.log(5 / 3) + math.log(6 / 4)) / 3
    assert float(loss(pairs)) == pytest.approx(expected, rel=1e-6)
    # i is the row: transition i chooses among next latents j
    pairs = jnp.array([[1.0, 9.0], [1.0, 3.0]])
    assert float(loss(pairs)) == pytest.approx((math.log(10 / 1) + math.log(4 / 3)) / 2, rel=1e-6)


def test_a_transition_alone_has_no_negatives(model):
    assert float(nnx.jit(losses)(model, latents(1))["fwd"]) == pytest.approx(0, abs=1e-6)


def test_noise_is_fresh_for_both_latents_and_has_the_scale_asked():
    add = jax.jit(add_noise)
    z = jnp.zeros((2000, K))
    noisy = add(Latents(z, jnp.zeros(2000, int), jnp.ones((2000, K))), jax.random.key(0), 0.3)
    eps, eps_next = np.asarray(noisy.z), np.asarray(noisy.z_next) - 1
    for noise in (eps, eps_next):
        assert np.abs(noise.mean(0)).max() < 0.03
        np.testing.assert_allclose(noise.std(0), 0.3, rtol=0.05)
    columns = np.corrcoef(np.hstack([eps, eps_next]).T)
    assert np.abs(columns - np.eye(2 * K)).max() < 0.1
    without = add(latents(), jax.random.key(0), 0.0)
    assert all((a == b).all() for a, b in zip(without, latents(), strict=True))


@pytest.mark.parametrize(
    ("epoch", "expected"), [(0, 0), (5, 0), (6, 0.2), (7.5, 0.5), (10, 1), (200, 1)], ids=lambda value: str(value)
)
def test_ramp(epoch, expected):
    assert float(ramp(jnp.float32(epoch), 5.0, 10.0)) == pytest.approx(expected)


def test_ramp_of_no_length_is_a_step():
    assert [float(ramp(jnp.float32(epoch), 5.0, 5.0)) for epoch in (4.99, 5.01)] == [0, 1]
