"""Do the GPU kernels compute what plain JAX does? Gradients of one batch, against plain JAX in float32.

bfloat16, which the encoder then computes in, for comparison.

python benchmarks/agreement.py
"""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from acf.data.transitions import Transitions
from acf.methods.base import Batch, Learner
from acf.study import bench
from acf.terminal import console, table
from acf.training.config import make_hparams

REFERENCE = {"kernel": "xla", "bf16": False}
OTHERS = {
    "plain, bfloat16": {"kernel": "xla", "bf16": True},
    "kernels, bfloat16": {"kernel": "pallas", "bf16": True},
    "kernels, float32": {"kernel": "pallas", "bf16": False},
}


@dataclass(frozen=True)
class Args:
    domain: str = "taxi"
    methods: tuple[str, ...] = ("acf", "factored_markov")
    preset: str = "paper"
    out: Path | None = None


def first_batch(data: Transitions, size: int) -> Batch:
    rows = np.random.default_rng(0).permutation(len(data))[:size]
    x, x_next = (jnp.asarray(data.frames[at[rows]]) for at in (data.i, data.j))
    return Batch(x, jnp.asarray(data.action[rows]), x_next, jnp.float32(20))


def gradient(learner: Learner, params: Any, batch: Batch, hparams: Any) -> Any:
    def of_loss(params, batch):
        return jax.grad(learner.loss, has_aux=True)(params, batch, jax.random.key(1), hparams)[0]

    with jax.default_matmul_precision("highest"):
        return jax.block_until_ready(jax.jit(of_loss)(params, batch))


def differences(found: Any, expected: Any) -> dict[str, float]:
    """Relative to the norm of each parameter's gradient."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    errors = [float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b)) for a, b in pairs if jnp.any(b)]
    return {"median": float(np.median(errors)), "most": max(errors)}


def main(args: Args) -> None:
    data = bench.collect_for_bench(args.domain)
    report = {}
    for method in args.methods:
        case = bench.make_case(args.domain, args.preset, 1, data=data, method=method)
        batch, hparams = first_batch(data, case.batch_size), make_hparams(case.method, case.hparams)
        learners = [case.method.bind(replace(case.spec, **options)) for options in (REFERENCE, *OTHERS.values())]
        params = jax.jit(learners[0].init)(jax.random.key(0))
        with ThreadPoolExecutor() as pool:  # most of the time is compilation
            jobs = [pool.submit(gradient, learner, params, batch, hparams) for learner in learners]
        expected, *found_by = (job.result() for job in jobs)
        for name, found in zip(OTHERS, found_by, strict=True):
            report[f"{method}: {name}"] = differences(found, expected)
    rows = table("", "a gradient: median", "and at most", title="relative differences to plain JAX in float32")
    for name, found in report.items():
        rows.add_row(name, *(f"{value:.1e}" for value in found.values()))
    console.print(rows)
    if args.out:
        args.out.write_text(json.dumps(bench.describe_device() | {"differences": report}, indent=2) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Args))
