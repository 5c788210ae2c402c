"""How the GPU kernels' work is best cut: each of the large ones alone, with several tiles, timed on the device.

The constants in `acf/nn/pairwise_pallas.py` come from this.

python benchmarks/tiles.py --members 5
"""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import jax
import tyro

from acf.nn import pairwise_pallas
from acf.terminal import console, table

REPEATS = 3


def pairwise_calls(members: int, K: int = 6, N: int = 128, H: int = 256):
    keys = jax.random.split(jax.random.key(0), 5)
    shapes = [(K, H, N), (K, N), (K, H), (K, H, N), (N, N)]
    u, v, w, c, g = (jax.random.normal(key, (members, *shape)) for key, shape in zip(keys, shapes, strict=True))
    for tile, warps in product([(8, 64), (8, 128), (16, 32), (16, 64), (16, 128), (32, 64)], (1, 2, 4)):
        pairwise_pallas.FORWARD_TILE, pairwise_pallas.FORWARD_WARPS = tile, warps  # read when the function is traced
        yield "pairwise forward", (*tile, warps), lambda *args: pairwise_pallas.forward(*args), (u, v, w, c)
    for tile, warps in product([(4, 64), (4, 128), (8, 64), (8, 128), (16, 64), (16, 128), (32, 64)], (1, 2, 4)):
        pairwise_pallas.BACKWARD_TILE, pairwise_pallas.BACKWARD_WARPS = tile, warps
        yield "pairwise backward", (*tile, warps), lambda *args: pairwise_pallas.backward(*args), (u, v, w, c, g)


def microseconds(programs) -> list[float]:
    """The best of three, from the device's own clock."""
    from jax.profiler import ProfileData

    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for compiled, args in programs:
                for _ in range(REPEATS):
                    jax.block_until_ready(compiled(*args))
        (file,) = Path(folder).rglob("*.xplane.pb")
        lines = [
            line for plane in ProfileData.from_file(str(file)).planes if "GPU" in plane.name for line in plane.lines
        ]
        events = [event for line in lines if "Stream" in line.name for event in line.events]
        small = ("pairwise_exp", "pairwise_gradient")  # which come with the large ones
        ours = [event for event in events if "pairwise" in event.name and not event.name.startswith(small)]
        times = [event.duration_ns / 1e3 for event in sorted(ours, key=lambda event: event.start_ns)]
    return [min(times[n : n + REPEATS]) for n in range(0, len(times), REPEATS)]


@dataclass(frozen=True)
class Args:
    members: int = 5


def main(args: Args) -> None:
    calls, lowered = [], []
    for call in pairwise_calls(args.members):
        calls.append(call)
        lowered.append(jax.jit(jax.vmap(call[2])).lower(*call[3]))

    def compile_or_none(program):
        try:
            return program.compile()
        except jax.errors.JaxRuntimeError:  # more shared memory than there is
            return None

    with ThreadPoolExecutor(16) as pool:
        compiled = list(pool.map(compile_or_none, lowered))
    fits = [(call, program) for call, program in zip(calls, compiled, strict=True) if program is not None]
    times = microseconds([(program, call[3]) for call, program in fits])
    rows = table("kernel", "tiles", "µs", title=f"{args.members} members, the paper's network")
    for (call, _), time in sorted(zip(fits, times, strict=True), key=lambda pair: (pair[0][0][0], pair[1])):
        rows.add_row(call[0], str(call[1]), f"{time:.1f}")
    console.print(rows)


if __name__ == "__main__":
    main(tyro.cli(Args))
