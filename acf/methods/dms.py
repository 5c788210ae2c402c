"""Disentanglement via Mechanism Sparsity (Lachapelle et al. 2022): a VAE over transitions with a learned sparse graph.

Each latent's transition model sees the previous latents and the action through binary masks. A penalty on the expected
number of open edges makes both graphs (state → state, action → state) sparse, and with them the latents factors.
`docs/notation.md` lists the choices.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acf.methods.base import Batch, Method, Spec, Terms
from acf.methods.guard import guard_loss
from acf.nn import Decoder, StackedMLP, as_pixels, sample_gates

MIN_VARIANCE = 1e-4  # of deterministic dynamics: below it, a gate that flickers costs more than all else
START_LOGIT = 5.0  # all edges open, with probability 0.993
START_SIGMA_X = 0.1
START_SIGMA_Z = 0.1  # of the posterior: the latents of a fresh encoder lie close together, and must not drown in noise


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HParams:
    """Weights of the loss terms, learning rates, and how the masks are sampled."""

    lr: float = 3e-4
    elbo: float = 5.0
    action_sparsity: float = 3.0
    state_sparsity: float = 1.0
    """Divided by `elbo`, what an edge costs in nats a transition."""
    l2: float = 0.002
    gumbel_temp: float = 1.0
    hard: float = 1.0
    """1: binary masks with straight-through gradients. 0: soft ones, through which closed edges leak."""
    frozen_epochs: float = 5.0
    """Until then all edges are open and free, so that none is lost before it is worth something."""
    speed: float = 1.0
    """The edges' logits and the latents' variances learn this many times as fast as the networks. At 1 an edge takes
    5 / lr steps to close: Adam moves every number by about lr a step."""
    guard: float = 1000.0
    """Weight of the guard against collapse (`acf.methods.guard`), which acts until `frozen_epochs`."""


class Gaussian(NamedTuple):
    """Independent Gaussians."""

    mean: Float[Array, "*N K"]
    variance: Float[Array, "*N K"]

    def sample(self, key: PRNGKeyArray) -> Float[Array, "*N K"]:
        return self.mean + jnp.sqrt(self.variance) * jax.random.normal(key, self.mean.shape)


class Masks(NamedTuple):
    """Which inputs each latent's transition model sees, one sample a transition."""

    state: Float[Array, "N K K"]  # [n, i, j]: z_j may influence z'_i
    action: Float[Array, "N K A"]  # [n, i, a]: action a may influence z'_i


class Edges(NamedTuple):
    """Of both graphs: a logit, or the probability of being open."""

    state: Float[Array, "K K"]
    action: Float[Array, "K A"]


class Dynamics(nnx.Module):
    """`p(z'_i | z, a) = N(m_i, σ_i²)`: m_i a network `(d + |A|) → H → 1` of the masked (z, one-hot a), σ_i a number."""

    def __init__(self, latents: int, n_actions: int, *, hidden: int, rngs: nnx.Rngs):
        K, A = latents, n_actions
        self.networks = StackedMLP(K, K + A, (hidden,), 1, rngs=rngs)
        # All three count from their start in units of `speed`.
        self.scale = nnx.Param(jnp.zeros(K))
        self.state_logits = nnx.Param(jnp.zeros((K, K)))
        self.action_logits = nnx.Param(jnp.zeros((K, A)))

    def __call__(self, z: Float[Array, "N K"], action: Int[Array, " N"], masks: Masks, hparams: HParams) -> Gaussian:
        one_hot = jax.nn.one_hot(action, masks.action.shape[2])
        seen = jnp.concatenate([masks.state * z[:, None, :], masks.action * one_hot[:, None, :]], axis=2)
        mean = self.networks(seen)[..., 0]
        return Gaussian(mean, jnp.broadcast_to(learned_variance(self.scale[...], 1.0, hparams.speed), mean.shape))

    def logits(self, hparams: HParams) -> Edges:
        own = Edges(self.state_logits[...], self.action_logits[...])
        return Edges(*(START_LOGIT + hparams.speed * logits for logits in own))

    def sample_masks(self, key: PRNGKeyArray, rows: int, hparams: HParams, frozen: Bool[Array, ""]) -> Masks:
        keys = jax.random.split(key)
        samples = (
            sample_gates(logits, key, rows, hparams.gumbel_temp, hparams.hard)
            for logits, key in zip(self.logits(hparams), keys, strict=True)
        )
        return Masks(*(jnp.where(frozen, 1.0, sample) for sample in samples))


class DMS(nnx.Module):
    def __init__(self, spec: Spec, *, rngs: nnx.Rngs):
        K, H = spec.latents, spec.hidden
        sizes = {"depth": spec.depth, "hidden": H, "dtype": spec.dtype}
        self.encoder = spec.make_encoder(2 * K, bounded=False, rngs=rngs)
        self.decode = Decoder(K, spec.frame_shape, **sizes, rngs=rngs)
        self.scale_x = nnx.Param(jnp.zeros(1))
        self.dynamics = Dynamics(K, spec.n_actions, hidden=H, rngs=rngs)
        self.start_bias = nnx.Param(jnp.zeros(K))
        self.start_scale = nnx.Param(jnp.zeros(K))

    def posterior(self, frames: Array) -> Gaussian:
        mean, raw = jnp.split(self.encoder(frames), 2, axis=1)
        return Gaussian(mean, learned_variance(raw, START_SIGMA_Z**2))

    def encode(self, frames: Array) -> Float[Array, "N K"]:
        return self.posterior(frames).mean

    def start(self, hparams: HParams) -> Gaussian:
        """`p(z)` of the first latent of a transition."""
        return Gaussian(self.start_bias[...], learned_variance(self.start_scale[...], 1.0, hparams.speed))

    def variance_x(self) -> Float[Array, ""]:
        """Of every pixel around what the decoder makes."""
        return learned_variance(self.scale_x[0], START_SIGMA_X**2)


def loss(model: DMS, batch: Batch, key: PRNGKeyArray, hparams: HParams) -> tuple[Float[Array, ""], Terms]:
    frozen = batch.epoch < hparams.frozen_epochs
    q = model.posterior(jnp.concatenate([batch.x, batch.x_next]))
    pixels = as_pixels(jnp.concatenate([batch.x, batch.x_next]))
    terms = losses(model, q, batch.action, pixels, key, hparams, frozen)
    return total(terms, pixels[0].size, hparams, frozen), terms


def losses(
    model: DMS,
    q: Gaussian,
    action: Int[Array, " N"],
    pixels: Float[Array, "N2 *pixels"],
    key: PRNGKeyArray,
    hparams: HParams,
    frozen: Bool[Array, ""],
) -> Terms:
    """Every term, unweighted, in nats or edges; first all frames x, then all x' (2N rows in `q` and `pixels`)."""
    z_key, mask_key = jax.random.split(key)
    z = q.sample(z_key)
    masks = model.dynamics.sample_masks(mask_key, len(action), hparams, frozen)
    q_now, q_next = (Gaussian(*part) for part in zip(*(jnp.split(values, 2) for values in q), strict=True))
    predicted = model.dynamics(z[: len(action)], action, masks, hparams)
    variance_x = model.variance_x()
    edges = open_probability(model.dynamics.logits(hparams))
    return {
        "recons": 2 * negative_log_likelihood(pixels, model.decode(z), variance_x),
        "kl_start": kl(q_now, model.start(hparams)).sum(1).mean(),
        "kl_next": kl(q_next, predicted).sum(1).mean(),
        "action_sparsity": edges.action.sum(),
        "state_sparsity": edges.state.sum(),
        "l2": (q.mean**2).sum(1).mean(),
        "guard": guard_loss(q.mean),
        "sigma_x": jnp.sqrt(variance_x),
        "least_sigma": jnp.sqrt(predicted.variance.min()),
    }


def total(terms: Terms, n_pixels: int, hparams: HParams, frozen: Bool[Array, ""]) -> Float[Array, ""]:
    """ELBO and penalties share one normaliser: else an edge's price would hang on the size of the frame."""
    nelbo = terms["recons"] + terms["kl_start"] + terms["kl_next"]
    weights = {"action_sparsity": hparams.action_sparsity, "state_sparsity": hparams.state_sparsity}
    penalty = sum(weight * terms[name] for name, weight in weights.items())
    nats = hparams.elbo * nelbo + jnp.where(frozen, 0.0, penalty)
    guard = jnp.where(frozen, hparams.guard * terms["guard"], 0.0)
    return nats / n_pixels + hparams.l2 * terms["l2"] + guard


def negative_log_likelihood(
    x: Float[Array, "N *pixels"], mean: Float[Array, "N *pixels"], variance: Float[Array, ""]
) -> Float[Array, ""]:
    """`-log N(x; mean, variance)`, sum over pixels, mean over rows."""
    each = ((x - mean) ** 2 / variance + jnp.log(2 * jnp.pi * variance)) / 2
    return each.sum() / len(x)


def kl(q: Gaussian, p: Gaussian) -> Float[Array, "*N K"]:
    """`KL(q ‖ p)` of each coordinate."""
    return (jnp.log(p.variance / q.variance) + (q.variance + (q.mean - p.mean) ** 2) / p.variance - 1) / 2


def open_probability(logits: Edges) -> Edges:
    return Edges(*map(jax.nn.sigmoid, logits))


def variance(raw: Float[Array, "*K"]) -> Float[Array, "*K"]:
    return jax.nn.softplus(raw) + MIN_VARIANCE


def learned_variance(own: Float[Array, "*K"], start: float, speed: float | Array = 1.0) -> Float[Array, "*K"]:
    """A free variance: `start` where the parameter is 0."""
    return variance(jnp.log(jnp.expm1(start - MIN_VARIANCE)) + speed * own)


def graphs(model: DMS, hparams: HParams) -> dict[str, Any]:
    """The learned graphs: row i is what z'_i hangs on, a column for each latent and for each action."""
    edges = open_probability(model.dynamics.logits(hparams))
    return {
        "graphs": {
            name: {"probability": np.asarray(open_, float).round(6).tolist(), "edges": (open_ > 0.5).tolist()}
            for name, open_ in edges._asdict().items()
        }
    }


METHOD = Method("dms", DMS, HParams, loss, extras=graphs, nats=("recons", "kl_start", "kl_next"))
