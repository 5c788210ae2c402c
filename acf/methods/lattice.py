"""Lattice: every action moves as few latents as possible by one unit, and states of one episode are told apart.

The unit is the least distance that can be told apart: energies have a fixed width. At the optimum the controllable
states of an episode are points of a lattice, and each elementary move is one step along one axis (`docs/lattice.md`).
Levels, certificate and factors are read from the latents afterwards (`acf.factors`). Ours, not the paper's.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jax.lax import stop_gradient
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from acf.methods.base import Batch, Method, Recipe, Spec, Terms
from acf.methods.sampling import BY_EPISODE, FRAMES
from acf.nn import MLP, PlacesEncoder

CONTEXT = 2  # latents for what an episode keeps
GAIN = 4.0  # of the networks against a unit of the latents: a step is about 3
SHARP = 20.0  # of the context: contexts half a unit apart are told apart as surely as states 3 apart
NEAR = 0.08  # squared distance of contexts that are hard to tell apart
FARTHEST = 40.0  # latents may lie this far from 0 for nothing


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HParams:
    """Learning rate and the weights of the loss terms."""

    lr: float = 1e-3
    episode: float = 1.0
    """Which state of this episode comes next?"""
    batch: float = 1.0
    """Which of the whole batch?"""
    context: float = 1.0
    """Which episode is this?"""
    inverse: float = 0.1
    """Which action was it?"""
    steps: float = 0.05
    """Price of a step, each action counting alike however often it moves anything."""
    owner: float = 0.4
    """Worth of knowing the action from the latents that moved: else a key and a door may share one."""
    attention: float = 1e-3
    """Price of a latent's looking at a place."""
    far: float = 1.0
    """Keeps latents finite where nothing else does."""


class View(NamedTuple):
    """What the model makes of frames, for the loss."""

    z: Float[Array, "N K"]
    context: Float[Array, "N U"]
    shares: Float[Array, "N P K"]
    """What each place adds to each latent."""


class Moves(NamedTuple):
    """What the transitions of a batch change."""

    change: Float[Array, "N K"]
    of_action: Float[Array, "N A"]
    """1 for the action taken where the picture changed."""

    def by_action(self, values: Float[Array, "N *m"]) -> Float[Array, "A *m"]:
        """Means over each action's changes."""
        count = jnp.maximum(self.of_action.sum(0), 1e-6)
        return jnp.einsum("na,n...->a...", self.of_action, values) / count.reshape(-1, *[1] * (values.ndim - 1))

    def over_actions(self, values: Float[Array, "A *m"]) -> Float[Array, "*m"]:
        """Their mean over the actions that change anything in this batch: each counts alike, however rare."""
        present = (self.of_action.sum(0) > 0).astype(values.dtype)
        return jnp.tensordot(present / jnp.maximum(present.sum(), 1), values, axes=1)

    def mean(self, values: Float[Array, " N"]) -> Float[Array, ""]:
        return self.over_actions(self.by_action(values))


class Lattice(nnx.Module):
    def __init__(self, spec: Spec, *, rngs: nnx.Rngs):
        K, A, H = 2 * spec.latents, spec.n_actions, spec.hidden
        self.n_actions = A
        self.places = PlacesEncoder(spec.frame_shape, K, width=H // 2, bounded=False, dtype=spec.dtype, rngs=rngs)
        self.context = MLP(3 * (H // 2), (H,), CONTEXT, rngs=rngs)
        self.effect = MLP(K + A, (H, H), K, rngs=rngs)
        self.gate = MLP(K + A + CONTEXT, (H, H), K, rngs=rngs)

    def encode(self, frames: Array) -> Float[Array, "N d"]:
        """The latents that actions move, and behind them those of the context."""
        moments = self.places.moments(frames)
        return jnp.concatenate([GAIN * self.places.add_up(moments), jnp.tanh(self.context(moments))], axis=1)

    def look(self, frames: Array) -> View:
        seen = self.places.seen(frames)
        return View(GAIN * seen.z, jnp.tanh(self.context(seen.moments)), GAIN * seen.shares)

    def reached(self, z: Float[Array, "N K"], context: Float[Array, "N U"]) -> Float[Array, "N A K"]:
        """Where each action would lead: gate times effect.

        What an action does hangs on the state alone. The context, where the walls are, only says whether it happens: it
        cannot undo an encoder that shows each layout in coordinates of its own.
        """
        N, K = z.shape
        action = jnp.tile(jnp.eye(self.n_actions), (N, 1))
        own = jnp.concatenate([jnp.repeat(z / GAIN, self.n_actions, axis=0), action], axis=1)
        context = jnp.repeat(context, self.n_actions, axis=0)
        gate = jax.nn.sigmoid(2 + self.gate(jnp.concatenate([own, context], axis=1)))
        return z[:, None] + GAIN * (gate * self.effect(own)).reshape(N, self.n_actions, K)


def loss(model: Lattice, batch: Batch, key: PRNGKeyArray, hparams: HParams) -> tuple[Float[Array, ""], Terms]:
    terms = losses(model, batch)
    ramps = {"steps": (0.05, 0.3), "owner": (0.05, 0.3)}
    total = sum(
        getattr(hparams, name) * ramp(batch.progress, *ramps.get(name, (-1, 0))) * term for name, term in terms.items()
    )
    return jnp.asarray(total), terms


def losses(model: Lattice, batch: Batch) -> Terms:
    """Every term, unweighted."""
    seen = model.look(jnp.concatenate([batch.x, batch.x_next]))
    centre = stop_gradient(seen.z.mean(0))
    (z, z_next), (u, u_next) = jnp.split(seen.z - centre, 2), jnp.split(seen.context, 2)
    pictures = by_episode(as_rows(batch.x)), by_episode(as_rows(batch.x_next))
    changed = squared_distance(as_rows(batch.x), as_rows(batch.x_next)) > batch.known.still
    one_hot = jax.nn.one_hot(batch.action, model.n_actions)
    moves = Moves(z_next - z, one_hot * changed[:, None])
    # The context as another frame of the episode shows it: what changes within an episode cannot hide in it.
    other = jnp.roll(by_episode(u), 1, axis=1).reshape(u.shape)
    reached = model.reached(z, stop_gradient(other))
    predicted = (reached * one_hot[..., None]).sum(1)
    return {
        "episode": episode_loss(predicted, z, z_next, pictures, batch.known.still, class_weights(one_hot, changed)),
        "batch": batch_loss(predicted, z_next, other, u_next, as_rows(batch.x_next), batch.known.still),
        "context": context_loss(by_episode(u)[:, 0], by_episode(u_next)[:, -1]),
        "inverse": inverse_loss(reached, z_next, one_hot, changed),
        "steps": moves.mean(length(moves.change).sum(1)),
        "owner": owner_loss(moves),
        "attention": length(seen.shares).sum((1, 2)).mean(),
        "far": (jax.nn.relu(jnp.abs(seen.z) - FARTHEST) ** 2).mean(),
    }


def episode_loss(
    predicted: Float[Array, "N K"],
    z: Float[Array, "N K"],
    z_next: Float[Array, "N K"],
    pictures: tuple[Float[Array, "E P D"], Float[Array, "E P D"]],
    still: Float[Array, ""],
    weights: Float[Array, " N"],
) -> Float[Array, ""]:
    """InfoNCE among the states of the own episode, before and after each transition.

    The own state before is a wrong answer too: "nothing happened" must be told from what did.
    """
    candidates = jnp.concatenate([by_episode(z_next), by_episode(z)], axis=1)
    x, x_next = pictures
    differs = squared_distances(x_next, jnp.concatenate([x_next, x], axis=1)) > still
    logits = -squared_distances(by_episode(predicted), candidates) / 2
    each = own_is_right(logits, differs).reshape(-1)
    return (weights * each).sum() / weights.sum()


def batch_loss(
    predicted: Float[Array, "N K"],
    z_next: Float[Array, "N K"],
    context: Float[Array, "N U"],
    context_next: Float[Array, "N U"],
    x_next: Float[Array, "N D"],
    still: Float[Array, ""],
) -> Float[Array, ""]:
    """InfoNCE among all of the batch. What an episode keeps is told by the context, so z need not tell it."""
    logits = -squared_distances(predicted, z_next) / 2 - SHARP * squared_distances(context, context_next)
    return own_is_right(logits, squared_distances(x_next, x_next) > still).mean()


def context_loss(one: Float[Array, "E U"], another: Float[Array, "E U"]) -> Float[Array, ""]:
    """Which frame is of the same episode?"""
    logits = -squared_distances(one, another) / NEAR
    return own_is_right(logits, jnp.ones_like(logits, bool)).mean()


def inverse_loss(
    reached: Float[Array, "N A K"],
    z_next: Float[Array, "N K"],
    one_hot: Float[Array, "N A"],
    changed: Bool[Array, " N"],
) -> Float[Array, ""]:
    """Which action leads there? What changed counts ten times as much: the rest can only be guessed."""
    logits = -((reached - z_next[:, None]) ** 2).sum(-1) / 2
    each = jax.nn.logsumexp(logits, axis=1) - (logits * one_hot).sum(1)
    weights = 0.1 + changed
    return (weights * each).sum() / weights.sum()


def owner_loss(moves: Moves) -> Float[Array, ""]:
    """`-I(action; latent moved)`: which latent each action moves, each action counting alike."""
    share = jnp.abs(moves.change)
    share = share / (share.sum(1, keepdims=True) + 1e-3)
    of_action = moves.by_action(share) + 1e-6
    of_action = of_action / of_action.sum(1, keepdims=True)
    entropy = lambda p: -(p * jnp.log(p)).sum(-1)  # noqa: E731
    return moves.over_actions(entropy(of_action)) - entropy(moves.over_actions(of_action) + 1e-9)


def own_is_right(logits: Float[Array, "*E N M"], differs: Bool[Array, "*E N M"]) -> Float[Array, "*E N"]:
    """Cross-entropy of each row's own column, the n-th, against those that show another picture."""
    own = jnp.eye(*logits.shape[-2:], dtype=bool)
    logits = jnp.where(own | differs, logits, -1e9)
    return jax.nn.logsumexp(logits, axis=-1) - jnp.where(own, logits, 0).sum(-1)


def class_weights(one_hot: Float[Array, "N A"], changed: Bool[Array, " N"]) -> Float[Array, " N"]:
    """Such that every class (action, changed) of the batch has the same share."""
    of_class = jnp.concatenate([one_hot * changed[:, None], one_hot * ~changed[:, None]], axis=1)
    return (of_class / jnp.maximum(of_class.sum(0), 1)).sum(1)


def length(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """|x|, smooth around 0."""
    return jnp.sqrt(x**2 + 1e-4) - 1e-2


def ramp(progress: Float[Array, ""] | float, start: float, end: float) -> Float[Array, ""]:
    return jnp.clip((jnp.asarray(progress) - start) / (end - start), 0, 1)


def as_rows(frames: Array) -> Float[Array, "N D"]:
    """Pictures as vectors, black to white 1 apart and around 0: their distances lose less to rounding."""
    return frames.reshape(len(frames), -1) / 255.0 - 0.5


def by_episode(rows: Float[Array, "N m"]) -> Float[Array, "E P m"]:
    return rows.reshape(-1, FRAMES, rows.shape[-1])


def squared_distance(a: Float[Array, "*N m"], b: Float[Array, "*N m"]) -> Float[Array, "*N"]:
    return ((a - b) ** 2).sum(-1)


def squared_distances(a: Float[Array, "*E N m"], b: Float[Array, "*E M m"]) -> Float[Array, "*E N M"]:
    """Of every row of `a` to every row of `b`, by one product."""
    both = jnp.einsum("...nm,...km->...nk", a, b, precision="highest")
    return jnp.maximum((a**2).sum(-1)[..., :, None] + (b**2).sum(-1)[..., None, :] - 2 * both, 0)


def warm_up_and_cool_down(progress: Float[Array, ""]) -> Float[Array, ""]:
    """A quick rise, then a cosine to a thirtieth."""
    return jnp.minimum(progress / 0.05 + 0.01, 1) * (0.03 + 0.97 * (1 + jnp.cos(jnp.pi * progress)) / 2)


METHOD = Method(
    "lattice",
    Lattice,
    HParams,
    loss,
    recipe=Recipe(sampler=BY_EPISODE, schedule=warm_up_and_cool_down, clip=1.0),
    latents=6,
    finds_factors=True,
    context=CONTEXT,
    nats=("episode", "batch", "context", "inverse"),
)
