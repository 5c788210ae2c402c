"""How the GPU kernels' work is best cut: every kernel of a step alone, with several tiles, timed on the device.

The tables in `acf/nn/{block_calls,down_pallas}.py`, and the constants in `acf/nn/pairwise_pallas.py` come from this.

python benchmarks/tiles.py --members 5
"""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from pathlib import Path

import jax
import jax.numpy as jnp
import tyro

from acf.nn import block_kernels, pairwise_pallas
from acf.nn.block_calls import call as call_kernel
from acf.nn.block_layout import Shape, Tiles, features_of, lay_out, padded
from acf.terminal import console, table

REPEATS = 3
BLOCKS = {
    24: Shape(256, 32, 32, 5, 24, True),
    48: Shape(256, 16, 16, 24, 48, False),
    96: Shape(256, 8, 8, 48, 96, False),
}
ROWS_AND_WARPS = [(16, 1), (32, 1), (32, 2), (32, 4), (32, 8), (64, 2), (64, 4), (64, 8), (128, 4), (128, 8)]
STAGES = (1, 2, 3)
SHARES = {  # of a member's rows
    "backward sums 24": (104, 208, 420),
    "backward sums 48": (26, 52, 104),
    "frame weights 24": (64, 128, 256),
    "conv weights 48": (8, 16),
    "conv weights 96": (4, 8, 16),
}


def block_calls(members: int):
    """(name, tiles, function, arguments) of each kernel of each block, under each cut."""
    for o, shape in BLOCKS.items():
        O, I, dt = padded(o), padded(shape.channels_in), jnp.bfloat16  # noqa: E741
        keys = jax.random.split(jax.random.key(o), 4)
        if shape.frames:
            frames = jax.random.randint(keys[0], (members, shape.N, shape.h, shape.w, 3), 0, 255).astype(jnp.uint8)
            x = jax.vmap(lambda frames, shape=shape: lay_out(frames, shape, jnp.bfloat16))(frames)
        else:
            x = jax.random.normal(keys[0], (members, shape.N * shape.h * shape.w, I)).astype(dt)
        conv, squares = (
            (jax.random.normal(key, (members, rows, O)) / O**0.5).astype(dt)
            for key, rows in zip(jax.random.split(keys[1]), (shape.conv_rows, 2 * O), strict=True)
        )
        scale = jax.random.normal(keys[2], (members, O))
        g = jax.random.normal(keys[3], (members, shape.rows, O)).astype(dt)
        features = features_of(shape, dt)
        rows = jax.ShapeDtypeStruct((shape.rows, O), dt)
        two = jax.ShapeDtypeStruct((2, shape.rows, O), dt)

        def call(kernel, tiles, grid, out_shape, *args, shape=shape):
            return call_kernel(kernel, shape, tiles, grid=grid, out_shape=out_shape)(*args)

        for tiles in [Tiles(*cut, 0, stages) for cut, stages in product(ROWS_AND_WARPS, STAGES)]:
            grid = (shape.rows // tiles.rows,)
            if tiles.stages == 1:  # it has no loop
                of_tiles = jax.ShapeDtypeStruct((*grid, O), jnp.float32)
                run = partial(call, block_kernels.backward_kernel, tiles, grid, [rows, two, two, of_tiles])
                yield f"backward {o}", tiles, run, (g, squares, scale, g)
            elif shape.frames:  # nor have these
                continue
            run = partial(call, block_kernels.forward_kernel, tiles, grid, [rows] * 2)
            forward = lambda x, *weights, run=run, f=features: run(x, f, *weights)  # noqa: E731
            yield f"forward {o}", tiles, forward, (x, conv, squares, scale)
            if not shape.frames:
                out = jax.ShapeDtypeStruct((shape.cells, 4, I), dt)
                run = partial(call, block_kernels.conv_input_kernel, tiles, (4, shape.cells // tiles.rows), out)
                yield f"conv input {o}", tiles, run, (g, conv)
                run = partial(call, block_kernels.up_kernel, tiles, (4, shape.cells // tiles.rows), [out] * 2)
                yield f"up {o}", tiles, run, (g, conv, squares[:, : 2 * I, :I], scale[:, :I])
        for name, cut, stages in product(SHARES, ROWS_AND_WARPS, STAGES):
            for tiles in [Tiles(*cut, shares, stages) for shares in SHARES[name] if name.endswith(str(o))]:
                grid = (tiles.programs,)
                if name.startswith("backward sums"):
                    sums = [jax.ShapeDtypeStruct((*grid, *size), jnp.float32) for size in ((2 * O, O), (O,))]
                    run = partial(call, block_kernels.backward_sums_kernel, tiles, grid, [rows, *sums])
                    yield name, tiles, run, (g, squares, scale, g)
                elif name.startswith("frame weights"):
                    out = jax.ShapeDtypeStruct((*grid, shape.conv_rows, O), jnp.float32)
                    run = partial(call, block_kernels.frame_weights_kernel, tiles, grid, out)
                    yield name, tiles, lambda x, g, run=run, f=features: run(x, f, g), (x, g)
                else:
                    out = jax.ShapeDtypeStruct((*grid, 9, I, O), jnp.float32)
                    run = partial(call, block_kernels.conv_weights_kernel, tiles, (9, *grid), out)
                    yield name, tiles, run, (x, g, x)


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
        ours = [e for e in events if ("kernel" in e.name or "pairwise" in e.name) and not e.name.startswith(small)]
        times = [event.duration_ns / 1e3 for event in sorted(ours, key=lambda event: event.start_ns)]
    return [min(times[n : n + REPEATS]) for n in range(0, len(times), REPEATS)]


@dataclass(frozen=True)
class Args:
    members: int = 5


def main(args: Args) -> None:
    calls, lowered = [], []
    for call in chain(block_calls(args.members), pairwise_calls(args.members)):
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
        rows.add_row(call[0], str(tuple(call[1])), f"{time:.1f}")
    console.print(rows)


if __name__ == "__main__":
    main(tyro.cli(Args))
