"""The training program: a population of members, each a (seed, hparams) pair, trained as one.

Pure functions of arrays. Everything random is derived from a member's seed and the step, so the state to keep is the
parameters, the optimiser's moments and the number of the step: nothing else has to be saved to go on exactly.
"""

import math
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

from acf.methods.base import Batch, Learner
from acf.training.flat import Layout, layout

WEIGHT_DECAY = 1e-4
ADAM = optax.scale_by_adam()
MAX_CHUNK = 128  # steps between two looks by the host
INIT, ORDER, NOISE = range(3)  # streams of a member's key


class Arrays(NamedTuple):
    """Transitions on the device, an argument of the program: as constants they would make compilation slow."""

    frames: UInt8[Array, "M H W C"]
    i: Int[Array, " T"]
    action: Int[Array, " T"]
    j: Int[Array, " T"]


class Batches(NamedTuple):
    """A chunk's batches one after the other, where the transitions themselves do not fit on the device."""

    x: UInt8[Array, "P rows H W C"]
    action: Int[Array, "P rows"]
    x_next: UInt8[Array, "P rows H W C"]


class State(NamedTuple):
    """Of all members, stacked on a leading axis."""

    params: Float[Array, "P n"]
    optimiser: Any  # Adam's moments
    diverged_at: Int[Array, " P"]  # step at which a member's loss or gradient stopped being finite, or -1


class Outcome(NamedTuple):
    """What a chunk has to tell of each member. The state's own arrays belong to the next chunk as soon as it starts."""

    terms: dict[str, Float[Array, " P"]]  # means over the chunk's steps
    diverged_at: Int[Array, " P"]


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


def init(learner: Learner, seeds: Int[Array, " P"], mean: Float[Array, "H W C"] | None = None) -> State:
    """Fresh members, for data with this mean picture."""

    def one(seed: Int[Array, ""]) -> State:
        tree = learner.init(_stream(seed, INIT), mean)
        params = layout(tree).ravel(tree)
        return State(params, ADAM.init(params), jnp.int32(-1))

    return jax.vmap(one)(seeds)


def make_chunk(
    learner: Learner, schedule: Schedule, mesh: Mesh, streamed: bool = False
) -> Callable[..., tuple[State, "Outcome"]]:
    """The program `(state, seeds, hparams, data, known, step) -> (state, outcome)` of one chunk, not yet compiled.

    Members are spread over the mesh's devices and never talk to each other. `data` is `Arrays`, whole on every device;
    or, where it is streamed, the chunk's `Batches`, each member's on its own. `known` is what the method's sampler
    knows of the data, on every device.
    """
    flat, N = layout(jax.eval_shape(learner.init, jax.random.key(0))), schedule.batch_size

    def one_member(state: State, seed: Int[Array, ""], hparams: Any, data: Any, known: Any, first: Int[Array, ""]):
        order = None if streamed else _rows(learner, seed, schedule, known, first)

        def fetch(t: Int[Array, ""]) -> tuple[UInt8[Array, "2*N H W C"], Int[Array, " N"]]:
            take = partial(jax.lax.dynamic_slice_in_dim, start_index=(t - first) * N, slice_size=N)
            if order is None:
                x, action, x_next = map(take, data)
                return jnp.concatenate([x, x_next]), action
            rows = take(order)
            return data.frames[jnp.concatenate([data.i[rows], data.j[rows]])], data.action[rows]

        def body(carry: tuple[State, Any], t: Int[Array, ""]):
            # The next batch hangs on nothing that is computed here: a GPU fetches it beside the step's own work.
            state, (frames, action) = carry
            epoch, progress = (t / jnp.float32(steps) for steps in (schedule.steps_per_epoch, schedule.steps))
            batch = Batch(frames[:N], action, frames[N:], epoch, progress, known)
            key = jax.random.fold_in(_stream(seed, NOISE), t)
            state, terms = _step(learner, flat, state, batch, key, hparams, t)
            return (state, fetch(t + 1)), terms

        (state, _), terms = jax.lax.scan(body, (state, fetch(first)), first + jnp.arange(schedule.chunk))
        return state, Outcome(jax.tree.map(jnp.mean, terms), state.diverged_at)

    def all_members(state: State, seeds: Int[Array, " P"], hparams: Any, data: Any, known: Any, first: Int[Array, ""]):
        if side_by_side():
            axes = (0, 0, 0, 0 if streamed else None, None, None)
            return jax.vmap(one_member, in_axes=axes)(state, seeds, hparams, data, known, first)

        def in_turn(own: tuple[State, Int[Array, ""], Any, Batches | None]):
            state, seed, hparams, batches = own
            return one_member(state, seed, hparams, batches if streamed else data, known, first)

        return jax.lax.map(in_turn, (state, seeds, hparams, data if streamed else None))

    members, shared = PartitionSpec("members"), PartitionSpec()
    specs = (members, members, members, members if streamed else shared, shared, shared)
    sharded = jax.shard_map(all_members, mesh=mesh, in_specs=specs, out_specs=members, check_vma=False)
    return jax.jit(sharded, donate_argnums=0)


def side_by_side() -> bool:
    """Whether a device's members go through each step together. On a CPU they take turns, chunk by chunk: what one of
    them computes fits in the cache, what all of them do does not.
    """
    return jax.default_backend() != "cpu"


def orders(
    learner: Learner, seeds: Int[Array, " P"], schedule: Schedule, known: Any, first: Int[Array, ""]
) -> Int[Array, "P rows"]:
    """The transitions of a chunk, for each member: what `make_chunk` works out itself unless it is streamed."""
    return jax.vmap(lambda seed: _rows(learner, seed, schedule, known, first))(seeds)


def member_mesh(n_members: int) -> Mesh:
    """As many of this host's devices as share the members equally."""
    devices = jax.local_devices()
    n = max(n for n in range(1, len(devices) + 1) if n_members % n == 0)
    return Mesh(np.array(devices[:n]), ("members",))


def by_member(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, PartitionSpec("members"))


def on_every_device(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, PartitionSpec())


def place(mesh: Mesh, stacked: Any) -> Any:
    """Put what is stacked by member on the device of its member."""
    return jax.device_put(stacked, by_member(mesh))


def place_shared(mesh: Mesh, shared: Any) -> Any:
    """Put it on every device."""
    return jax.device_put(shared, on_every_device(mesh))


def stack(hparams: list[Any]) -> Any:
    """Members' settings as one pytree of [P] arrays."""
    return jax.tree.map(lambda *values: jnp.array(values, jnp.float32), *hparams)


def _stream(seed: Int[Array, ""], stream: int) -> PRNGKeyArray:
    return jax.random.fold_in(jax.random.key(seed), stream)


def _rows(
    learner: Learner, seed: Int[Array, ""], schedule: Schedule, known: Any, first: Int[Array, ""]
) -> Int[Array, " rows"]:
    """The transitions of this chunk's steps, one batch after the other."""
    sampler = learner.recipe.sampler
    if sampler is None:
        return _order(seed, schedule, first)
    keys = jax.vmap(partial(jax.random.fold_in, _stream(seed, ORDER)))(first + jnp.arange(schedule.chunk))
    return jax.vmap(lambda key: sampler.draw(known, key, schedule.batch_size))(keys).reshape(-1)


def _order(seed: Int[Array, ""], schedule: Schedule, first: Int[Array, ""]) -> Int[Array, " rows"]:
    """This chunk's share of the epoch's shuffle: no transition twice in a batch, nor in an epoch."""
    epoch = first // schedule.steps_per_epoch
    shuffle = jax.random.permutation(jax.random.fold_in(_stream(seed, ORDER), epoch), schedule.transitions)
    start = (first - epoch * schedule.steps_per_epoch) * schedule.batch_size
    return jax.lax.dynamic_slice_in_dim(shuffle, start, schedule.chunk * schedule.batch_size)


def _step(
    learner: Learner, flat: Layout, state: State, batch: Batch, key: PRNGKeyArray, hparams: Any, t: Int[Array, ""]
):
    """One step of AdamW."""
    params = flat.unravel(state.params)
    (loss, terms), gradients = jax.value_and_grad(learner.loss, has_aux=True)(params, batch, key, hparams)
    gradient = flat.ravel(gradients)
    squared = jnp.sum(gradient * gradient)
    # Number by number: unless it is clipped, the update does not wait for the sum that tells whether all are finite.
    sound = jnp.where(jnp.isfinite(gradient * gradient), gradient, 0.0)
    if math.isfinite(learner.recipe.clip):
        sound *= jnp.minimum(1, learner.recipe.clip / jnp.sqrt(jnp.sum(sound * sound) + 1e-12))
    update, optimiser = ADAM.update(sound, state.optimiser)
    decay = WEIGHT_DECAY * flat.decayed * state.params
    lr = hparams.lr * learner.recipe.schedule(jnp.asarray(batch.progress))
    new = state.params - lr * (jnp.asarray(update) + decay)
    # A member that stops being finite stops with finite parameters: at once where its loss is not, after this step
    # where only its gradient is not. The others go on.
    going_on = (state.diverged_at < 0) & jnp.isfinite(loss)
    kept = jax.tree.map(partial(jnp.where, going_on), (new, optimiser), (state.params, state.optimiser))
    finite = jnp.isfinite(loss) & jnp.isfinite(squared)
    diverged_at = jnp.where((state.diverged_at < 0) & ~finite, t, state.diverged_at)
    return State(kept[0], kept[1], diverged_at), {"loss": loss, **terms}
