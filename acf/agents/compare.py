"""Agents of several kinds on the same task, several seeds each, as one JSON."""

import json
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from acf.agents.agent import Agent, Learner
from acf.agents.experiment import live, wander
from acf.agents.tabular import QLearning, RMax
from acf.agents.world import DomainWorld
from acf.errors import AcfError
from acf.files import write_atomic

KINDS = ("factored", "rmax", "q")
GOALS = ("given", "learned")
HELD_OUT = 2_000  # transitions on which a model is tested


def make_learner(kind: str, goal: str, world: DomainWorld, seed: int) -> Learner:
    """`goal` says whether the agent is told the predicate; R-max and Q-learning have no use for it."""
    if kind not in KINDS:
        raise AcfError(f"expected an agent of {', '.join(KINDS)}, got {kind!r}")
    if goal not in GOALS:
        raise AcfError(f"expected a goal that is {' or '.join(GOALS)}, got {goal!r}")
    if kind == "rmax":
        return RMax(len(world.action_names), seed=seed)
    if kind == "q":
        return QLearning(len(world.action_names), seed=seed)
    if goal == "given" and world.encode is not None:
        raise AcfError("the goal is said in true levels, and this encoder has others: let it be learned")
    reached = world.task.reached if goal == "given" else None
    actions, units = len(world.action_names), world.units
    return Agent(len(world.names), actions, noop=world.noop, units=units, goal=reached, seed=seed)


def compare(
    world: DomainWorld,
    kind: str,
    goal: str,
    steps: int,
    seeds: int,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> dict[str, Any]:
    """Seeds 0 to `seeds` - 1, one after the other; stops a seed one checkpoint after it succeeds."""
    if steps < 1 or seeds < 1:
        raise AcfError(f"expected at least one step and one seed, got {steps} and {seeds}")
    lives, began = [], time.monotonic()
    held_out = wander(world, HELD_OUT)
    for seed in range(seeds):
        learner = make_learner(kind, goal, world, seed)
        life = live(world, learner, steps, seed, lambda step, seed=seed: progress(seed * steps + step, seeds * steps))
        if isinstance(learner, Agent):
            life.facts["accuracy"] = round(learner.model.accuracy(*held_out), 4)
            life.facts["graph"] = graph(learner, world)
        lives.append(life.to_json())
    return {
        "domain": world.domain.name,
        "task": world.task_name,
        "agent": kind,
        "goal": goal if kind == "factored" else "learned",
        "steps": steps,
        "lives": lives,
        "wall_s": round(time.monotonic() - began, 1),
        "versions": {name: version(name) for name in ("acf-rl", "numpy", "jax")},
    }


def graph(agent: Agent, world: DomainWorld) -> dict[str, dict[str, list[str]]]:
    """For each factor that some action moves: which actions, and from which factors the effect is told."""
    found = {}
    for k, name in enumerate(world.names):
        actions = [a for a in range(agent.model.A) if agent.model.moves(a, k)]
        parents = sorted(set[int]().union(*(agent.model.parents(a, k) for a in actions)))
        if actions:
            found[name] = {
                "moved_by": [world.action_names[a] for a in actions],
                "depends_on": [world.names[j] for j in parents],
            }
    return found


def solved_at(result: dict[str, Any]) -> list[int | None]:
    """Of each seed, None where it was not within the steps."""
    return [life["solved_at"] for life in result["lives"]]


def median(result: dict[str, Any]) -> float:
    """Steps to 95 %; infinite where most seeds did not get there."""
    return float(np.median([np.inf if at is None else at for at in solved_at(result)]))


def write(result: dict[str, Any], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(out, json.dumps(result) + "\n")
