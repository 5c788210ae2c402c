"""MSA on the walled grid, with a network for vectors in place of the encoder."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import walled_grid
from flax import nnx
from learning import fit
from walled_grid import Grid

from acf.methods.msa import MSA, HParams, inverse_loss, ratio_loss, smoothness_loss
from acf.methods.transitions import Latents, derangement
from acf.nn import MLP


class VectorMSA(MSA):
    def __init__(self, latents: int, rngs: nnx.Rngs):
        self.trunk = MLP(walled_grid.WIDTH, (256, 256), latents, rngs=rngs)
        self.inverse = MLP(2 * latents, (128,), walled_grid.ACTIONS, rngs=rngs)
        self.ratio = MLP(2 * latents, (128,), 1, rngs=rngs)

    def latents(self, key, cell, action, cell_next):
        x = walled_grid.observe(jnp.concatenate([cell, cell_next]), key)
        z, z_next = jnp.split(jnp.tanh(self.trunk(x)), 2)
        return Latents(z, action, z_next)


class Result(NamedTuple):
    """Of fresh transitions."""

    accuracy: float
    inverse: float
    ratio: float
    confidence: float
    """Mean probability of the likelier action, which a calibrated model's accuracy equals."""


def learn(grid: Grid, hparams: HParams, *, steps: int, lr: float = 4e-4, latents: int = 2, seed: int = 0) -> Result:
    graph, params = nnx.split(VectorMSA(latents, nnx.Rngs(seed)))

    def terms(model, key, n):
        data_key, x_key, pair_key = jax.random.split(key, 3)
        batch = model.latents(x_key, *grid.sample(data_key, n))
        ratio = ratio_loss(model.ratio, batch, derangement(pair_key, n))
        return batch, inverse_loss(model.inverse, batch), ratio, smoothness_loss(batch, hparams.max_step)

    def objective(params, key, _):
        _, inverse, ratio, smoothness = terms(nnx.merge(graph, params), key, 128)
        return hparams.inverse * inverse + hparams.ratio * ratio + hparams.smoothness * smoothness

    params = jax.jit(partial(fit, objective, steps=steps, lr=lr))(params, jax.random.key(seed))
    model = nnx.merge(graph, params)
    batch, inverse, ratio, _ = terms(model, jax.random.key(99), 20_000)
    probability = np.asarray(jax.nn.softmax(model.inverse(jnp.concatenate([batch.z, batch.z_next], axis=1))))
    accuracy = (probability.argmax(1) == np.asarray(batch.action)).mean()
    return Result(float(accuracy), float(inverse), float(ratio), float(probability.max(1).mean()))
