"""What the energies of all pairs need of the device's memory, forward and backward, by kernel: XLA's own account.

python benchmarks/energies_memory.py --out results/speed/energies_memory.json
"""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import tyro

from acf.nn.kernel import Kernel
from acf.nn.pairwise import pairwise_sum
from acf.study.bench import describe_device
from acf.terminal import console, table


@dataclass(frozen=True)
class Args:
    N: int = 1024
    K: int = 32
    H: int = 256
    out: Path | None = None


def memory(kernel: Kernel, args: Args) -> dict[str, float]:
    """MiB of one member."""
    N, K, H = args.N, args.K, args.H
    shapes = [(K, H, N), (K, N), (K, H), (K, H, N), (N, N)]
    *arguments, g = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes)

    def value_and_gradients(u, v, w, c, g):
        out, back = jax.vjp(partial(pairwise_sum, kernel=kernel), u, v, w, c)
        return out, back(g)

    found = jax.jit(value_and_gradients).lower(*arguments, g).compile().memory_analysis()
    assert found is not None
    parts = {"temporary": found.temp_size_in_bytes, "arguments": found.argument_size_in_bytes}
    parts = parts | {"results": found.output_size_in_bytes}
    return {name: size / 2**20 for name, size in (parts | {"all": sum(parts.values())}).items()}


def main(args: Args) -> None:
    kernels: tuple[Kernel, ...] = ("pallas", "xla") if jax.default_backend() == "gpu" else ("xla",)
    found = {kernel: memory(kernel, args) for kernel in kernels}
    rows = table("kernel", *found["xla"], title=f"MiB a member, N = {args.N}, K = {args.K}, H = {args.H}")
    for kernel, parts in found.items():
        rows.add_row(kernel, *(f"{size:.0f}" for size in parts.values()))
    console.print(rows)
    at_once = 4 * args.N**2 * args.K * args.H / 2**30
    console.print(f"all pairs at once: {at_once:.0f} GiB for every intermediate array")
    if args.out:
        about = describe_device() | {"N": args.N, "K": args.K, "H": args.H}
        args.out.write_text(json.dumps(about | {"mib": found}, indent=2) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Args))
