"""What an agent pays for latents: `Trained.encode` and the bare jitted encoder, for 1, 16 and 1,024 frames.

python benchmarks/encode.py
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median

import jax
import numpy as np
import tyro

import acf
from acf.methods import get
from acf.terminal import console, table
from acf.training import Trained
from acf.training.config import Config, make_hparams, make_spec
from acf.training.presets import get_preset

FRAMES = (1, 16, 1024)


@dataclass(frozen=True)
class Args:
    domain: str = "grid2d"
    preset: str = "quick"
    method: str = "acf"
    rounds: int = 20


def untrained(args: Args, data: acf.Transitions) -> Trained:
    """A network just made: it takes as long as a trained one."""
    preset, method = get_preset(args.preset, args.method, args.domain), get(args.method)
    spec = make_spec(data, preset, [asdict(make_hparams(method, preset.hparams))])
    learner = method.bind(spec)
    config = Config(args.method, spec, (), preset.batch_size, preset.epochs, data={})
    return Trained(config, learner, jax.jit(learner.init)(jax.random.key(0)), seed=0, diverged_at=-1)


def milliseconds(encode: Callable[[np.ndarray], object], frames: np.ndarray) -> float:
    """From a frame on the host to a latent on the host."""
    began = time.perf_counter()
    np.asarray(encode(frames))
    return 1e3 * (time.perf_counter() - began)


def main(args: Args) -> None:
    data = acf.collect(args.domain, max(FRAMES))
    trained = untrained(args, data)
    ways = {"Trained.encode": trained.encode, "the bare jitted encoder": jax.jit(trained.apply)}
    rows = table("ms", *(f"frames: {n:,}" for n in FRAMES), title=f"{args.method} on {args.domain}, {args.preset}")
    found: dict[str, list[float]] = {name: [] for name in ways}
    for n in FRAMES:
        turns = [{name: milliseconds(way, data.frames[:n]) for name, way in ways.items()} for _ in range(args.rounds)]
        for name in ways:
            found[name].append(median(turn[name] for turn in turns[1:]))  # the first one compiles
    for name, times in found.items():
        rows.add_row(name, *(f"{ms:.2f}" for ms in times))
    rows.add_row("ratio", *(f"{a / b:.1f}" for a, b in zip(*found.values(), strict=True)))
    console.print(rows)


if __name__ == "__main__":
    main(tyro.cli(Args))
