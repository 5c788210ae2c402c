"""What several methods do with a batch: encode both frames, and pair transitions with others for negatives."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from acf.methods.acf import Latents
from acf.methods.base import Batch


def encode_pair(encode: Callable[[Array], Float[Array, "N2 d"]], batch: Batch) -> Latents:
    """Both frames of every transition through the encoder at once."""
    z, z_next = jnp.split(encode(jnp.concatenate([batch.x, batch.x_next])), 2)
    return Latents(z, batch.action, z_next)


def derangement(key: PRNGKeyArray, n: int) -> Int[Array, " n"]:
    """For each row another one, never itself: the batch, which is shuffled, turned by a random number of rows.

    A plain permutation leaves one row in place on average: a true pair with the label of a false one.
    """
    return (jnp.arange(n) + jax.random.randint(key, (), 1, n)) % n


def two_sample_loss(real: Float[Array, " N"], fake: Float[Array, " N"]) -> Float[Array, ""]:
    """Binary cross-entropy of a classifier of real against fake pairs, from its logits; log 2 if it knows nothing.

    >>> round(float(two_sample_loss(jnp.zeros(3), jnp.zeros(3))), 4)
    0.6931
    """
    return (jax.nn.softplus(-real).mean() + jax.nn.softplus(fake).mean()) / 2
