"""Training a toy as one compiled program, and comparing what it learned with the truth."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import optax
from jaxtyping import Array, PRNGKeyArray
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment


def fit(
    objective: Callable[[Any, PRNGKeyArray, Array], Array], params: Any, key: PRNGKeyArray, *, steps: int, lr: float
) -> Any:
    """Adam on `objective(params, key, step)`, which draws its own fresh batch."""
    optimiser = optax.adam(lr)

    def step(carry, t):
        params, state = carry
        gradients = jax.grad(objective)(params, jax.random.fold_in(key, t), t)
        updates, state = optimiser.update(gradients, state)
        return (optax.apply_updates(params, updates), state), None

    (params, _), _ = jax.lax.scan(step, (params, optimiser.init(params)), jax.numpy.arange(steps))
    return params


def matching(z: ArrayLike, s: ArrayLike) -> tuple[np.ndarray, float]:
    """Of latents and factors [N, K]: each factor's latent, and the mean absolute correlation (MCC) of the pairs."""
    z, s = np.asarray(z), np.asarray(s)
    K = s.shape[1]
    correlation = np.abs(np.corrcoef(s.T, z.T)[:K, K:])
    factors, latents = linear_sum_assignment(-correlation)
    return latents, float(correlation[factors, latents].mean())


def mcc(z: ArrayLike, s: ArrayLike) -> float:
    return matching(z, s)[1]


def distances(
    state: np.ndarray, action: np.ndarray, true_state: np.ndarray, true_action: np.ndarray, latents: np.ndarray
) -> tuple[int, int]:
    """Missing and extra edges (SHD) of both graphs, once latent `latents[i]` is called i: P Gz Pᵀ and P Ga."""
    state, action = np.asarray(state)[np.ix_(latents, latents)], np.asarray(action)[latents]
    return int((state != true_state).sum()), int((action != true_action).sum())
