"""Time of one training step a member, for a domain's paper configuration and several population sizes.

python benchmarks/step.py --domain taxi --populations 1 5
"""

import time
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import tyro

import acf
from acf.methods import get
from acf.methods.base import Spec
from acf.terminal import console, table
from acf.training import population
from acf.training.config import make_hparams
from acf.training.presets import get_preset


@dataclass(frozen=True)
class Args:
    domain: str = "grid2d"
    preset: str = "paper"
    populations: tuple[int, ...] = (1, 5)
    chunks: int = 3
    """Chunks timed, after one that compiles."""


def main(args: Args) -> None:
    preset = get_preset(args.preset, "acf", args.domain)
    data = acf.collect(args.domain, 20_000)
    method = get("acf")
    gpu = jax.default_backend() == "gpu"
    spec = Spec(data.frame_shape, data.n_actions, data.noop, len(data.factor_names), preset.depth, preset.hidden, gpu)
    schedule = population.Schedule(len(data), preset.batch_size, 10)
    rows = table("members", "compile s", "ms a step", "ms a step and member", title=f"{args.domain}, {args.preset}")
    for P in args.populations:
        learner, mesh = method.bind(spec), population.member_mesh(P)
        seeds, hparams = jnp.arange(P), population.stack([make_hparams(method, preset.hparams)] * P)
        arrays = population.Arrays(*map(jnp.asarray, (data.frames, data.i, data.action, data.j)))
        state = jax.jit(lambda seeds, learner=learner: population.init(learner, seeds))(seeds)
        (state, seeds, hparams), arrays = population.place(mesh, (state, seeds, hparams), arrays)
        chunk = population.make_chunk(learner, schedule, mesh)
        began = time.perf_counter()
        state, terms = jax.block_until_ready(chunk(state, seeds, hparams, arrays, jnp.int32(0)))
        compiled = time.perf_counter()
        for n in range(args.chunks):
            state, terms = chunk(state, seeds, hparams, arrays, jnp.int32(n * schedule.chunk))
        jax.block_until_ready(terms)
        step = 1e3 * (time.perf_counter() - compiled) / (args.chunks * schedule.chunk)
        rows.add_row(str(P), f"{compiled - began:.1f}", f"{step:.3f}", f"{step / P:.3f}")
    console.print(rows)


if __name__ == "__main__":
    main(tyro.cli(Args))
