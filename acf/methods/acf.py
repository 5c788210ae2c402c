"""Action-Controllable Factorization: Algorithm 1 of the paper, and a sparsity term of our own.

Where the paper is silent or contradicts itself, `docs/notation.md` gives the choice made here and why.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import nnx
from jax.lax import stop_gradient
from jaxtyping import Array, Float, Int, PRNGKeyArray

from acf.methods.base import Batch, Method, Spec, Terms
from acf.methods.guard import guard_loss
from acf.methods.transitions import Latents, add_noise, encode_pair, taken
from acf.nn import MLP, Energies


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HParams:
    """Weights of the loss terms (the paper's β), learning rate, and scale of the latent noise."""

    lr: float = 3e-4
    fwd: float = 40.0
    ratio: float = 20.0
    inv: float = 20.0
    policy: float = 10.0
    noise: float = 0.02
    """Standard deviation of ε, added to every latent. The paper gives none; 14 positions in (-1, 1) lie 0.14 apart."""
    sparsity: float = 0.0
    """Weight of the score-difference sparsity, ramped in between the two epochs below. Zero in the paper."""
    sparsity_from: float = 5.0
    sparsity_to: float = 10.0
    guard: float = 1000.0
    """Weight of the guard against collapse (`acf.methods.guard`): exactly 0 for healthy latents."""


class ACF(nnx.Module):
    def __init__(self, spec: Spec, *, rngs: nnx.Rngs):
        K, A, H = spec.latents, spec.n_actions, spec.hidden
        assert spec.noop is not None, "training refuses data without one"
        self.noop = spec.noop
        self.encode = spec.make_encoder(rngs=rngs)
        self.energies = Energies(K, A, hidden=H, kernel=spec.kernel, rngs=rngs)
        self.policy = MLP(K, (H, H), A, rngs=rngs)


def loss(model: ACF, batch: Batch, key: PRNGKeyArray, hparams: HParams) -> tuple[Float[Array, ""], Terms]:
    clean = encode_pair(model.encode, batch)
    terms = losses(model, add_noise(clean, key, hparams.noise))
    terms["guard"] = guard_loss(jnp.concatenate([clean.z, clean.z_next]))
    weights = {
        "ratio": hparams.ratio,
        "fwd": hparams.fwd,
        "inv": hparams.inv,
        "policy": hparams.policy,
        "sparsity": hparams.sparsity * ramp(batch.epoch, hparams.sparsity_from, hparams.sparsity_to),
        "guard": hparams.guard,
    }
    total = sum(weights[name] * term for name, term in terms.items())
    return jnp.asarray(total), terms


def losses(model: ACF, latents: Latents) -> Terms:
    """Every term of Algorithm 1, unweighted, and the sparsity."""
    z, action, z_next = latents
    log_pi = jax.nn.log_softmax(model.policy(z))  # [N, A]
    diagonal, scores, pairs = model.energies(z_next, z, action)
    energies = diagonal.sum(1)  # [N, A], of the transitions themselves
    # π learns from its own loss alone. If the other terms trained it too, it would drift without bound:
    # the ratio and the inverse loss pull E + log π to two different targets.
    fixed_pi = stop_gradient(log_pi)
    return {
        "ratio": ratio_loss(energies, fixed_pi, action, model.noop),
        "fwd": forward_loss(pairs),
        "inv": -taken(jax.nn.log_softmax(energies + fixed_pi), action).mean(),
        "policy": -taken(log_pi, action).mean(),
        "sparsity": sparsity_loss(score_differences(scores, model.noop)),
    }


def ratio_loss(
    energies: Float[Array, "N A"], log_pi: Float[Array, "N A"], action: Int[Array, " N"], noop: int
) -> Float[Array, ""]:
    """`|A| - 1` classifiers with logits `log r_a + ζ_a`: was it action a? Summed over a ≠ a₀, mean over the batch."""
    logits = (energies - energies[:, noop, None]) + (log_pi - log_pi[:, noop, None])
    is_action = jax.nn.one_hot(action, logits.shape[1])
    cross_entropy = jax.nn.softplus(logits) - is_action * logits
    # The no-op's own logit is 0 whatever the parameters: its constant log 2 is left out.
    return (cross_entropy.sum(1) - cross_entropy[:, noop]).mean()


def forward_loss(pairs: Float[Array, "N N"]) -> Float[Array, ""]:
    """InfoNCE: transition n's own next latent (the diagonal) against those of the batch."""
    own = (pairs * jnp.eye(len(pairs))).sum(1)  # `jnp.diagonal`'s gradient is a slow scatter
    return (jax.nn.logsumexp(pairs, axis=1) - own).mean()


def score_differences(scores: Float[Array, "N K A"], noop: int) -> Float[Array, "N K A"]:
    """`∂/∂z'_k [E_k(z'_k, a, z) - E_k(z'_k, a₀, z)]` for every a; 0 for the no-op itself."""
    return scores - scores[:, :, noop, None]


def sparsity_loss(differences: Float[Array, "N K A"]) -> Float[Array, ""]:
    """How far the score differences are from 1-sparse: the theorem's condition 4 as a loss.

    The mean over transitions and actions of `‖g‖₁/‖g‖₂ - 1`, weighted by the stopped `‖g‖₂` so that an action without
    effect does not count. Zero exactly when every g has one entry, √K - 1 at most, and free of scale.
    """
    tiny = 1e-8  # keeps the norm's gradient finite at 0
    l1 = jnp.abs(differences).sum(1)
    l2 = jnp.sqrt((differences**2).sum(1) + tiny**2)
    weight = jnp.linalg.norm(stop_gradient(differences), axis=1)  # not l2: exactly 0 without effect
    return (weight * (l1 / l2 - 1)).sum() / (weight.sum() + tiny)


def ramp(epoch: Float[Array, ""], start: float | Array, end: float | Array) -> Float[Array, ""]:
    """0 until `start`, 1 from `end` on, linear between."""
    return jnp.clip((epoch - start) / jnp.maximum(end - start, 1e-6), 0, 1)


METHOD = Method(
    "acf",
    ACF,
    HParams,
    loss,
    scores=lambda model, z_next, z: model.energies.scores(z_next, z),
    nats=("ratio", "fwd", "inv", "policy"),
    needs_noop=True,  # which the ratio loss contrasts each action with
)
