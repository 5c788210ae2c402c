"""How good a sample is, from its members on the validation episodes: one number a seed, of which the mean counts.

`supervised` looks at the true factors, so what it selects is not found without labels. `udr` and `loss` do not.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from acf.errors import AcfError
from acf.methods import get
from acf.methods.base import Batch
from acf.metrics import r2_matrices, score, udr
from acf.study.held_out import HeldOut
from acf.training.config import make_hparams

Objective = Literal["supervised", "udr", "loss"]


def supervised(held_out: HeldOut, members: range) -> Float[np.ndarray, " seeds"]:
    """`diag - off_diag` of each seed, against the true factors."""
    assert held_out.factors is not None
    r2 = r2_matrices(held_out.z[members.start : members.stop], held_out.factors, held_out.episode)
    return np.array([(found := score(own)).diag - found.off_diag for own in r2])


def agreement(held_out: HeldOut, members: range) -> Float[np.ndarray, " seeds"]:
    """Each seed's mean agreement with the other seeds."""
    return udr(held_out.z[members.start : members.stop]).of_member


def validation_loss(held_out: HeldOut, members: range) -> Float[np.ndarray, " seeds"]:
    """The sum of the method's log-losses in nats, without the weights, which differ from sample to sample.

    In batches of the size that was trained with: InfoNCE counts against the others of its batch.
    """
    config, method = held_out.config, get(held_out.config.method)
    if method.recipe.sampler:
        raise AcfError(f"{method.name} draws batches of its own, which has no loss on others: take --objective udr")
    batches = len(held_out.action) // config.batch_size
    rows = np.arange(batches * config.batch_size).reshape(batches, config.batch_size)
    x, x_next = (held_out.frames[frame[rows]] for frame in (held_out.i, held_out.j))
    action, epoch = jnp.asarray(held_out.action[rows]), jnp.full(batches, float(config.epochs))
    batch = Batch(jnp.asarray(x), action, jnp.asarray(x_next), epoch, jnp.ones(batches))
    losses = []
    for n in members:
        hparams = make_hparams(method, config.members[n].hparams)
        terms = _mean_terms(held_out.members[n].learner.loss, held_out.members[n].params, batch, hparams)
        losses.append(sum(float(terms[name]) for name in method.nats))
    return np.array(losses)


def _mean_terms_of(loss: Callable[..., Any], params: Any, batches: Batch, hparams: Any) -> Any:
    keys = jax.random.split(jax.random.key(0), len(batches.action))
    each = jax.lax.map(lambda one: loss(params, one[0], one[1], hparams)[1], (batches, keys))
    return jax.tree.map(jnp.mean, each)


_mean_terms = jax.jit(_mean_terms_of, static_argnums=0)


class _Kind(NamedTuple):
    of_seeds: Callable[[HeldOut, range], Float[np.ndarray, " seeds"]]
    maximise: bool
    title: str


OBJECTIVES: dict[str, _Kind] = {
    "supervised": _Kind(supervised, True, "diag - off_diag (1 is best; selects by the true factors)"),
    "udr": _Kind(agreement, True, "agreement between seeds, UDR (1 is best)"),
    "loss": _Kind(validation_loss, False, "validation loss in nats, unweighted (lower is better)"),
}


def check_validation(objective: Objective, transitions: int, episodes: int, known: bool, batch_size: int) -> None:
    """Is there enough to select by?"""
    found = f"the validation part of the data has {transitions} transitions in {episodes} episodes"
    if objective == "supervised" and not known:
        raise AcfError("the data has no true factors to select by: choose --objective udr or loss")
    if objective == "supervised" and episodes < 3:
        raise AcfError(f"{found}, scoring needs 3 episodes: collect more")
    if objective == "loss" and transitions < batch_size:
        raise AcfError(f"{found}, less than one batch of {batch_size}: collect more")
