"""What several methods do with a batch: encode both frames, add noise, pair transitions with others for negatives."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from acf.methods.base import Batch


class Latents(NamedTuple):
    """A batch of transitions in latent space."""

    z: Float[Array, "N K"]
    action: Int[Array, " N"]
    z_next: Float[Array, "N K"]


def encode_pair(encode: Callable[[Array], Float[Array, "N2 d"]], batch: Batch) -> Latents:
    """Both frames of every transition through the encoder at once."""
    z, z_next = jnp.split(encode(jnp.concatenate([batch.x, batch.x_next])), 2)
    return Latents(z, batch.action, z_next)


def add_noise(latents: Latents, key: PRNGKeyArray, noise: float | Array) -> Latents:
    """ε on both latents of every transition: without it, deterministic dynamics have no densities."""
    eps, eps_next = noise * jax.random.normal(key, (2, *latents.z.shape))
    return latents._replace(z=latents.z + eps, z_next=latents.z_next + eps_next)


def taken(values: Float[Array, "N A"], action: Int[Array, " N"]) -> Float[Array, " N"]:
    """Each row's value of its action. A sum, since a gather's gradient is a slow scatter."""
    return (values * jax.nn.one_hot(action, values.shape[1])).sum(1)


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
