"""Matching and scores of R² matrices written by hand."""

import math

import numpy as np
import pytest

from acf.metrics import match, score, summary

R2 = np.array([[0.2, 0.9, 0.1], [0.7, 0.6, 0.3], [0.0, 0.4, 0.5]])


def test_perfect():
    scores = score(np.eye(3), controllable=[True, True, False])
    assert (scores.diag, scores.off_diag) == (1, 0)
    assert (scores.diag_controllable, scores.off_diag_controllable) == (1, 0)
    assert scores.matching.tolist() == [0, 1, 2]


def test_by_hand():
    scores = score(R2, controllable=[True, False, True])
    assert scores.matching.tolist() == [1, 0, 2]
    assert scores.diag == pytest.approx((0.9 + 0.7 + 0.5) / 3)
    assert scores.off_diag == pytest.approx((0.2 + 0.6 + 0.4) / 3)
    # latents 1 and 2; the largest other R² of both is with factor 1, which is not controllable
    assert scores.diag_controllable == pytest.approx((0.7 + 0.5) / 2)
    assert scores.off_diag_controllable == pytest.approx((0.6 + 0.4) / 2)


def test_matching_maximises_the_total_not_the_first_choice():
    assert match(np.array([[0.9, 0.8], [0.8, 0.1]])).tolist() == [1, 0]


def test_more_latents_than_factors():
    scores = score(R2[:, :2])
    assert scores.matching.tolist() == [1, 0, -1]
    assert scores.diag == pytest.approx(0.8)
    assert scores.off_diag == pytest.approx((0.2 + 0.6) / 2)


def test_more_factors_than_latents():
    scores = score(R2[:2], controllable=[False, False, True])
    assert scores.matching.tolist() == [1, 0]
    assert scores.diag == pytest.approx(0.8)
    assert scores.off_diag == pytest.approx((0.2 + 0.6) / 2)
    assert scores.diag_controllable is None, "the only controllable factor has no latent"


def test_one_factor_has_no_other():
    scores = score(np.array([[0.3], [0.6]]))
    assert scores.matching.tolist() == [-1, 0]
    assert (scores.diag, scores.off_diag) == (0.6, 0)


def test_none_controllable_is_none():
    for mask in (None, [False, False, False]):
        scores = score(R2, controllable=mask)
        assert scores.diag_controllable is None
        assert scores.off_diag_controllable is None


def test_negative_r2_counts_as_zero():
    raw = np.array([[-5.0, 0.1], [0.5, -1.0]])
    assert match(raw).tolist() == [1, 0]
    assert score(np.array([[0.5, -3.0], [-3.0, -3.0]])).diag == 0.25


def test_bad_shapes_are_named():
    with pytest.raises(ValueError, match=r"each of the 3 factors, got shape \(2,\)"):
        score(R2, controllable=[True, False])
    with pytest.raises(ValueError, match=r"got shape \(3,\)"):
        score(R2[0])


def test_summary_over_members():
    result = summary([score(np.eye(2)), score(0.5 * np.eye(2))])
    assert result["diag"] == {"mean": 0.75, "std": 0.25}
    assert result["off_diag"] == {"mean": 0, "std": 0}
    assert result["diag_controllable"] is None
    # no chance of NaN in a file that JSON readers refuse
    assert all(math.isfinite(x) for entry in result.values() if entry for x in entry.values())
