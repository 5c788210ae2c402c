"""Intervals of errors written by hand: no regressor is trained."""

import numpy as np
import pytest

from acf.metrics.bootstrap import interval, r2_draws
from acf.metrics.regression import HeldOutErrors, r2_of


def errors(rng: np.random.Generator, n: int, share: float) -> HeldOutErrors:
    """A factor of unit variance of which `share` is left unexplained."""
    s = rng.normal(size=(n, 1)).astype(np.float32)
    squared = (share * rng.normal(size=(n, 1, 1)) ** 2).astype(np.float32)
    return HeldOutErrors(squared, s, np.array([[True]]))


def ends(found: HeldOutErrors, episode: np.ndarray, seed: int = 0) -> tuple[float, float]:
    low, high = interval(r2_draws(np.random.default_rng(seed), found, episode))[:, 0, 0]
    return low, high


def test_covers_the_true_value_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(60):
        low, high = ends(errors(rng, 300, 0.4), np.arange(300))
        covered.append(low < 0.6 < high)
    assert 0.88 <= np.mean(covered) <= 1.0


def test_more_data_is_a_narrower_interval():
    rng = np.random.default_rng(0)
    few, many = (np.diff(ends(errors(rng, n, 0.4), np.arange(n)))[0] for n in (200, 3200))
    assert few / many == pytest.approx(4, rel=0.35)


def test_rows_of_one_episode_count_once():
    once = errors(np.random.default_rng(0), 200, 0.4)
    tenfold = HeldOutErrors(once.squared.repeat(10, 0), once.s.repeat(10, 0), once.known)
    width = np.diff(ends(once, np.arange(200)))[0]
    assert np.diff(ends(tenfold, np.arange(200).repeat(10)))[0] == pytest.approx(width, rel=0.05)
    assert np.diff(ends(tenfold, np.arange(2000)))[0] < 0.5 * width


def test_perfect_and_constant_have_no_width():
    found = errors(np.random.default_rng(0), 100, 0.0)
    assert ends(found, np.arange(100)) == (1, 1)
    assert ends(found._replace(known=np.array([[False]])), np.arange(100)) == (0, 0)
    constant = found._replace(s=np.full((100, 1), 0.3, np.float32))
    assert ends(constant, np.arange(100)) == (0, 0)


def test_each_row_once_is_the_score_itself():
    found = errors(np.random.default_rng(0), 100, 0.4)
    np.testing.assert_allclose(r2_of(found, np.ones((2, 100))), np.stack([r2_of(found)] * 2), atol=1e-6)
