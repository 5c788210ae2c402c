"""The whole protocol on hand-made encoders."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acf.metrics import Scores, evaluate, r2_matrices
from acf.metrics.evaluate import _folds

EPISODES, LENGTH = 100, 40
N = EPISODES * LENGTH
EPISODE = np.repeat(np.arange(EPISODES), LENGTH)

rng = np.random.default_rng(0)
S = rng.uniform(-1, 1, (N, 2))
LEVELS = np.stack([rng.integers(0, 4, N), rng.integers(0, 2, N)], 1)
NOISE = rng.normal(size=(N, 2))


def columns(*z: np.ndarray) -> np.ndarray:
    return np.stack(z, 1)


# name: latents of the two independent uniform factors S, diag, off_diag
CODES = {
    "perfect": (S, 1, 0),
    "permuted": (S[:, ::-1], 1, 0),
    "cubed": (S**3, 1, 0),
    "sigmoid": (1 / (1 + np.exp(-5 * S)), 1, 0),
    "rotated by 45 degrees": (columns(S[:, 0] + S[:, 1], S[:, 0] - S[:, 1]), 0.5, 0.5),
    "duplicated latent": (columns(S[:, 0], S[:, 0]), 0.5, 0.5),
    "two codes for one factor": (columns(S[:, 0], -np.exp(S[:, 0])), 0.5, 0.5),
    "one latent constant": (columns(S[:, 1], np.full(N, 0.3)), 0.5, 0),
    "all constant": (np.zeros((N, 2)), 0, 0),
    "noise": (NOISE, 0, 0),
}


@pytest.fixture(scope="module")
def codes() -> dict[str, Scores]:
    result = evaluate(np.stack([z for z, _, _ in CODES.values()]), S, EPISODE, controllable=[True, False])
    assert result.oracle.diag > 0.99
    assert result.oracle.off_diag < 0.02
    assert result.chance.diag < 0.02
    assert result.oracle.disentanglement > 0.99
    assert (result.chance.disentanglement, result.chance.completeness) == (0, 0)
    return dict(zip(CODES, result.members, strict=True))


@pytest.mark.parametrize("name", CODES)
def test_known_scores(codes, name):
    _, diag, off_diag = CODES[name]
    assert codes[name].diag == pytest.approx(diag, abs=0.03)
    assert codes[name].off_diag == pytest.approx(off_diag, abs=0.03)
    assert np.isfinite(codes[name].r2).all()


def test_matching_and_controllable(codes):
    assert codes["perfect"].matching.tolist() == [0, 1]
    assert codes["permuted"].matching.tolist() == [1, 0]
    # latent 0 reads factor 1; factor 0, the controllable one, is left to the constant
    assert codes["one latent constant"].matching.tolist() == [1, 0]
    assert codes["one latent constant"].diag_controllable == 0


def test_one_code_for_two_factors():
    z = columns(2 * LEVELS[:, 0] + LEVELS[:, 1], NOISE[:, 0])
    (member,) = evaluate(z[None], LEVELS, EPISODE).members
    np.testing.assert_allclose(member.r2, [[1, 1], [0, 0]], atol=0.02)
    assert member.diag == pytest.approx(0.5, abs=0.02)
    assert member.off_diag == pytest.approx(0.5, abs=0.02)


def test_more_latents_than_factors():
    (member,) = evaluate(columns(NOISE[:, 0], S[:, 1], S[:, 0])[None], S, EPISODE).members
    assert member.matching.tolist() == [-1, 1, 0]
    assert member.diag > 0.99
    assert member.off_diag < 0.02


def test_more_factors_than_latents():
    result = evaluate(S[None, :, 1:], S, EPISODE)
    assert result.members[0].matching.tolist() == [1]
    assert result.members[0].diag > 0.99
    assert result.oracle.r2.shape == (2, 2)
    assert result.chance.r2.shape == (1, 2)


def test_oracle_shows_the_floor_of_dependent_factors():
    # s2 = s1 + e with e ~ N(0, 1): each explains half of the other, so a perfect encoder has 0.5 off the diagonal.
    s1, e = np.random.default_rng(0).normal(size=(2, N))
    result = evaluate(NOISE[None], columns(s1, s1 + e), EPISODE)
    assert result.oracle.diag > 0.99
    assert result.oracle.off_diag == pytest.approx(0.5, abs=0.05)
    assert result.chance.off_diag < 0.02


def test_scored_on_unseen_episodes():
    # A latent that names the episode fits any value that an episode keeps, but tells nothing about a new episode.
    value = np.random.default_rng(1).normal(size=(EPISODES, 2))
    (member,) = evaluate(columns(EPISODE, EPISODE**2)[None], value[EPISODE], EPISODE).members
    assert member.r2.max() < 0.1


def test_evaluation_seeds_agree():
    z = np.stack([S + 0.05 * NOISE, S + 0.5 * NOISE])  # nearly all of the factors, and about half
    first, again, other = (evaluate(z, S, EPISODE, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.members[0].r2, again.members[0].r2)
    assert np.array_equal(first.chance.r2, again.chance.r2)
    for one, another in zip(first.members, other.members, strict=True):
        assert abs(one.diag - another.diag) < 0.01


@pytest.mark.parametrize(("episodes", "sizes"), [(3, (1, 1, 1)), (6, (3, 1, 2)), (120, (60, 20, 40))])
def test_folds_keep_episodes_whole(episodes, sizes):
    episode = np.repeat(7 + 3 * np.arange(episodes), 5)  # numbers with gaps
    folds = _folds(np.random.default_rng(0), episode)
    for fold in folds:
        assert tuple(len(np.unique(episode[rows])) for rows in fold) == sizes
        assert np.array_equal(np.sort(np.concatenate(fold)), np.arange(len(episode)))
    assert np.array_equal(np.sort(np.concatenate([fold.test for fold in folds])), np.arange(len(episode)))


def test_folds_have_one_size():
    episode = np.repeat(np.arange(50), np.arange(50) + 1)  # unequal lengths
    folds = _folds(np.random.default_rng(0), episode)
    assert len({(len(fold.fit), len(fold.val)) for fold in folds}) == 1
    for fold in folds:
        assert not set(episode[fold.test]) & set(episode[np.concatenate([fold.fit, fold.val])])


def test_folds_cap_the_rows():
    folds = _folds(np.random.default_rng(0), np.arange(100_000))
    assert [len(rows) for fold in folds for rows in fold] == [10_000] * 9


def test_factor_that_some_folds_hardly_see():
    # Constant but in two episodes: a fold that was fitted on none of them explains nothing of it, without a NaN.
    s = np.zeros((N, 2))
    s[:, 0] = S[:, 0]
    s[EPISODE < 2, 1] = 1
    result = evaluate(s[None], s, EPISODE)
    assert result.oracle.r2[0, 0] > 0.99
    assert np.isfinite(result.oracle.r2).all()


def test_bad_input_is_named():
    z = np.zeros((2, N, 3))
    with pytest.raises(ValueError, match="z has 4000 rows, s has 3999, episode has 4000"):
        evaluate(z, S[:-1], EPISODE)
    with pytest.raises(ValueError, match=r"z must be \[members, n, d\]"):
        evaluate(z[0], S, EPISODE)
    with pytest.raises(ValueError, match=r"at least 3 episodes.* got 2"):
        evaluate(z, S, EPISODE % 2)
    z[1, 5, 2] = np.nan
    with pytest.raises(ValueError, match="z of member 1: latent 2 is not finite in 1 of 4000 rows"):
        evaluate(z, S, EPISODE)
    s = S.copy()
    s[:, 1] = np.inf
    with pytest.raises(ValueError, match="s: factor 1 is not finite in 4000 of 4000 rows"):
        evaluate(np.zeros((2, N, 3)), s, EPISODE)


# Invariances, on a code that is neither perfect nor useless.

MIXED = columns(S[:, 0] + 0.3 * S[:, 1], S[:, 1] + 0.5 * NOISE[:, 0], NOISE[:, 1])
REMAPS = {
    "cube root": np.cbrt,
    "cube": lambda x: x**3 + 0.1 * x,
    "tanh": lambda x: np.tanh(1.5 * x),
    "exp": np.exp,
    "shifted": lambda x: 5 + 1e-3 * x,
    "falling": np.negative,
}


def scores_of(z: np.ndarray) -> Scores:
    return evaluate(z[None], S, EPISODE).members[0]


@pytest.fixture(scope="module")
def mixed() -> Scores:
    return scores_of(MIXED)


@settings(deadline=None, max_examples=4, derandomize=True)
@given(order=st.permutations(range(3)))
def test_invariant_to_permuted_latents(mixed, order):
    scores = scores_of(MIXED[:, order])
    np.testing.assert_allclose(scores.r2, mixed.r2[order], atol=1e-3)
    assert scores.matching.tolist() == mixed.matching[order].tolist()
    assert scores.diag == pytest.approx(mixed.diag, abs=1e-3)
    assert scores.off_diag == pytest.approx(mixed.off_diag, abs=1e-3)


@settings(deadline=None, max_examples=4, derandomize=True)
@given(names=st.lists(st.sampled_from(sorted(REMAPS)), min_size=3, max_size=3))
def test_invariant_to_monotone_remapping(mixed, names):
    z = columns(*(REMAPS[name](x) for name, x in zip(names, MIXED.T, strict=True)))
    scores = scores_of(z)
    assert scores.matching.tolist() == mixed.matching.tolist()
    assert scores.diag == pytest.approx(mixed.diag, abs=0.02)
    assert scores.off_diag == pytest.approx(mixed.off_diag, abs=0.02)


def test_the_matrices_alone_are_those_of_the_whole_evaluation(codes):
    names = ["rotated by 45 degrees", "perfect", "one latent constant"]
    found = r2_matrices(np.stack([CODES[name][0] for name in names]), S, EPISODE)
    np.testing.assert_allclose(found, np.stack([codes[name].r2 for name in names]), atol=1e-6)
