"""Factored Markov: ACF's energies trained by the forward and the inverse loss alone.

Without ratio classifiers nothing contrasts an action with the no-op. There is no policy network either: the behaviour
policy is taken as uniform, which it is in the data that `acf collect` makes by default.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from acf.methods.acf import forward_loss
from acf.methods.base import Batch, Method, Spec, Terms
from acf.methods.guard import guard_loss
from acf.methods.transitions import Latents, add_noise, encode_pair, taken
from acf.nn import Energies


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HParams:
    """As ACF's, of the terms that are left."""

    lr: float = 3e-4
    fwd: float = 40.0
    inv: float = 20.0
    noise: float = 0.02
    guard: float = 1000.0


class FactoredMarkov(nnx.Module):
    def __init__(self, spec: Spec, *, rngs: nnx.Rngs):
        K, A, H = spec.latents, spec.n_actions, spec.hidden
        self.encode = spec.make_encoder(rngs=rngs)
        self.energies = Energies(K, A, hidden=H, kernel=spec.kernel, rngs=rngs)


def loss(model: FactoredMarkov, batch: Batch, key: PRNGKeyArray, hparams: HParams) -> tuple[Float[Array, ""], Terms]:
    clean = encode_pair(model.encode, batch)
    terms = losses(model.energies, add_noise(clean, key, hparams.noise))
    terms["guard"] = guard_loss(jnp.concatenate([clean.z, clean.z_next]))
    total = sum(getattr(hparams, name) * term for name, term in terms.items())
    return jnp.asarray(total), terms


def losses(energies: Energies, latents: Latents) -> Terms:
    z, action, z_next = latents
    log_inverse = jax.nn.log_softmax(energies.diagonal(z_next, z).sum(1))
    return {
        "fwd": forward_loss(energies.pairwise(z_next, z, action)),
        "inv": -taken(log_inverse, action).mean(),
    }


METHOD = Method(
    "factored_markov",
    FactoredMarkov,
    HParams,
    loss,
    scores=lambda model, z_next, z: model.energies.scores(z_next, z),
    nats=("fwd", "inv"),
)
