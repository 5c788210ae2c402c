"""Markov State Abstractions (Allen et al. 2021): an inverse model, a density-ratio discriminator, and smoothness.

The first two make the latents Markov; nothing asks for factors. `docs/notation.md` lists the choices.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from acf.methods.base import Batch, Method, Spec, Terms
from acf.methods.transitions import Latents, derangement, encode_pair, taken, two_sample_loss
from acf.nn import MLP


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HParams:
    """Weights of the loss terms, learning rate, and the step length that is not punished."""

    lr: float = 3e-4
    inverse: float = 10.0
    ratio: float = 10.0
    smoothness: float = 5.0
    max_step: float = 0.1
    """Latents may move this far in one transition. Sixteen cells stretched over (-1, 1) lie 0.13 apart."""


class MSA(nnx.Module):
    def __init__(self, spec: Spec, *, rngs: nnx.Rngs):
        K, A, H = spec.latents, spec.n_actions, spec.hidden
        self.encode = spec.make_encoder(rngs=rngs)
        self.inverse = MLP(2 * K, (H // 2,), A, rngs=rngs)
        self.ratio = MLP(2 * K, (H // 2,), 1, rngs=rngs)


def loss(model: MSA, batch: Batch, key: PRNGKeyArray, hparams: HParams) -> tuple[Float[Array, ""], Terms]:
    latents, other = encode_pair(model.encode, batch), derangement(key, len(batch.action))
    terms = {
        "inverse": inverse_loss(model.inverse, latents),
        "ratio": ratio_loss(model.ratio, latents, other),
        "smoothness": smoothness_loss(latents, hparams.max_step),
    }
    total = sum(getattr(hparams, name) * term for name, term in terms.items())
    return jnp.asarray(total), terms


def inverse_loss(inverse: MLP, latents: Latents) -> Float[Array, ""]:
    """Which action led from z to z'?"""
    logits = inverse(jnp.concatenate([latents.z, latents.z_next], axis=1))
    return -taken(jax.nn.log_softmax(logits), latents.action).mean()


def ratio_loss(ratio: MLP, latents: Latents, other: Int[Array, " N"]) -> Float[Array, ""]:
    """Does z' follow z, or is it another's? At the optimum the logit is `log p(z'|z) - log p(z')`."""
    logit = lambda z_next: ratio(jnp.concatenate([latents.z, z_next], axis=1))[:, 0]  # noqa: E731
    return two_sample_loss(logit(latents.z_next), logit(latents.z_next[other]))


def smoothness_loss(latents: Latents, max_step: float | Array) -> Float[Array, ""]:
    """Squared excess of each step's length over `max_step`."""
    change = latents.z_next - latents.z
    # A no-op leaves z where it is, and there the gradient of a plain norm is NaN.
    length = jnp.sqrt((change**2).sum(1) + 1e-12)
    return (jax.nn.relu(length - max_step) ** 2).mean()


METHOD = Method("msa", MSA, HParams, loss, nats=("inverse", "ratio"))
