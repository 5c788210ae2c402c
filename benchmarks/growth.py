"""How a step's cost grows with the batch, the factors, the frames and the data: curves, as a picture and numbers.

python benchmarks/growth.py --out results/speed
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import numpy as np
import tyro

from acf.data.transitions import Transitions
from acf.methods import get
from acf.methods.base import Spec
from acf.study import bench
from acf.terminal import console, table

DEFAULT = {"batch size N": 128, "factors K": 6, "frame size": 32, "transitions": 20_000}
GPU = {
    "batch size N": (64, 128, 256, 512, 1024),
    "factors K": (2, 4, 8, 16, 32),
    "frame size": (32, 64, 128),
    "transitions": (20_000, 150_000, 600_000),
}
CPU = {
    "batch size N": (32, 64, 128, 256, 512),
    "factors K": (2, 4, 8, 16, 32),
    "frame size": (32, 64),
    "transitions": (5_000, 20_000),
}


def random_data(transitions: int, size: int, K: int) -> Transitions:
    """A step's time does not depend on what is in the frames."""
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (transitions + 1, size, size, 3), np.uint8)
    return Transitions(
        frames=frames,
        i=np.arange(transitions, dtype=np.int32),
        action=rng.integers(0, 6, transitions).astype(np.int32),
        j=np.arange(1, transitions + 1, dtype=np.int32),
        episode=np.zeros(transitions + 1, np.int32),
        action_names=tuple("abcdef"),
        noop=0,
        factors=rng.normal(size=(transitions + 1, K)).astype(np.float32),
        factor_names=tuple(f"s{n}" for n in range(K)),
        controllable=(True,) * K,
    )


@dataclass(frozen=True)
class Args:
    out: Path = Path("results/speed")
    members: int = 1


def main(args: Args) -> None:
    gpu = jax.default_backend() == "gpu"
    depth, hidden = (24, 256) if gpu else (8, 64)
    base = Spec((32, 32, 3), 6, 0, 6, depth, hidden, bf16=gpu)
    points = [(axis, value) for axis, values in (GPU if gpu else CPU).items() for value in values]
    cases = {}
    for axis, value in points:
        N, K, size, transitions = at = tuple((DEFAULT | {axis: value}).values())
        if at not in cases:  # the curves cross
            spec = replace(base, frame_shape=(size, size, 3), latents=K)
            data = random_data(max(transitions, 2 * N), size, K)
            cases[at] = bench.Case(str(at), get("acf"), spec, args.members, N, {}, data)
    timings = dict(zip(cases, bench.time_cases(list(cases.values()), chunks=2), strict=True))
    rows = table("", "", "ms a step and member", "MiB a member")
    found: dict[str, list[dict[str, float]]] = {}
    for axis, value in points:
        timing = timings[tuple((DEFAULT | {axis: value}).values())]
        rows.add_row(axis, f"{value:,}", f"{timing.member_ms:.3f}", f"{timing.member_mib:.0f}")
        found.setdefault(axis, []).append({"at": value, "member_ms": timing.member_ms, "mib": timing.member_mib})
    console.print(rows)
    args.out.mkdir(parents=True, exist_ok=True)
    about = bench.describe_device() | {"members": args.members, "default": DEFAULT}
    (args.out / "growth.json").write_text(json.dumps(about | {"curves": found}, indent=2) + "\n")
    draw(found, about["device"], args.out / "growth.png")
    console.print(f"wrote {args.out}/growth.json and growth.png")


def draw(curves: dict[str, list[dict[str, float]]], device: str, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3 * len(curves), 3), layout="constrained")
    for axis, (name, points) in zip(figure.subplots(1, len(curves), sharey=True), curves.items(), strict=True):
        x, y = [point["at"] for point in points], [point["member_ms"] for point in points]
        axis.loglog(x, y, "o-", color="#0072b2")
        for at, ms in zip(x, y, strict=True):
            axis.annotate(f"{ms:.3g}", (at, ms), textcoords="offset points", xytext=(2, 7), ha="right", fontsize=8)
        axis.margins(0.25)
        axis.set(xlabel=name, xticks=x, xticklabels=[f"{value:,}" for value in x])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    low, high = figure.axes[0].get_ylim()
    ticks = [n * 10.0**power for power in range(-2, 4) for n in (1, 2, 5) if low < n * 10.0**power < high]
    figure.axes[0].set(ylabel="ms a step and member", yticks=ticks, yticklabels=[f"{tick:g}" for tick in ticks])
    figure.suptitle(f"cost of a training step on {device}")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(tyro.cli(Args))
