"""How far scores would move on other test data of the same kind."""

import numpy as np
from jaxtyping import Float, Int

from acf.metrics.regression import HeldOutErrors, r2_of

DRAWS = 1000
LEVEL = 0.95


def r2_draws(
    rng: np.random.Generator, errors: HeldOutErrors, episode: Int[np.ndarray, " n_test"]
) -> Float[np.ndarray, "draws L K"]:
    """R² matrices of test sets drawn with replacement, whole episodes at a time: rows of one episode are alike."""
    names, of_row = np.unique(episode, return_inverse=True)
    draws = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=DRAWS)
    return r2_of(errors, draws[:, of_row].astype(np.float32))


def interval(draws: Float[np.ndarray, "draws *rest"]) -> Float[np.ndarray, "2 *rest"]:
    """Lower and upper end of the interval that holds `LEVEL` of the draws."""
    return np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
