"""Time and peak memory of collecting from a Gymnasium environment, and of packing arrays that are there already.

uv run python benchmarks/collect_gym.py --transitions 100000

Pictures of 84x84x3. `block by block` is `acf.collect(env, n, out=...)`; `lists` and `arrays` are
`Transitions.from_arrays` of a list of frames, and of one array, x = frames[:-1], x_next = frames[1:]; both count too.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym
import numpy as np
import tyro

import acf
from acf.terminal import console, table

SIDE = 84


class Noise(gym.Env):
    """Costs next to nothing itself: a picture of which one row changes."""

    def __init__(self):
        self.observation_space = gym.spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8)
        self.action_space = gym.spaces.Discrete(4)
        self.picture = np.zeros((SIDE, SIDE, 3), np.uint8)

    def get_action_meanings(self):
        return ["noop", "a", "b", "c"]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.picture, {}

    def step(self, action):
        self.steps += 1
        if action:
            self.picture[self.steps % SIDE] = self.np_random.integers(256, size=(SIDE, 3), dtype=np.uint8)
        return self.picture, 0.0, False, self.steps == 100, {}


@dataclass(frozen=True)
class Args:
    transitions: int = 100_000
    child: str | None = None
    """Used by the script itself: measure this way in a process of its own, so that peaks do not mix."""


def _fill(frames: list[np.ndarray] | np.ndarray) -> None:
    env = Noise()
    env.reset(seed=0)
    for t in range(len(frames)):
        frames[t] = env.step(t % 4)[0].copy()


def measure(way: str, n: int) -> dict[str, float | str]:
    size = n * SIDE * SIDE * 3
    if way == "block by block":
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            acf.collect(Noise(), n, out=Path(folder) / "data")
    else:
        frames = [np.empty(0)] * (n + 1) if way == "lists" else np.empty((n + 1, SIDE, SIDE, 3), np.uint8)
        _fill(frames)
        action, episode = np.arange(1, n + 1) % 4, np.zeros(n, np.int32)
        began = time.perf_counter()
        acf.Transitions.from_arrays(frames[:-1], action, frames[1:], noop=0, episode=episode)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"way": way, "seconds": seconds, "mib": size / 2**20, "peak_mib": peak / 2**20, "ratio": peak / size}


def main(args: Args) -> None:
    if args.child:
        print(json.dumps(measure(args.child, args.transitions)))
        return
    rows = table("way", "seconds", "data MiB", "peak MiB", "peak / data", title=f"{args.transitions:,} transitions")
    for way in ("block by block", "lists", "arrays"):
        command = [sys.executable, __file__, "--child", way, "--transitions", str(args.transitions)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        name, *numbers = json.loads(done.stdout).values()
        rows.add_row(name, *(f"{number:.2f}" for number in numbers))
    console.print(rows)


if __name__ == "__main__":
    main(tyro.cli(Args))
