"""The `acf` command made small: a tiny `quick` preset and a toy method. For tests that need a process of their own.

The toy method has what the trainer touches (data order, noise, weights, every term) and compiles in no time.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import nnx

from acf.methods import METHODS
from acf.methods.base import Method
from acf.training import presets

TINY = {"transitions": 600, "encoder": "places", "depth": 2, "hidden": 8, "epochs": 2, "batch_size": 32}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class HParams:
    lr: float = 2e-3  # not that of `quick`
    noise: float = 0.1
    fwd: float = 0.0  # what the term of this name is
    nan_from: float = 1e9  # epoch from which on the loss is NaN


class Toy(nnx.Module):
    def __init__(self, spec, *, rngs: nnx.Rngs):
        h, w, c = spec.frame_shape
        self.linear = nnx.Linear(h * w * c, spec.latents, rngs=rngs)

    def encode(self, frames):
        return self.linear(frames.reshape(len(frames), -1) / 255)


def loss(model, batch, key, hparams):
    """The change of the latents should be the action's number, seen through noise."""
    change = model.encode(batch.x_next) - model.encode(batch.x)
    target = batch.action[:, None] + hparams.noise * jax.random.normal(key, change.shape)
    mse = ((change - target) ** 2).mean()
    total = jnp.where(batch.epoch >= hparams.nan_from, jnp.nan, mse)
    return total, {"mse": total, "fwd": jnp.asarray(hparams.fwd)}


METHOD = Method("toy", Toy, HParams, loss, nats=("mse",))


def install(monkeypatch) -> None:
    monkeypatch.setattr(presets, "QUICK", TINY)
    monkeypatch.setitem(METHODS, "toy", "small_acf")


if __name__ == "__main__":
    from acf.cli import main

    presets.QUICK, METHODS["toy"] = TINY, "small_acf"
    main()
