"""Agreement of members whose true answer is known."""

import itertools

import numpy as np
import pytest

from acf.metrics import udr

GRID = np.array(list(itertools.product(range(6), repeat=3)), float)  # three factors that know nothing of each other


def test_the_same_up_to_order_sign_and_monotone_maps():
    others = [GRID[:, [2, 0, 1]], -(GRID**3), np.exp(GRID[:, ::-1])]
    found = udr(np.stack([GRID, *others]))
    assert found.value == pytest.approx(1)
    np.testing.assert_allclose(found.agreement, 1 - np.eye(4))
    np.testing.assert_allclose(found.of_member, 1)


def test_noise_agrees_with_nothing():
    z = np.random.default_rng(0).normal(size=(3, 20_000, 4))
    assert udr(z).value < 0.01


def test_one_member_among_others_that_agree():
    noise = np.random.default_rng(0).normal(size=GRID.shape)
    found = udr(np.stack([GRID, GRID, noise]))
    assert found.of_member[0] == pytest.approx(0.5, abs=0.1)
    assert found.of_member[2] < 0.15
    assert found.value == pytest.approx(found.agreement[np.triu_indices(3, 1)].mean())


def test_a_constant_latent_counts_as_nothing():
    dropped = GRID * [1, 1, 0]
    assert udr(np.stack([dropped, dropped])).value == pytest.approx(2 / 3)
    assert udr(np.zeros((2, 10, 3))).value == 0


def test_two_latents_for_one_factor():
    twice = GRID[:, [0, 0, 1]]
    assert udr(np.stack([twice, twice])).value == pytest.approx((1 / 2 + 1 / 2 + 1) / 3)


def test_members_that_mix_two_factors_differently():
    """Both are as informative as the factors; a latent of one is spread over two of the other."""
    turn = np.array([[1, 1, 0], [1, -1, 0], [0, 0, 1.0]])
    assert udr(np.stack([GRID, GRID @ turn])).value < 0.75


@pytest.mark.parametrize("shape", [(1, 5, 2), (5, 2), (2, 0, 2)])
def test_bad_shapes(shape):
    with pytest.raises(ValueError, match="must be"):
        udr(np.zeros(shape))


def test_not_finite():
    with pytest.raises(ValueError, match="z of member 1: latent 0 is not finite in 1 of 4 rows"):
        udr(np.array([np.zeros((4, 2)), [[np.nan, 0], [0, 0], [0, 0], [0, 0]]]))
