"""A population on this host's devices: compiled once, in groups that fit in memory, on data that may not."""

import os
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
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
    Data that fills more than half of the memory, or beside which not even one member fits, is streamed. It is compiled
    when it is made, and then given the state to `begin` with.
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
        given = (jnp.array(seeds), hparams)
        sampler = learner.recipe.sampler
        known = sampler.know(data) if sampler else ()
        fit = _fit(learner, schedule, data, given, known)
        self._chunk, self._mesh, self._size = fit.chunk, fit.mesh, fit.size
        self.memory = fit.own
        """Bytes of a device that the members of a group need, the data apart."""
        self.devices = fit.mesh.size
        self.at_once = fit.size // fit.mesh.size
        """Members that a device trains at the same time."""
        self._given = [population.place(fit.mesh, of_group) for of_group in _cut(given, fit.size)]
        self._known = population.place_shared(fit.mesh, known)
        self._arrays = self._stream = None
        if fit.streamed:
            draw = partial(population.orders, learner, schedule=schedule, known=self._known)
            self._stream = Stream(data, schedule, fit.mesh, [seeds for seeds, _ in self._given], draw, first)
        else:
            self._arrays = population.place_shared(fit.mesh, _arrays(data))
        self._last: Outcome | None = None

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
        """Send every member through the chunk that begins at step `first`, without waiting for its end."""
        outcomes = []
        for n, (state, seeds, hparams) in enumerate(self._groups):
            feed = self._stream.take() if self._stream else self._arrays
            state, outcome = self._chunk(state, seeds, hparams, feed, self._known, jnp.int32(first))
            self._groups[n] = Group(state, seeds, hparams)
            outcomes.append(outcome)
            if self._stream:
                # One group computes and one waits, no more: the batches of each are on the device.
                jax.block_until_ready(self._last)
                self._last = outcome
        return Chunk(outcomes)

    def state(self) -> State:
        """Of all members, on the host."""
        return jax.tree.map(lambda *parts: np.concatenate(parts), *jax.device_get([g.state for g in self._groups]))

    def close(self) -> None:
        if self._stream:
            self._stream.close()


class _Fit(NamedTuple):
    """A chunk's program, compiled for `size` members at a time."""

    chunk: jax.stages.Compiled
    mesh: Mesh
    size: int
    streamed: bool
    own: int  # bytes of a device that they need, the data apart
    needed: int  # with the data, and all that lies there meanwhile


def _fit(
    learner: Learner, schedule: Schedule, data: Transitions, given: tuple[Int[Array, " P"], Any], known: Any = ()
) -> _Fit:
    """The first that fits: all members at once, then ever smaller groups; with the data in memory, then streamed."""
    members, available = len(given[0]), memory()
    sizes = [n for n in range(members, 0, -1) if members % n == 0]
    ways = (False, True) if data.frames.nbytes <= available // 2 else (True,)
    needed = 0
    for streamed, size in product(ways, sizes):
        fit = _compile(learner, schedule, data, given, size, streamed, known)
        if fit.needed <= available:
            return fit
        needed = fit.needed
    who, less = ("one member needs", "") if members == 1 else (f"{members} members in turn need", ", or fewer members")
    raise AcfError(
        f"{who} {needed / 2**30:.1f} GiB and the device has {available / 2**30:.1f}: "
        f"use a smaller batch or network{less}"
    )


def _compile(
    learner: Learner,
    schedule: Schedule,
    data: Transitions,
    given: tuple[Int[Array, " P"], Any],
    size: int,
    streamed: bool,
    known: Any = (),
) -> _Fit:
    mesh, (group, *others) = population.member_mesh(size), _cut(given, size)
    by_member = partial(_shapes, population.by_member(mesh))
    state = by_member(jax.eval_shape(partial(population.init, learner), group[0]))
    if streamed:
        feed = by_member(_batches(schedule, data, size))
    else:
        feed = _shapes(population.on_every_device(mesh), _arrays(data))
    chunk = population.make_chunk(learner, schedule, mesh, streamed)
    shared = _shapes(population.on_every_device(mesh), known)
    compiled = compile_program(chunk, state, *by_member(group), feed, shared, jnp.int32(0))
    of_data = _bytes(feed) // (mesh.size if streamed else 1)
    own = memory_of(compiled) - of_data
    # Streamed, there are three times the batches: those in use, those of who comes next, and those being sent.
    needed = own + len(others) * _bytes(state) // mesh.size + (3 * of_data if streamed else of_data)
    return _Fit(compiled, mesh, size, streamed, own, needed)


def memory() -> int:
    """Bytes that one of this host's devices has."""
    stats = jax.local_devices()[0].memory_stats() or {}
    return stats.get("bytes_limit") or _host_memory(Path("/"))


def _host_memory(root: Path) -> int:
    """Of the machine, or what a container or scheduler leaves to this process (Linux' control groups, version 2)."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    groups, own = root / "sys/fs/cgroup", root / "proc/self/cgroup"
    name = own.read_text().strip().rpartition("::/")[2] if own.exists() else ""
    for group in (groups / name, *(groups / name).parents):
        file = group / "memory.max"
        if file.exists() and file.read_text().strip().isdigit():  # else "max"
            limits.append(int(file.read_text()))
    return min(limits)


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


def _arrays(data: Transitions) -> Arrays:
    return Arrays._make((data.frames, data.i, data.action, data.j))


def _shapes(sharding: NamedSharding, tree: Any) -> Any:
    """Of its arrays, and where they will lie."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), tree)


def _batches(schedule: Schedule, data: Transitions, members: int) -> Any:
    rows = (members, schedule.chunk * schedule.batch_size)
    frames = jax.ShapeDtypeStruct((*rows, *data.frame_shape), jnp.uint8)
    return Batches(frames, jax.ShapeDtypeStruct(rows, data.action.dtype), frames)  # pyright: ignore[reportArgumentType]


def _bytes(shapes: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))
