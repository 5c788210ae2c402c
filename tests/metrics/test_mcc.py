"""MCC of codes whose correlation is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from acf.metrics import mcc

N = 2000
rng = np.random.default_rng(0)
S = rng.uniform(-1, 1, (N, 2))
NOISE = rng.normal(size=(N, 2))


def columns(*z: np.ndarray) -> np.ndarray:
    return np.stack(z, 1)


ROTATED = columns(S[:, 0] + S[:, 1], S[:, 0] - S[:, 1])
# name: latents, MCC by Pearson, by Spearman
CODES = {
    "perfect": (S, 1, 1),
    "permuted and turned over": (-S[:, ::-1], 1, 1),
    "monotone": (np.exp(4 * S), 0.75, 1),  # by the integrals of s e^4s and e^8s
    "rotated by 45 degrees": (ROTATED, 2**-0.5, 0.69),
    "duplicated": (S[:, [0, 0]], 0.5, 0.5),
    "one code for two factors": (columns(S.sum(1), NOISE[:, 0]), 2**-0.5 / 2, 0.345),
    "two codes for one factor": (columns(S[:, 0], -(S[:, 0] ** 3)), 0.5, 0.5),
    "one latent constant": (columns(S[:, 1], np.full(N, 0.3)), 0.5, 0.5),
    "all constant": (np.full((N, 2), -1e6), 0, 0),
    "noise": (NOISE, 0, 0),
}


@pytest.mark.parametrize("name", CODES)
def test_known_values(name):
    z, pearson, spearman = CODES[name]
    assert mcc(z, S).value == pytest.approx(pearson, abs=0.04)
    assert mcc(z, S, "spearman").value == pytest.approx(spearman, abs=0.04)


def test_agrees_with_scipy():
    z = columns(S[:, 0] + 0.5 * NOISE[:, 0], np.round(3 * S[:, 1]))  # with ties
    for found, reference in ((mcc(z, S), pearsonr), (mcc(z, S, "spearman"), spearmanr)):
        expected = np.array([[reference(a, b)[0] for b in S.T] for a in z.T], float)
        np.testing.assert_allclose(found.correlation, np.abs(expected), atol=1e-12)


def test_more_latents_and_more_factors():
    more = mcc(columns(NOISE[:, 0], S[:, 1], S[:, 0]), S)
    assert more.matching.tolist() == [-1, 1, 0]
    assert more.value == pytest.approx(1)
    assert mcc(S[:, :1], S).value == pytest.approx(1)


@settings(deadline=None, max_examples=20)
@given(order=st.permutations(range(3)), scale=st.floats(-100, 100).filter(lambda a: abs(a) > 0.01))
def test_invariant_to_order_and_scale(order, scale):
    z = columns(S[:, 0] + 0.3 * S[:, 1], S[:, 1] + NOISE[:, 0], NOISE[:, 1])
    assert mcc(scale * z[:, order] + 1, S).value == pytest.approx(mcc(z, S).value, abs=1e-9)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="z has 1999 rows, s has 2000 rows"):
        mcc(S[1:], S)
    with pytest.raises(ValueError, match="s: factor 1 is not finite in 2000 of 2000 rows"):
        mcc(S, S * [1, np.nan])
    with pytest.raises(ValueError, match=r"z must be \[rows, latents\] and not empty, got shape \(0, 2\)"):
        mcc(S[:0], S[:0])
