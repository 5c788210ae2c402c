"""The score-difference sparsity: the theorem's condition 4 as a loss."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from acf.methods.acf import forward_loss, score_differences
from acf.methods.acf import sparsity_loss as eager_sparsity_loss
from acf.nn import Energies

K = 4
sparsity_loss = jax.jit(eager_sparsity_loss)


def differences(*columns):
    """One transition, and for each action the K entries of g."""
    return jnp.asarray(np.array(columns, np.float32).T[None])


def test_one_sparse_is_zero():
    assert float(sparsity_loss(differences([0, 3, 0, 0], [0, 0, -0.01, 0], [5, 0, 0, 0]))) == pytest.approx(0, abs=1e-6)


def test_equal_entries_are_the_worst():
    worst = np.sqrt(K) - 1
    assert float(sparsity_loss(differences([2, -2, 2, 2]))) == pytest.approx(worst, rel=1e-6)
    rng = np.random.default_rng(0)
    values = [float(sparsity_loss(jnp.asarray(rng.normal(size=(1, K, 1)), jnp.float32))) for _ in range(20)]
    assert 0 < min(values) < max(values) < worst


def test_by_hand():
    # ‖(3, 4)‖₁/‖·‖₂ = 7/5; the mean has weights 5 and 10
    actual = sparsity_loss(differences([3, 4, 0, 0], [10, 0, 0, 0]))
    assert float(actual) == pytest.approx((5 * (7 / 5 - 1) + 10 * 0) / 15, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_free_of_scale(scale):
    g = jnp.asarray(np.random.default_rng(0).normal(size=(5, K, 3)), jnp.float32)
    assert float(sparsity_loss(scale * g)) == pytest.approx(float(sparsity_loss(g)), rel=1e-4)


def test_actions_without_effect_do_not_count():
    alone = float(sparsity_loss(differences([1, 2, 0, 0])))
    assert alone > 0.1
    assert float(sparsity_loss(differences([1, 2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]))) == pytest.approx(alone, rel=1e-6)
    # nearly no effect, in all latents: noise, not a lack of sparsity
    assert float(sparsity_loss(differences([0, 2, 0, 0], [1e-3, 1e-3, 1e-3, 1e-3]))) < 2e-3


def test_no_effect_at_all():
    """As at a collapse. 1-sparse it is, and its gradient must not be NaN: one NaN stops a member for good."""
    value, gradient = jax.jit(jax.value_and_grad(eager_sparsity_loss))(jnp.zeros((2, K, 3)))
    assert float(value) == pytest.approx(0, abs=1e-6)
    assert jnp.isfinite(gradient).all()


def test_the_gradient_makes_sparse_without_shrinking():
    """The small entry shrinks and the large one grows: scale-free, so g has no component along itself."""
    g = differences([3, 1, 0, 0])
    gradient = np.asarray(jax.jit(jax.grad(eager_sparsity_loss))(g))
    assert gradient[0, 1, 0] > 0 > gradient[0, 0, 0]
    assert float((np.asarray(g) * gradient).sum()) == pytest.approx(0, abs=1e-6)


def test_differences_agree_with_autodiff_of_the_energies(with_weights):
    N, A, noop = 5, 4, 2
    energies = with_weights(lambda: Energies(K, A, hidden=8, rngs=nnx.Rngs(0)))
    rng = np.random.default_rng(0)
    z, z_next = jnp.asarray(rng.normal(size=(2, N, K)), jnp.float32)

    def log_ratios(z_next_n, z_n):
        total = energies.diagonal(z_next_n[None], z_n[None])[0].sum(0)
        return total - total[noop]

    # of the whole log-ratio Σ_k ΔE_k: its gradient's entry k is that of ΔE_k, as no other energy sees z'_k
    expected = jax.jit(jax.vmap(jax.jacrev(log_ratios)))(z_next, z)  # [N, A, K]
    expected = expected.swapaxes(1, 2)
    actual = jax.jit(lambda z_next, z: score_differences(energies.scores(z_next, z), noop))(z_next, z)
    assert not actual[:, :, noop].any()
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_zero_for_axis_aligned_and_positive_for_rotated_effects():
    """A Gaussian world `s' ~ N(s + δ_a, σ²)` with its exact energies, in its own coordinates and turned by 45°.

    Turned, the noise is still independent, so the energies are as exact as before and InfoNCE cannot tell: only the
    sparsity does.
    """
    sigma, noop = 0.3, 2
    delta = np.array([[0.5, 0], [-0.5, 0], [0, 0], [0, 0.5], [0, -0.5]], np.float32)
    turn = np.array([[1, -1], [1, 1]], np.float32) / np.float32(np.sqrt(2))
    rng = np.random.default_rng(0)
    s = rng.uniform(-1, 1, (30, 2)).astype(np.float32)
    action = rng.integers(0, 5, 30)
    s_next = s + delta[action] + sigma * rng.normal(size=(30, 2)).astype(np.float32)

    def energy(z_next_k, z_k, delta_k):
        return -((z_next_k - z_k - delta_k) ** 2) / (2 * sigma**2)

    @jax.jit
    def both_losses(z, z_next, delta):
        pairs = energy(z_next[None], z[:, None], delta[action][:, None]).sum(-1)  # [N, N]
        score = jnp.vectorize(jax.grad(energy))
        scores = score(z_next[:, :, None], z[:, :, None], delta.T[None])  # [N, K, A]
        differences = score_differences(scores, noop)
        return forward_loss(pairs), sparsity_loss(differences), differences

    fwd, sparsity, differences = both_losses(s, s_next, delta)
    fwd_turned, sparsity_turned, _ = both_losses(s @ turn.T, s_next @ turn.T, delta @ turn.T)
    # of a Gaussian the score difference is δ_a / σ², wherever s and s' are
    np.testing.assert_allclose(differences[7], delta.T / sigma**2, atol=1e-4)
    assert float(fwd) == pytest.approx(float(fwd_turned), rel=1e-4)
    assert float(sparsity) == pytest.approx(0, abs=1e-4)
    assert float(sparsity_turned) == pytest.approx(np.sqrt(2) - 1, abs=1e-4)
