"""The regressors on hand-made codes whose R² is known."""

import numpy as np
import pytest
from jaxtyping import Float
from sklearn.neural_network import MLPRegressor

from acf.metrics import r2_matrix

N_FIT, N_HELD_OUT = 2_400, 800
N = N_FIT + 2 * N_HELD_OUT


def thirds(x: np.ndarray, axis: int) -> list[np.ndarray]:
    return np.split(x, [N_FIT, N_FIT + N_HELD_OUT], axis=axis)


def matrix(z: np.ndarray, s: np.ndarray, seed: int = 0) -> Float[np.ndarray, "*members d K"]:
    (z_fit, z_val, z_test), (s_fit, s_val, s_test) = thirds(z, -2), thirds(s, 0)
    return r2_matrix(z_fit, s_fit, z_val, s_val, z_test, s_test, seed=seed)


def pair(z: np.ndarray, s: np.ndarray) -> float:
    return float(matrix(z[:, None], s[:, None])[0, 0])


def crowded(levels: int, reach: float) -> np.ndarray:
    """Values of a saturated tanh: the outer levels lie very close together."""
    return np.tanh(np.linspace(-reach, reach, levels))


rng = np.random.default_rng(0)
level8, level14, bit = (rng.integers(0, k, N) for k in (8, 14, 2))
u, v = rng.uniform(-1, 1, (2, N))
HARD = {
    "cube": (u**3, u),
    "cube root": (np.cbrt(u), u),
    "steep sigmoid": (1 / (1 + np.exp(-8 * u)), u),
    "staircase of 14": (u, np.floor(7 * (u + 1))),
    "14 levels": (level14, level14),
    "8 levels shuffled": (np.array([3, 0, 6, 1, 7, 4, 2, 5])[level8], level8),
    "8 levels interleaved": (np.array([0, 4, 1, 5, 2, 6, 3, 7])[level8], level8),
    "14 levels shuffled": (np.random.default_rng(1).permutation(14)[level14], level14),
    "8 levels crowded": (crowded(8, 4)[level8], level8),
    "14 levels crowded": (crowded(14, 4)[level14], level14),
    "tiny bit": (np.float32(0.7) + np.float32(1e-4) * bit, bit),
    "huge offset": (1e6 + level8, level8),
}


@pytest.mark.parametrize("name", HARD)
def test_deterministic_codes_are_read(name):
    z, s = HARD[name]
    assert pair(z, s) >= 0.99


@pytest.mark.parametrize("noise", [0.5, 1.0, 2.0])
def test_noisy_code_has_the_known_r2(noise):
    s, e = np.random.default_rng(1).normal(size=(2, N))
    # 800 test rows: the R² of one draw has a standard error of about 0.02
    assert pair(s + noise * e, s) == pytest.approx(1 / (1 + noise**2), abs=0.05)


def test_45_degrees_reads_half_of_each_factor():
    # E[u | u + v] = (u + v) / 2 for independent u, v of one law: R² = 1/2 whatever the regressor.
    s = np.stack([u, v], 1)
    z = np.stack([u + v, u - v], 1)
    np.testing.assert_allclose(matrix(z, s), 0.5, atol=0.05)


def test_agrees_with_the_best_piecewise_constant_predictor():
    # A non-monotone, non-injective code: z tells |u| and some of v. The reference bins z, with all rows known.
    z, s = np.abs(u) + 0.3 * v, np.stack([u, np.abs(u), v], 1)
    bins = np.digitize(z, np.quantile(z, np.linspace(0, 1, 41)[1:-1]))
    means = np.array([s[bins == b].mean(axis=0) for b in range(40)])
    binned = 1 - ((s - means[bins]) ** 2).mean(axis=0) / s.var(axis=0)
    np.testing.assert_allclose([pair(z, s[:, j]) for j in range(3)], binned, atol=0.05)


def test_leak_far_below_the_level_spacing_is_not_read():
    # Distinct numbers for distinct states are not enough: the leak is a fiftieth of the spacing of the levels.
    assert pair(level14 + 0.02 * (level8 / 7 - 0.5), level8) < 0.02


def test_noise_reads_nothing():
    assert matrix(rng.normal(size=(N, 2)), np.stack([u, level8], 1)).max() < 0.02


@pytest.mark.parametrize("value", [0.0, 0.3, -1e6])
def test_constants_give_zero_without_nan(value):
    constant = np.full(N, value, np.float32)
    r2 = matrix(np.stack([u, constant], 1), np.stack([u, constant], 1))
    assert r2[0, 0] > 0.99
    assert np.array_equal(r2 > 0, [[True, False], [False, False]])


def test_factor_constant_in_one_split_gives_zero():
    for rows in (slice(0, N_FIT), slice(N_FIT + N_HELD_OUT, None)):
        s = u.copy()
        s[rows] = 0.25
        assert pair(u, s) == 0


def test_same_seed_same_numbers_and_other_seeds_close():
    s = np.stack([u, level8], 1)
    z = np.stack([u + 0.2 * v, crowded(8, 3)[level8]], 1)
    first, again, *others = (matrix(z, s, seed) for seed in (0, 0, 1, 2))
    assert np.array_equal(first, again)
    for other in others:
        np.testing.assert_allclose(other, first, atol=0.01)


def test_neighbours_and_place_do_not_matter():
    s = np.stack([u, level8], 1)
    z = np.stack([u + 0.2 * v, level8 + v, v], 1)
    together = matrix(np.stack([z, z[:, [2, 0, 1]]]), s)
    np.testing.assert_allclose(together[1], together[0, [2, 0, 1]], atol=1e-3)
    np.testing.assert_allclose(matrix(z[:, 1:2], s[:, :1]), together[0, 1:2, :1], atol=1e-3)


def test_leading_axes_are_kept():
    r2 = matrix(np.zeros((3, 1, N, 2)), np.stack([u, v], 1))
    assert r2.shape == (3, 1, 2, 2)
    assert r2.dtype == np.float32


def scikit_learn_r2(z: list[np.ndarray], s: list[np.ndarray]) -> float:
    """The protocol of `r2_matrix` for one pair, with scikit-learn's network and optimiser."""
    z_fit, z_val, z_test = (((x - z[0].mean()) / z[0].std())[:, None] for x in z)
    mlp = MLPRegressor(hidden_layer_sizes=(32, 32), activation="tanh", learning_rate_init=3e-3, random_state=0)
    best, r2 = -np.inf, 0.0
    # Not its own early stopping: on a tenth of the fit rows it gives up on weak relations, at half of their known R².
    for _ in range(150):
        mlp.partial_fit(z_fit, s[0])
        if (val := mlp.score(z_val, s[1])) > best:
            best, r2 = val, mlp.score(z_test, s[2])
    return max(r2, 0)


def test_agrees_with_scikit_learn():
    # Two implementations on the same rows, on codes from unreadable to readable.
    z = np.stack([u, np.sin(3 * u) + 0.1 * v, u + v, v], 1)
    s = np.stack([u, np.abs(u)], 1)
    expected = [[scikit_learn_r2(thirds(a, 0), thirds(b, 0)) for b in s.T] for a in z.T]
    np.testing.assert_allclose(matrix(z, s), expected, atol=0.03)


def test_bad_input_is_named():
    s = np.stack([u, v], 1)
    with pytest.raises(ValueError, match="z_fit has 2400 rows, s_fit has 2399"):
        r2_matrix(s[:2400], s[:2399], s, s, s, s)
    broken = s.copy()
    broken[[3, 5], 1] = np.nan
    with pytest.raises(ValueError, match="s_val: factor 1 is not finite in 2 of 4000 rows"):
        r2_matrix(s, s, s, broken, s, s)
    with pytest.raises(ValueError, match="z_test: latent 1"):
        r2_matrix(s, s, s, s, broken, s)
    with pytest.raises(ValueError, match=r"got shape \(4000,\)"):
        r2_matrix(u, s, u, s, u, s)
