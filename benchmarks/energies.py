"""The energies of every pair of a batch, forward and backward: what each way to compute them takes of time and memory.

Ways: `all pairs`, a block of them at a time, kept here to compare with; and those of `acf.nn.pairwise`, which is plain
JAX at a few nodes and, on a GPU, the kernels. Compiled as in training, timed in turns; memory is XLA's own account.

python benchmarks/energies.py                       # the paper's Taxi
python benchmarks/energies.py --N 1024 --K 32       # a large batch of many factors
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import tyro
from jaxtyping import Array, Float

from acf.nn.pairwise import pairwise_sum
from acf.study.bench import describe_device
from acf.terminal import console, table
from acf.training.program import compile_program, memory_of

BLOCK = 2**20  # numbers in a block of pairs: four megabytes


@dataclass(frozen=True)
class Args:
    N: int = 128
    K: int = 6
    H: int = 256
    steepness: float = 4.0
    """Largest |w|. After training it was 3 to 5 in most networks, with latents within (-1, 1); at first below 1."""
    rounds: int = 9
    out: Path | None = None


def all_pairs(
    u: Float[Array, "K H N"], v: Float[Array, "K M"], w: Float[Array, "K H"], c: Float[Array, "K H N"]
) -> Float[Array, "N M"]:
    """Rows in blocks that stay in cache, recomputed in the backward pass."""

    @jax.checkpoint
    def one_factor(total: Float[Array, " M"], factor: tuple[Array, Array, Array, Array]) -> tuple[Array, None]:
        u, v, w, c = factor
        return total + jax.nn.silu(u + v[:, None] * w) @ c, None

    def one_row(row: tuple[Float[Array, "K H"], Float[Array, "K H"]]) -> Float[Array, " M"]:
        u, c = row
        return jax.lax.scan(one_factor, jnp.zeros(v.shape[1], v.dtype), (u, v, w, c))[0]

    rows = max(1, BLOCK // (v.shape[1] * w.shape[1]))
    return jax.lax.map(one_row, (u.transpose(2, 0, 1), c.transpose(2, 0, 1)), batch_size=rows)


def ways() -> dict[str, Callable[..., Array]]:
    found: dict[str, Callable[..., Array]] = {"all pairs": all_pairs, "plain JAX": partial(pairwise_sum, kernel="xla")}
    if jax.default_backend() == "gpu":
        found["kernels"] = partial(pairwise_sum, kernel="pallas")
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
