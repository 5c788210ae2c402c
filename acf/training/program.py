"""A population on this host's devices: compiled once, in groups that fit in memory, on data that may not."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Int

from acf.data.transitions import Transitions
from acf.errors import AcfError
from acf.methods.base import Learner
from acf.training import population
from acf.training.population import Arrays, Batches, Outcome, Schedule, State
from acf.training.stream import Stream

# XLA's, by platform. GPU: kernels that do not wait for each other run side by side; a step has many that are too small
# to fill it. CPU: sums and products are XLA's own, not those of a library that makes a step a third slower and more.
OPTIONS = {
    "gpu": {"xla_gpu_command_buffer_scheduling_mode": "CONCURRENT"},
    "cpu": {"xla_cpu_experimental_ynn_fusion_type": ""},
}


class Group(NamedTuple):
    """Members that train at the same time."""

    state: State
    seeds: Int[Array, " P"]
    hparams: Any


class Chunk:
    """A chunk that was started, by all groups of members."""

    def __init__(self, outcomes: list[Outcome]):
        self._outcomes = outcomes

    def wait(self) -> tuple[dict[str, list[float]], list[int]]:
        """For it to end: each term's mean by member, and the step at which a member diverged, or -1."""
        terms, diverged_at = jax.tree.map(lambda *parts: np.concatenate(parts), *jax.device_get(self._outcomes))
        return {name: values.tolist() for name, values in terms.items()}, diverged_at.tolist()


class Program:
    """Holds the state of all members on the devices and takes them through one chunk after the other.

    All members train at once where they fit in the devices' memory, and otherwise in equal groups that take turns.
    Data that fills more than half of the memory is streamed. It is compiled when it is made, and then given the state
    to `begin` with.
    """

    def __init__(
        self,
        learner: Learner,
        schedule: Schedule,
        data: Transitions,
        seeds: Sequence[int],
        hparams: Any,
        first: int = 0,
    ):
        given, needed = (jnp.array(seeds), hparams), 0
        streamed = data.frames.nbytes > memory() // 2
        for size in (n for n in range(len(seeds), 0, -1) if len(seeds) % n == 0):
            self._size, self._mesh = size, population.member_mesh(size)
            self._given = [population.place(self._mesh, of_group) for of_group in _cut(given, size)]
            self._arrays = None if streamed else _on_devices(self._mesh, data)
            feed = _shape_of_batches(self._mesh, schedule, data, size) if self._arrays is None else self._arrays
            chunk = population.make_chunk(learner, schedule, self._mesh, streamed)
            state = _shape_of_state(self._mesh, learner, self._given[0][0])
            self._chunk = compile_program(chunk, state, *self._given[0], feed, jnp.int32(first))
            needed = memory_of(self._chunk)
            if needed <= memory():
                break
        else:
            raise AcfError(
                f"one member needs {needed / 2**30:.1f} GiB and the device has {memory() / 2**30:.1f}: "
                "use a smaller batch or network"
            )
        self.memory = needed - (0 if streamed else data.frames.nbytes)
        """Bytes of a device that the members of a group need together, the data apart."""
        seeds_of = [of_group[0] for of_group in self._given]
        self._stream = Stream(data, schedule, self._mesh, seeds_of, first) if streamed else None

    def begin(self, state: State) -> None:
        """Of all members, at the step that comes first."""
        states = [population.place(self._mesh, of_group) for of_group in _cut(state, self._size)]
        self._groups = [Group(of_group, *given) for of_group, given in zip(states, self._given, strict=True)]

    @property
    def groups(self) -> int:
        return len(self._given)

    @property
    def streamed(self) -> bool:
        return self._stream is not None

    def start(self, first: int) -> "Chunk":
        """Send every member through the chunk that begins at step `first`, without waiting for it."""
        outcomes = []
        for n, (state, seeds, hparams) in enumerate(self._groups):
            feed = self._stream.take() if self._stream else self._arrays
            state, outcome = self._chunk(state, seeds, hparams, feed, jnp.int32(first))
            self._groups[n] = Group(state, seeds, hparams)
            outcomes.append(outcome)
        return Chunk(outcomes)

    def state(self) -> State:
        """Of all members, on the host."""
        return jax.tree.map(lambda *parts: np.concatenate(parts), *jax.device_get([g.state for g in self._groups]))

    def close(self) -> None:
        if self._stream:
            self._stream.close()


def memory() -> int:
    """Bytes that one of this host's devices has."""
    stats = jax.local_devices()[0].memory_stats()
    return stats["bytes_limit"] if stats else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def compile_program(jitted: Any, *args: Any) -> jax.stages.Compiled:
    """As training does: with this platform's `OPTIONS`."""
    lowered, options = jitted.lower(*args), OPTIONS.get(jax.default_backend(), {})
    try:
        return lowered.compile(compiler_options=options)
    except Exception as error:
        if not any(option in str(error) for option in options):
            raise
        return lowered.compile()  # this XLA does not know the option


def memory_of(compiled: jax.stages.Compiled) -> int:
    """Bytes a device needs for arguments, results and everything between."""
    found = compiled.memory_analysis()
    if found is None:
        return 0
    return (
        found.temp_size_in_bytes + found.argument_size_in_bytes + found.output_size_in_bytes - found.alias_size_in_bytes
    )


def _cut(members: Any, size: int) -> list[Any]:
    starts = range(0, len(jax.tree.leaves(members)[0]), size)
    return [jax.tree.map(lambda leaf, start=start: leaf[start : start + size], members) for start in starts]


def _on_devices(mesh: Mesh, data: Transitions) -> Arrays:
    return population.place_shared(mesh, Arrays(*map(jnp.asarray, (data.frames, data.i, data.action, data.j))))


def _shape_of_state(mesh: Mesh, learner: Learner, seeds: Int[Array, " P"]) -> Any:
    shapes, sharding = jax.eval_shape(partial(population.init, learner), seeds), population.by_member(mesh)
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), shapes)


def _shape_of_batches(mesh: Mesh, schedule: Schedule, data: Transitions, members: int) -> Any:
    rows = (members, schedule.chunk * schedule.batch_size)
    frames = jax.ShapeDtypeStruct((*rows, *data.frame_shape), jnp.uint8, sharding=population.by_member(mesh))
    actions = jax.ShapeDtypeStruct(rows, data.action.dtype, sharding=population.by_member(mesh))
    return Batches(frames, actions, frames)  # pyright: ignore[reportArgumentType] (shapes, not arrays)
