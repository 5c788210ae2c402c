"""Behaviour policies that collect data: from a state's factors to action logits."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def uniform(factors: Float[Array, " K"], n_actions: int) -> Float[Array, " A"]:
    return jnp.zeros(n_actions)


def skewed(factors: Float[Array, " K"], n_actions: int) -> Float[Array, " A"]:
    """Prefers other actions in other states, by a factor of up to about 20; every action stays possible.

    A fixed wave over the factors: data that a method must correct for its behaviour policy.
    """
    rng = np.random.default_rng(0)
    waves = rng.uniform(0.5, 2.0, (len(factors), n_actions)).astype(np.float32)
    phases = rng.uniform(0, 2 * np.pi, n_actions).astype(np.float32)
    return 1.5 * jnp.sin(factors @ waves + phases)


POLICIES = {"uniform": uniform, "skewed": skewed}
