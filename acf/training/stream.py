"""Batches of data that is larger than the device's memory: read and sent ahead while the device works."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Int, UInt8

from acf.data.transitions import Transitions
from acf.training import population
from acf.training.population import Batches, Schedule


class Stream:
    """The chunks' batches in the order they are needed: every group's, chunk after chunk, one always ready ahead."""

    def __init__(
        self,
        data: Transitions,
        schedule: Schedule,
        mesh: Mesh,
        seeds: list[Int[Array, " P"]],
        draw: Callable[..., Int[Array, "P rows"]],
        first: int,
    ):
        self._data, self._mesh, self._seeds = data, mesh, seeds
        self._orders = jax.jit(lambda seeds, first: draw(seeds=seeds, first=first))
        self._turns = self._all_turns(schedule, first)
        self._ahead = ThreadPoolExecutor(1)
        self._readers = ThreadPoolExecutor(os.cpu_count())
        self._next: Future[Batches] | None = None
        self._send_for_next()

    def take(self) -> Batches:
        assert self._next is not None, "there are no more chunks"
        batches = self._next.result()
        self._send_for_next()
        return batches

    def close(self) -> None:
        for pool in (self._ahead, self._readers):
            pool.shutdown(cancel_futures=True)

    def _all_turns(self, schedule: Schedule, first: int) -> Iterator[tuple[int, int]]:
        for start in range(first, schedule.steps, schedule.chunk):
            for group in range(len(self._seeds)):
                yield start, group

    def _send_for_next(self) -> None:
        turn = next(self._turns, None)
        self._next = self._ahead.submit(self._batches, *turn) if turn else None

    def _batches(self, first: int, group: int) -> Batches:
        order = np.asarray(self._orders(self._seeds[group], jnp.int32(first)))  # [P, rows]
        data = self._data
        batches = self._frames(data.i[order]), data.action[order], self._frames(data.j[order])
        return Batches(*jax.block_until_ready(population.place(self._mesh, batches)))

    def _frames(self, rows: Int[np.ndarray, "P rows"]) -> UInt8[np.ndarray, "P rows H W C"]:
        """Read by all cores: copying leaves Python's lock alone, and waiting for a disk does too."""
        flat = rows.reshape(-1)
        out = np.empty((len(flat), *self._data.frame_shape), np.uint8)
        parts = np.array_split(np.arange(len(flat)), 4 * (os.cpu_count() or 1))

        def read(part: Int[np.ndarray, " n"]) -> None:
            if len(part):
                np.take(self._data.frames, flat[part], axis=0, out=out[part[0] : part[-1] + 1], mode="clip")

        list(self._readers.map(read, parts))
        return out.reshape(*rows.shape, *self._data.frame_shape)
