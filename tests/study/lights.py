"""A world of two lights on two rows of cells, and a method whose latents are right with some seeds only."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

import acf
from acf.methods.base import Method, Spec
from acf.training import population
from acf.training.flat import layout

LUCK = 0.75  # drawn between 0 and 1: networks with more of it read the lights


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HParams:
    lr: float = 0.0


class Lights(nnx.Module):
    """Latents of a network that has learned: 3 a cell, and a third that an episode keeps; or a mess."""

    def __init__(self, spec, *, rngs: nnx.Rngs):
        self.mix = nnx.Param(jax.random.normal(rngs.params(), (16, 2)))
        self.luck = nnx.Param(jax.random.uniform(rngs.params(), ()))

    def encode(self, frames):
        rows = frames[:, ::8, :, 0].astype(jnp.float32)  # the two lines on which the lights are
        cells = jnp.argmax(rows, axis=2) // 2
        mess = jnp.sin(rows[:, 0] @ self.mix[...]) + jnp.cos(rows[:, 1] @ self.mix[...])
        z = jnp.where(self.luck[...] > LUCK, 3.0 * cells, mess)
        return jnp.concatenate([z, frames[:, 15:16, 15, 0] / 255.0], axis=1)


def loss(model, batch, key, hparams):
    value = model.encode(batch.x).mean()
    return value, {"mean": value}


METHOD = Method("lights", Lights, HParams, loss, latents=2, finds_factors=True, context=1)


def right_seeds(upto=16):
    """Those that have luck."""
    learner = METHOD.bind(Spec((16, 16, 1), n_actions=5, noop=0, latents=2))
    state = population.init(learner, jnp.arange(upto))
    unravel = layout(jax.eval_shape(learner.init, jax.random.key(0))).unravel
    luck = [unravel(state.params[n])["luck"].get_value() for n in range(upto)]
    return [seed for seed, value in enumerate(luck) if value > LUCK]


def collect(episodes=300, steps=25, seed=0, noise=0.0):
    """Stay, and each light left and right: cells 0 to 4, walls at the ends; an episode keeps the corner's shade."""
    rng = np.random.default_rng(seed)
    x, a, x_next, episode, factors, then = [], [], [], [], [], []
    for number in range(episodes):
        at, shade = rng.integers(0, 5, 2), rng.integers(2)
        for _ in range(steps):
            action = rng.integers(5)
            to = at.copy()
            if action:
                light = (action - 1) // 2
                to[light] = np.clip(at[light] + (1 if action % 2 else -1), 0, 4)
            for frames, values, state in ((x, factors, at), (x_next, then, to)):
                frames.append(picture(state, shade) + noise * rng.normal(size=(16, 16, 1)))
                values.append([*state, shade])
            a.append(action)
            episode.append(number)
            at = to
    x, x_next = (np.clip(np.round(frames), 0, 255).astype(np.uint8) for frames in (x, x_next))
    return acf.Transitions.from_arrays(
        x,
        a,
        x_next,
        noop=0,
        episode=episode,
        action_names=["stay", "up+", "up-", "down+", "down-"],
        factors=np.array(factors, np.float32),
        next_factors=np.array(then, np.float32),
        factor_names=["upper", "lower", "shade"],
        controllable=[True, True, False],
    )


def picture(cells, shade):
    frame = np.full((16, 16, 1), 20.0)
    for row, cell in zip((0, 8), cells, strict=True):
        frame[row : row + 2, 2 * cell : 2 * cell + 2] = 200
    frame[14:, 14:] = 60 + 100 * shade
    return frame
