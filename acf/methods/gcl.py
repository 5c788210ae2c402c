"""Generalized Contrastive Learning (Hyvärinen, Sasaki and Turner 2019), on transitions.

A classifier tells a next latent with its own (z, a) from one with those of another transition. Its logit is a sum of
one term a latent, so each latent must explain its part of z' given (z, a) alone. `docs/notation.md` lists the choices.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from acf.methods.base import Batch, Method, Spec, Terms
from acf.methods.guard import guard_loss
from acf.methods.transitions import Latents, add_noise, derangement, encode_pair, taken, two_sample_loss
from acf.nn import Decoder, StackedMLP, as_pixels


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HParams:
    """Weights of the loss terms, learning rate, and scale of the latent noise."""

    lr: float = 3e-4
    classifier: float = 50.0
    recons: float = 1e-3
    """Where it is 0 for all members there is no decoder, which is most of a step's work."""
    noise: float = 0.0
    """Standard deviation of noise on every latent, as in ACF. Off in the published method."""
    guard: float = 1000.0
    """Weight of the guard against collapse (`acf.methods.guard`): exactly 0 for healthy latents."""


class FactorEnergies(nnx.Module):
    """`ψ_k(z'_k, z, a)`: K networks `(1 + d) → H → H → |A|`, one output an action."""

    def __init__(self, latents: int, n_actions: int, *, hidden: int, rngs: nnx.Rngs):
        self.networks = StackedMLP(latents, 1 + latents, (hidden, hidden), n_actions, rngs=rngs)

    def __call__(self, z_next: Float[Array, "N K"], z: Float[Array, "N K"]) -> Float[Array, "N K A"]:
        context = jnp.broadcast_to(z[:, None, :], (*z_next.shape, z.shape[1]))
        return self.networks(jnp.concatenate([z_next[..., None], context], axis=2))


class GCL(nnx.Module):
    def __init__(self, spec: Spec, *, rngs: nnx.Rngs):
        K, A, H = spec.latents, spec.n_actions, spec.hidden
        sizes = {"depth": spec.depth, "hidden": H, "dtype": spec.dtype}
        self.encode = spec.make_encoder(rngs=rngs)
        self.decode = Decoder(K, spec.frame_shape, **sizes, rngs=rngs) if spec.decoder else None
        self.energies = FactorEnergies(K, A, hidden=H // 2, rngs=rngs)


def loss(model: GCL, batch: Batch, key: PRNGKeyArray, hparams: HParams) -> tuple[Float[Array, ""], Terms]:
    pair_key, noise_key = jax.random.split(key)
    clean = encode_pair(model.encode, batch)
    other = derangement(pair_key, len(batch.action))
    terms = {
        "classifier": classifier_loss(model.energies, add_noise(clean, noise_key, hparams.noise), other),
        "guard": guard_loss(jnp.concatenate([clean.z, clean.z_next])),
    }
    if model.decode is not None:
        terms["recons"] = reconstruction_loss(model.decode, clean, batch)
    total = sum(getattr(hparams, name) * term for name, term in terms.items())
    return jnp.asarray(total), terms


def classifier_loss(energies: FactorEnergies, latents: Latents, other: Int[Array, " N"]) -> Float[Array, ""]:
    """Is z' of this (z, a), or of another's? z and a move together: the auxiliary variable is the pair."""
    z, action, z_next = latents
    return two_sample_loss(logit(energies, z_next, z, action), logit(energies, z_next, z[other], action[other]))


def logit(
    energies: FactorEnergies, z_next: Float[Array, "N K"], z: Float[Array, "N K"], action: Int[Array, " N"]
) -> Float[Array, " N"]:
    """`r = Σ_k ψ_k(z'_k, z, a)`; at the optimum `log p(z'|z,a) - log p(z')`."""
    return taken(energies(z_next, z).sum(1), action)


def reconstruction_loss(decode: Decoder, latents: Latents, batch: Batch) -> Float[Array, ""]:
    """Squared error, mean over pixels, frames and the two sides of the transition."""
    made = decode(jnp.concatenate([latents.z, latents.z_next]))
    return ((made - as_pixels(jnp.concatenate([batch.x, batch.x_next]))) ** 2).mean()


METHOD = Method("gcl", GCL, HParams, loss, nats=("classifier",))
