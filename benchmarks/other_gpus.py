"""Does training compile for the GPUs that people have? Five members with the paper's network on Taxi, without a GPU.

What is found: kernels that a GPU's compiler refuses, or that need more shared memory than it has. What is not: whether
they are fast there, or right. `targets.py` says what it needs.

python benchmarks/other_gpus.py
"""

import time
from dataclasses import dataclass

from targets import TARGETS, Target, mesh_of  # isort: skip  (before JAX)

import jax
import jax.numpy as jnp
import tyro

from acf.methods import get
from acf.methods.base import Spec
from acf.nn.kernel import Kernel
from acf.terminal import console, table
from acf.training import population
from acf.training.program import compile_program, memory_of

MEMBERS = 5
SCHEDULE = population.Schedule(transitions=150_000, batch_size=128, epochs=1)


@dataclass(frozen=True)
class Args:
    methods: tuple[str, ...] = ("acf", "dms")
    """dms has a decoder; acf the energies, and with them the kernels."""
    gpus: tuple[str, ...] = tuple(TARGETS)
    frame: int = 32
    """Width and height of a frame."""
    depth: int = 24
    """Channels of the first block."""


def arithmetic_of(target: Target) -> tuple[Kernel, bool]:
    """What is chosen there: the kernels or plain JAX, and whether in bfloat16."""
    modern = target.capability >= (8, 0)
    return "pallas" if modern else "xla", modern


def compile_for(target: Target, args: Args, method: str) -> jax.stages.Compiled:
    mesh, chosen, frame = mesh_of(target), get(method), (args.frame, args.frame, 3)
    kernel, bf16 = arithmetic_of(target)
    spec = Spec(frame, 6, 0, latents=6, depth=args.depth, bf16=bf16, kernel=kernel)
    learner = chosen.bind(spec)

    def shapes(tree, sharding: jax.sharding.PartitionSpec):
        here = jax.sharding.NamedSharding(mesh, sharding)
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=here), tree)

    rows = jax.ShapeDtypeStruct((SCHEDULE.transitions,), jnp.int32)
    frames = jax.ShapeDtypeStruct((SCHEDULE.transitions, *frame), jnp.uint8)
    seeds = jnp.arange(MEMBERS)
    state = jax.eval_shape(lambda seeds: population.init(learner, seeds), seeds)
    hparams = population.stack([chosen.hparams()] * MEMBERS)
    members, shared = jax.sharding.PartitionSpec("members"), jax.sharding.PartitionSpec()
    data = population.Arrays(frames, rows, rows, rows)  # pyright: ignore[reportArgumentType]
    given = *shapes((state, seeds, hparams), members), *shapes((data, (), jnp.int32(0)), shared)
    chunk = population.make_chunk(learner, SCHEDULE, mesh)
    with jax.set_mesh(mesh):  # arrays can be made no more
        return compile_program(chunk, *given)


def main(args: Args) -> None:
    rows = table("", "method", "kernels", "compile s", "MiB a member", title=f"jax {jax.__version__}")
    refused = []
    for gpu in args.gpus:
        for method in args.methods:
            target, began = TARGETS[gpu], time.perf_counter()
            try:
                compiled = compile_for(target, args, method)
            except jax.errors.JaxRuntimeError as error:
                refused.append(f"{gpu}, {method}: {error}")
                continue
            seconds = time.perf_counter() - began
            data = SCHEDULE.transitions * 3 * args.frame**2
            memory = (memory_of(compiled) - data) / MEMBERS / 2**20
            rows.add_row(gpu, method, arithmetic_of(target)[0], f"{seconds:.1f}", f"{memory:.0f}")
    console.print(rows)
    if refused:
        raise SystemExit("\n".join(refused))


if __name__ == "__main__":
    main(tyro.cli(Args))
