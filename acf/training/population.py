"""The training program: a population of members, each a (seed, hparams) pair, trained as one.

Pure functions of arrays. Everything random is derived from a member's seed and the step, so the state to keep is the
parameters, the optimiser's moments and the number of the step: nothing else has to be saved to go on exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from acf.methods.base import Batch, Learner, Params

WEIGHT_DECAY = 1e-4
MAX_CHUNK = 128  # steps between two looks by the host
INIT, ORDER, NOISE = range(3)  # streams of a member's key


class Arrays(NamedTuple):
    """Transitions on the device, an argument of the program: as constants they would make compilation slow."""

    frames: UInt8[Array, "M H W C"]
    i: Int[Array, " T"]
    action: Int[Array, " T"]
    j: Int[Array, " T"]


class State(NamedTuple):
    """Of all members, stacked on a leading axis."""

    params: Params
    optimiser: Any
    diverged_at: Int[Array, " P"]  # step at which a member's loss, gradient or parameters stopped being finite, or -1


@dataclass(frozen=True)
class Schedule:
    """How many steps, in equal chunks that never cross an epoch; what is left over of an epoch's shuffle is dropped."""

    transitions: int
    batch_size: int
    epochs: int

    @property
    def chunks_per_epoch(self) -> int:
        return -(-(self.transitions // self.batch_size) // MAX_CHUNK)

    @property
    def chunk(self) -> int:
        return self.transitions // self.batch_size // self.chunks_per_epoch

    @property
    def steps_per_epoch(self) -> int:
        return self.chunk * self.chunks_per_epoch

    @property
    def steps(self) -> int:
        return self.steps_per_epoch * self.epochs


def init(learner: Learner, seeds: Int[Array, " P"]) -> State:
    def one(seed: Int[Array, ""]) -> State:
        params = learner.init(_stream(seed, INIT))
        return State(params, _optimiser(0.0).init(params), jnp.int32(-1))

    return jax.vmap(one)(seeds)


def make_chunk(learner: Learner, schedule: Schedule, mesh: Mesh) -> Callable[..., tuple[State, dict[str, Array]]]:
    """The compiled program `(state, seeds, hparams, arrays, step) -> (state, mean terms [P])` of one chunk.

    Members are spread over the mesh's devices and never talk to each other; the data is on every device.
    """

    def one_member(state: State, seed: Int[Array, ""], hparams: Any, arrays: Arrays, first: Int[Array, ""]):
        order = _order(seed, schedule, first)

        def body(state: State, t: Int[Array, ""]):
            rows = jax.lax.dynamic_slice_in_dim(order, (t - first) * schedule.batch_size, schedule.batch_size)
            batch = Batch(
                arrays.frames[arrays.i[rows]],
                arrays.action[rows],
                arrays.frames[arrays.j[rows]],
                t / jnp.float32(schedule.steps_per_epoch),
            )
            return _step(learner, state, batch, jax.random.fold_in(_stream(seed, NOISE), t), hparams, t)

        state, terms = jax.lax.scan(body, state, first + jnp.arange(schedule.chunk))
        return state, jax.tree.map(jnp.mean, terms)

    members, shared = PartitionSpec("members"), PartitionSpec()
    population = jax.vmap(one_member, in_axes=(0, 0, 0, None, None))
    specs = (members, members, members, shared, shared)
    sharded = jax.shard_map(population, mesh=mesh, in_specs=specs, out_specs=members, check_vma=False)
    return jax.jit(sharded, donate_argnums=0)


def member_mesh(n_members: int) -> Mesh:
    """As many of this host's devices as share the members equally."""
    devices = jax.local_devices()
    n = max(n for n in range(1, len(devices) + 1) if n_members % n == 0)
    return Mesh(np.array(devices[:n]), ("members",))


def place(mesh: Mesh, stacked: Any, arrays: Arrays) -> tuple[Any, Arrays]:
    """Put what is stacked by member on the device of its member, and the data on all of them."""
    members, shared = NamedSharding(mesh, PartitionSpec("members")), NamedSharding(mesh, PartitionSpec())
    return jax.device_put(stacked, members), jax.device_put(arrays, shared)


def stack(hparams: list[Any]) -> Any:
    """Members' settings as one pytree of [P] arrays."""
    return jax.tree.map(lambda *values: jnp.array(values, jnp.float32), *hparams)


def _stream(seed: Int[Array, ""], stream: int) -> PRNGKeyArray:
    return jax.random.fold_in(jax.random.key(seed), stream)


def _order(seed: Int[Array, ""], schedule: Schedule, first: Int[Array, ""]) -> Int[Array, " rows"]:
    """This chunk's share of the epoch's shuffle: no transition twice in a batch, nor in an epoch."""
    epoch = first // schedule.steps_per_epoch
    shuffle = jax.random.permutation(jax.random.fold_in(_stream(seed, ORDER), epoch), schedule.transitions)
    start = (first - epoch * schedule.steps_per_epoch) * schedule.batch_size
    return jax.lax.dynamic_slice_in_dim(shuffle, start, schedule.chunk * schedule.batch_size)


def _step(learner: Learner, state: State, batch: Batch, key: PRNGKeyArray, hparams: Any, t: Int[Array, ""]):
    (loss, terms), grads = jax.value_and_grad(learner.loss, has_aux=True)(state.params, batch, key, hparams)
    updates, optimiser = _optimiser(hparams.lr).update(grads, state.optimiser, state.params)
    params = optax.apply_updates(state.params, updates)
    # A member that stops being finite keeps its last finite parameters; the others go on. The new parameters count
    # too: a finite gradient can take them out of float32's range.
    finite = jnp.isfinite(loss) & jnp.isfinite(optax.global_norm(grads)) & jnp.isfinite(optax.global_norm(params))
    diverged_at = jnp.where((state.diverged_at < 0) & ~finite, t, state.diverged_at)
    alive = diverged_at < 0
    params, optimiser = jax.tree.map(partial(jnp.where, alive), (params, optimiser), (state.params, state.optimiser))
    return State(params, optimiser, diverged_at), {"loss": loss, **terms}


def _optimiser(lr: Float[Array, ""] | float) -> optax.GradientTransformation:
    return optax.adamw(lr, weight_decay=WEIGHT_DECAY, mask=_is_decayed)


def _is_decayed(params: Params) -> Any:
    """Weights are; biases, norm scales, variances and the logits of gates are not."""

    def by_name(path: tuple[Any, ...], _: Array) -> bool:
        name = jax.tree_util.keystr(path)
        return not any(word in name for word in ("bias", "scale", "'b_", "logits"))

    return jax.tree_util.tree_map_with_path(by_name, params)
