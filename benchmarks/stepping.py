"""Steps per second with rendering, DoorKey 8x8, 1,024 environments: ours, navix and Farama's minigrid in one run.

    uv run python benchmarks/stepping.py --out stepping.json

navix and minigrid are no dependencies of ours; whichever is absent is reported as skipped. To have all three:

    uv venv .venv-navix --python 3.11
    uv pip install --python .venv-navix/bin/python navix==0.7.4 minigrid==3.2.0 jax==0.10.2 flax==0.12.8 optax==0.2.8 \
        jaxtyping rich
    uv pip install --python .venv-navix/bin/python --no-deps -e .
    .venv-navix/bin/python benchmarks/stepping.py

Each package makes pictures as it does by itself: ours 32x32, navix `observations.rgb` at its native 64x64, minigrid
`RGBImgObsWrapper(tile_size=4)` at 32x32. The picture of every step is written to memory and then overwritten by the
next one, which is what an agent that looks at it would need: in JAX it is carried through `lax.scan` (navix's own
`Timestep` does just that), in Python it is the array `step` returns. Nothing is summed or stored on top, since that
would cost navix four times what it costs us. Actions are drawn beforehand. navix and minigrid also start new episodes,
navix inside its `step`, minigrid by `reset` after the end; ours have no end.

The packages take turns, round after round, so that a busy machine slows all of them; the table shows the medians.
"""

import argparse
import importlib
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from acf.domains.doorkey import DoorKey

ENVIRONMENTS = 1_024
GOALS = {"navix": 3.0, "minigrid": 100.0}  # how many times faster we want to be

Round = Callable[[], int]  # takes some steps, returns how many


def scanned(step: Callable[[Any, jax.Array], Any], carry: Any, n_actions: int, steps: int) -> Round:
    """A round of `steps` steps of all environments, compiled; `step` acts on one."""
    actions = jax.random.randint(jax.random.key(1), (steps, ENVIRONMENTS), 0, n_actions)

    @jax.jit
    def rollout(carry: Any, actions: jax.Array) -> Any:
        return jax.lax.scan(lambda carry, action: (jax.vmap(step)(carry, action), None), carry, actions)[0]

    def take() -> int:
        nonlocal carry
        carry = jax.block_until_ready(rollout(carry, actions))
        return steps * ENVIRONMENTS

    take()  # compiles; and once more, because a reset's types are weaker than a step's
    take()
    return take


def ours() -> Round:
    domain = DoorKey()
    keys = jax.random.split(jax.random.key(0), ENVIRONMENTS)
    state = jax.vmap(lambda key: domain.sample(key, "episode"))(keys)
    unused = jax.random.key(0)  # DoorKey is deterministic

    def step(carry: Any, action: jax.Array) -> Any:
        state = domain.step(unused, carry[0], action)
        return state, domain.render(state)

    return scanned(step, (state, jax.vmap(domain.render)(state)), domain.n_actions, steps=256)


def navix() -> Round:
    nx = importlib.import_module("navix")
    env = nx.make("Navix-DoorKey-8x8-v0", observation_fn=nx.observations.rgb)
    timestep = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), ENVIRONMENTS))
    return scanned(env.step, timestep, len(env.action_set), steps=32)


def minigrid() -> Round:
    gymnasium = importlib.import_module("gymnasium")
    wrappers = importlib.import_module("minigrid.wrappers")
    envs = [
        wrappers.RGBImgObsWrapper(gymnasium.make("MiniGrid-DoorKey-8x8-v0"), tile_size=4) for _ in range(ENVIRONMENTS)
    ]
    for seed, env in enumerate(envs):
        env.reset(seed=seed)
    rng = np.random.default_rng(0)

    def take() -> int:
        for env, action in zip(envs, rng.integers(envs[0].action_space.n, size=ENVIRONMENTS).tolist(), strict=True):
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        return ENVIRONMENTS

    take()  # fills its cache of tiles
    return take


PACKAGES: dict[str, Callable[[], Round]] = {"acf": ours, "navix": navix, "minigrid": minigrid}


def measure(rounds: int) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Steps per second of each package, round by round, and why the others were skipped."""
    ready: dict[str, Round] = {}
    skipped: dict[str, str] = {}
    for name, prepare in PACKAGES.items():
        try:
            ready[name] = prepare()
        except ModuleNotFoundError as error:
            skipped[name] = str(error)
    speeds: dict[str, list[float]] = {name: [] for name in ready}
    for _ in range(rounds):
        for name, take in ready.items():
            begin = time.perf_counter()
            steps = take()
            speeds[name].append(steps / (time.perf_counter() - begin))
    return speeds, skipped


def summarise(speeds: dict[str, list[float]], skipped: dict[str, str]) -> dict[str, Any]:
    medians = {name: statistics.median(found) for name, found in speeds.items()}
    return {
        "environments": ENVIRONMENTS,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "device": jax.devices()[0].platform,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "steps_per_second": medians,
        "rounds": {name: [round(speed) for speed in found] for name, found in speeds.items()},
        "times_faster": {name: medians["acf"] / medians[name] for name in GOALS if name in medians},
        "goals": GOALS,
        "skipped": skipped,
    }


def show(result: dict[str, Any]) -> Table:
    title = f"DoorKey, {ENVIRONMENTS:,} environments with rendering, {result['cores']} cores ({result['device']})"
    table = Table(title=title)
    for header in ("package", "steps/s", "slowest to fastest round", "acf is faster by", "goal"):
        table.add_column(header, justify="left" if header == "package" else "right")
    for name in PACKAGES:
        if name in result["skipped"]:
            table.add_row(name, "skipped", result["skipped"][name], "", "")
            continue
        speeds = result["rounds"][name]
        ratio = f"{result['times_faster'][name]:.1f}x" if name in GOALS else ""
        goal = f"{GOALS[name]:.0f}x" if name in GOALS else ""
        spread = f"{min(speeds):,} to {max(speeds):,}"
        table.add_row(name, f"{result['steps_per_second'][name]:,.0f}", spread, ratio, goal)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="Steps per second with rendering: ours, navix, minigrid.")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that each package takes (default: 5)")
    parser.add_argument("--out", type=Path, help="also write the numbers to this JSON file")
    arguments = parser.parse_args()

    result = summarise(*measure(arguments.rounds))
    Console().print(show(result))
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
