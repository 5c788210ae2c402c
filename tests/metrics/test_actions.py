"""Score differences and movements written by hand."""

import numpy as np
import pytest

from acf.metrics import action_effects, movement, strongest

NOOP, UP, RIGHT, OPEN = range(4)
N = 100


@pytest.fixture
def scores() -> np.ndarray:
    """Latent 0 moves up, 1 moves right, 2 opens in every fourth state only; all pushed by the world itself as well."""
    scores = np.random.default_rng(0).normal(size=(N, 3, 1)).repeat(4, axis=2)
    scores[:, 0, UP] += 2
    scores[:, 1, RIGHT] -= 3
    scores[::4, 2, OPEN] += 2
    return scores


def test_one_sparse(scores):
    effects = action_effects(scores, NOOP)
    np.testing.assert_allclose(effects.mean, [[0, 2, 0, 0], [0, 0, 3, 0], [0, 0, 0, 0.5]], atol=1e-12)
    assert effects.sparsity == pytest.approx(1)
    assert effects.sparsity_of_action == pytest.approx([0, 1, 1, 1])
    np.testing.assert_allclose(effects.moved, [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0.25]])
    # 225 of 900 entries are not 0: dealt out at random, they often share a transition
    assert 0.6 < effects.chance < 0.95


def test_another_noop(scores):
    swapped = action_effects(scores[:, :, ::-1], noop=3)
    np.testing.assert_allclose(swapped.mean, action_effects(scores, NOOP).mean[:, ::-1])
    assert swapped.sparsity == pytest.approx(1)


def test_spread_evenly():
    scores = np.zeros((N, 4, 2))
    scores[:, :, 1] = 1.5
    effects = action_effects(scores, noop=0)
    assert effects.sparsity == pytest.approx(1 / 4)
    assert effects.chance == pytest.approx(1 / 4)


def test_a_rotation_is_not_sparse(scores):
    turned = scores.copy()
    turned[:, 0], turned[:, 1] = scores[:, 0] + scores[:, 1], scores[:, 0] - scores[:, 1]
    assert action_effects(turned, NOOP).sparsity_of_action[[UP, RIGHT]] == pytest.approx([0.5, 0.5])


def test_no_effect_at_all():
    effects = action_effects(np.ones((N, 2, 3)), NOOP)
    assert (effects.sparsity, effects.chance) == (0, 0)
    assert effects.moved.max() == 0
    assert np.isfinite(effects.sparsity_of_action).all()


def test_strongest_says_in_which_states(scores):
    most = strongest(np.abs(scores - scores[:, :, [NOOP]]))
    assert (most[:, NOOP] == -1).all()
    assert (most[:, UP] == 0).all()
    assert most[:8, OPEN].tolist() == [2, -1, -1, -1, 2, -1, -1, -1]


def test_movement():
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, (N, 2)) * [1, 50]
    action = np.arange(N) % 3
    step = np.zeros((N, 2))
    step[action == 1, 0] = 0.5
    step[action == 2, 1] = -25
    found = movement(z, z + step, action, 4)
    np.testing.assert_allclose(found[0], [0, 0.5 / z[:, 0].std(), 0, 0], atol=1e-12)
    np.testing.assert_allclose(found[1], [0, 0, 25 / z[:, 1].std(), 0], atol=1e-12)
    assert movement(z * [1, 0], z * [1, 0], action, 3).max() == 0


def test_bad_input_is_named(scores):
    with pytest.raises(ValueError, match=r"scores must be \[transitions, latents, actions\]"):
        action_effects(scores[0], NOOP)
    with pytest.raises(ValueError, match="noop must be one of the 4 actions, got 4"):
        action_effects(scores, 4)
    scores[[2, 7], 1, 0] = np.nan
    with pytest.raises(ValueError, match="scores are not finite at 2 of 100 transitions"):
        action_effects(scores, NOOP)
    with pytest.raises(ValueError, match="z has 3 rows, z_next has 3 rows, action has 2 rows"):
        movement(np.ones((3, 1)), np.ones((3, 1)), np.array([0, 1]), 2)
