"""DCI of importance matrices written by hand, and of codes whose importances are known."""

import numpy as np
import pytest

from acf.metrics import DCI, dci, dci_of

N_FIT, N_HELD_OUT = 2_400, 800
N = N_FIT + 2 * N_HELD_OUT
rng = np.random.default_rng(0)
S = rng.uniform(-1, 1, (N, 2))
NOISE = rng.normal(size=(N, 3))


def splits(x: np.ndarray) -> list[np.ndarray]:
    return np.split(x, [N_FIT, N_FIT + N_HELD_OUT])


# name: importances, disentanglement, completeness
MATRICES = {
    "identity": (np.eye(3), 1, 1),
    "permuted, of any size": ([[0, 5], [0.1, 0]], 1, 1),
    "even": (np.ones((3, 3)), 0, 0),
    "two latents for one factor": ([[1, 0], [1, 0], [0, 1]], 1, 1 - 2 / 3 * np.log(2) / np.log(3)),
    "one latent for two factors": ([[1, 1], [0, 0]], 0, 1),
    "an idle latent does not count": ([[1, 0], [0, 1], [0, 0]], 1, 1),
    "nothing": (np.zeros((2, 2)), 0, 0),
    "one factor": ([[1.0], [0.0]], 1, 1),
}


@pytest.mark.parametrize("name", MATRICES)
def test_of_importances(name):
    importance, disentanglement, completeness = MATRICES[name]
    result = dci_of(np.array(importance), 0.5)
    assert result.disentanglement == pytest.approx(disentanglement)
    assert result.completeness == pytest.approx(completeness)
    assert result.informativeness == 0.5


# name: latents, disentanglement, completeness, informativeness
CODES = {
    "perfect": (S, 1, 1, 1),
    "permuted and remapped": (np.stack([np.exp(S[:, 1]), S[:, 0] ** 3], 1), 1, 1, 1),
    "rotated by 45 degrees": (np.stack([S.sum(1), S[:, 0] - S[:, 1]], 1), 0, 0, 1),
    "constant": (np.zeros((N, 2)), 0, 0, 0),
    "noise": (NOISE[:, :2], 0, 0, 0),
    "one factor lost": (np.stack([S[:, 0], NOISE[:, 0]], 1), 1, 1, 0.5),
    "three latents": (np.stack([S[:, 1], S[:, 0], NOISE[:, 0]], 1), 1, 1, 1),
}


@pytest.fixture(scope="module")
def results() -> dict[str, DCI]:
    found = dci([splits(z) for z, *_ in CODES.values()], splits(S))
    return dict(zip(CODES, found, strict=True))


@pytest.mark.parametrize("name", CODES)
def test_known_codes(results, name):
    z, disentanglement, completeness, informativeness = CODES[name]
    assert results[name].disentanglement == pytest.approx(disentanglement, abs=0.05)
    assert results[name].completeness == pytest.approx(completeness, abs=0.05)
    assert results[name].informativeness == pytest.approx(informativeness, abs=0.02)
    assert results[name].importance.shape == (z.shape[1], 2)


def test_importance_of_a_linear_code():
    # s = 2 z0 + z1: to shuffle z_i adds 2 β_i² var(z_i) to the error, so 8/5 and 2/5 of the factor's variance.
    z = NOISE
    (result,) = dci([splits(z)], splits(2 * z[:, :1] + z[:, 1:2]))
    np.testing.assert_allclose(result.importance[:, 0], [1.6, 0.4, 0], atol=0.08)
    assert result.disentanglement == pytest.approx(1)
    assert result.completeness == pytest.approx(1 + (0.8 * np.log(0.8) + 0.2 * np.log(0.2)) / np.log(3), abs=0.03)


def test_bad_importances():
    with pytest.raises(ValueError, match="not below 0"):
        dci_of(np.array([[-1.0, 0.0]]), 0.5)
