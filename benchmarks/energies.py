"""The energies of every pair of a batch, forward and backward: what each way to compute them takes of time and memory.

Ways, those of `acf.nn.pairwise`: all pairs, a block of them at a time; a few nodes; and, on a GPU, the kernels.
Compiled as in training, timed in turns; memory is XLA's own account.

python benchmarks/energies.py                       # the paper's Taxi
python benchmarks/energies.py --N 1024 --K 32       # a large batch of many factors
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import tyro
from jaxtyping import Array

from acf.nn import pairwise_blocks, pairwise_nodes
from acf.study.bench import describe_device
from acf.terminal import console, table
from acf.training.program import compile_program, memory_of


@dataclass(frozen=True)
class Args:
    N: int = 128
    K: int = 6
    H: int = 256
    steepness: float = 4.0
    """Largest |w|. After training it was 3 to 5 in most networks, with latents within (-1, 1); at first below 1."""
    rounds: int = 9
    out: Path | None = None


def ways() -> dict[str, Callable[..., Array]]:
    found = {"all pairs": pairwise_blocks.pairwise_sum, "nodes": pairwise_nodes.pairwise_sum}
    if jax.default_backend() == "gpu":
        from acf.nn import pairwise_pallas

        found["kernels"] = pairwise_pallas.pairwise_sum
    return found


def operands(args: Args) -> list[Array]:
    """u, v, w, c as in training, and a gradient."""
    shapes = [(args.K, args.H, args.N), (args.K, args.N), (args.K, args.H), (args.K, args.H, args.N), (args.N, args.N)]
    keys = jax.random.split(jax.random.key(0), len(shapes))
    u, v, w, c, g = (jax.random.normal(key, shape) for key, shape in zip(keys, shapes, strict=True))
    return [u, jnp.tanh(v), args.steepness * w / jnp.abs(w).max(1, keepdims=True), c, g]


def compiled(way: Callable[..., Array], given: list[Array]) -> Any:
    def value_and_gradients(u, v, w, c, g):
        out, back = jax.vjp(way, u, v, w, c)
        return out, back(g)

    return compile_program(jax.jit(value_and_gradients), *given)


def milliseconds(program: Any, given: list[Array]) -> float:
    began = time.perf_counter()
    jax.block_until_ready(program(*given))
    return 1e3 * (time.perf_counter() - began)


def main(args: Args) -> None:
    given = operands(args)
    programs = {name: compiled(way, given) for name, way in ways().items()}
    turns = [{name: milliseconds(program, given) for name, program in programs.items()} for _ in range(args.rounds + 1)]
    found = {
        name: {"ms": median(turn[name] for turn in turns[1:]), "mib": memory_of(program) / 2**20}
        for name, program in programs.items()
    }
    title = f"energies of all pairs, N = {args.N}, K = {args.K}, H = {args.H}"
    rows = table("", "ms", "times as fast", "MiB", title=title)
    for name, row in found.items():
        rows.add_row(name, f"{row['ms']:.2f}", f"{found['all pairs']['ms'] / row['ms']:.1f}", f"{row['mib']:.0f}")
    console.print(rows)
    console.print(f"one array over all pairs and hidden units: {4 * args.N**2 * args.K * args.H / 2**20:.0f} MiB")
    if args.out:
        sizes = {name: value for name, value in asdict(args).items() if name != "out"}
        args.out.write_text(json.dumps(describe_device() | sizes | {"found": found}, indent=2) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Args))
