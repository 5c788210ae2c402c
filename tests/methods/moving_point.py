"""A point in the plane that four actions push: `s' = s + δ_a + 0.08 ε`, seen through a fixed mixing of 16 numbers.

The densities are known, and with them the best any classifier of transitions can do.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

DELTA = np.array([[0, 0], [0.4, 0], [-0.4, 0], [0, 0.4], [0, -0.4]])
SIGMA = 0.08
ACTIONS, FACTORS, WIDTH = 5, 2, 16
# z'_i hangs on z_i, and on the two actions that push along its axis.
STATE_GRAPH = np.eye(2, dtype=bool)
ACTION_GRAPH = (DELTA != 0).T


def sample(key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n 2"], Int[Array, " n"], Float[Array, "n 2"]]:
    s_key, a_key, eps_key = jax.random.split(key, 3)
    s = jax.random.uniform(s_key, (n, FACTORS), minval=-1, maxval=1)
    action = jax.random.randint(a_key, (n,), 0, ACTIONS)
    return s, action, s + jnp.asarray(DELTA)[action] + SIGMA * jax.random.normal(eps_key, (n, FACTORS))


def curved(s: Float[Array, "n 2"]) -> Float[Array, "n 16"]:
    """A fixed random network `2 → 8 → 16` with tanh."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(FACTORS, 8)), rng.normal(size=(8, WIDTH)) / np.sqrt(8)
    return jnp.tanh(jnp.tanh(s @ jnp.asarray(first)) @ jnp.asarray(second))


def straight(s: Float[Array, "n 2"], key: PRNGKeyArray) -> Float[Array, "n 16"]:
    """A fixed random matrix, and noise of 0.01."""
    matrix = np.random.default_rng(0).normal(size=(FACTORS, WIDTH))
    return s @ jnp.asarray(matrix) + 0.01 * jax.random.normal(key, (len(s), WIDTH))


def log_ratio(s: Float[Array, "n 2"], action: Int[Array, " n"], s_next: Float[Array, "n 2"]) -> Float[Array, " n"]:
    """`log p(s'|s,a) - log p(s')`, exactly: a pushed coordinate is a uniform one, shifted and blurred."""
    error = (s_next - s - jnp.asarray(DELTA)[action]) / SIGMA
    log_p = -(error**2).sum(1) / 2 - FACTORS * jnp.log(SIGMA * jnp.sqrt(2 * jnp.pi))
    shifted = s_next[:, None, :] - jnp.asarray(DELTA)
    blurred = jax.scipy.stats.norm.cdf((shifted + 1) / SIGMA) - jax.scipy.stats.norm.cdf((shifted - 1) / SIGMA)
    return log_p - jnp.log((blurred / 2).prod(2).mean(1))
