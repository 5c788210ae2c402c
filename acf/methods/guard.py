"""A guard against collapse at the start of training, for methods whose latents end in tanh.

A fresh encoder gives nearly the same latents to all frames, closer together than the latent noise. The only gradient it
then feels is that of the classifiers' chance fluctuations, which shifts all latents at once; Adam makes large steps of
it, the latents run into the flat ends of tanh and never come back. The guard pushes a latent whose batch mean is far
from 0, or whose batch spread is small, back to where it can learn. It costs no generality: latents are identified up to
an invertible map each, so where they are centred is free. For healthy latents its value and gradient are exactly 0.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

MAX_MEAN = 0.5
MIN_SPREAD = 0.25


def guard_loss(z: Float[Array, "N K"]) -> Float[Array, ""]:
    """Squared excess of |mean| over `MAX_MEAN` and squared lack of spread under `MIN_SPREAD`, mean over the latents.

    >>> float(guard_loss(jnp.array([[0.5], [-0.5]])))
    0.0
    >>> round(float(guard_loss(jnp.array([[0.9], [0.9]]))), 4)  # 0.4² + 0.25²
    0.2225
    """
    mean = z.mean(0)
    spread = jnp.sqrt(z.var(0) + 1e-12)  # the small number keeps the gradient finite where all are equal
    too_far = jax.nn.relu(jnp.abs(mean) - MAX_MEAN)
    too_close = jax.nn.relu(MIN_SPREAD - spread)
    return (too_far**2 + too_close**2).mean()
