"""An agent in a world: steps counted, greedy success at checkpoints 15 % apart."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Int

from acf.agents.agent import Learner, Policy
from acf.agents.world import World

SOLVED = 0.95
EVALUATED = 100  # episodes a checkpoint, always the same ones
_TEST_SEED = 10**6


@dataclass
class Life:
    """What became of one seed."""

    seed: int
    solved_at: int | None = None
    """Steps at the first checkpoint with at least 95 % greedy success."""
    again: float | None = None
    """Success at the checkpoint after it: curves are not monotone."""
    curve: list[tuple[int, float]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def checkpoints(steps: int, first: int = 50, grow: float = 1.15) -> Iterator[int]:
    """
    >>> list(checkpoints(100))
    [50, 58, 68, 79, 92, 100]
    """
    at = float(first)
    while at < steps:
        yield int(at)
        at = at * grow + 1
    yield steps


def live(
    world: World, learner: Learner, steps: int, seed: int, progress: Callable[[int], object] = lambda step: None
) -> Life:
    """Lets the agent learn until one checkpoint after it succeeds, at most `steps` steps."""
    life, rng = Life(seed), np.random.default_rng(seed)
    due = set(checkpoints(steps))
    states = levels = None
    in_episode = 0
    for step in range(1, steps + 1):
        if states is None or levels is None:
            states, levels = world.start(int(rng.integers(2**31)), 1)
            in_episode = 0
        action = learner.act(levels[0])
        in_episode += 1
        states, after, reached = world.step(int(rng.integers(2**31)), states, np.array([action]))
        over = bool(reached[0]) or in_episode == world.limit
        learner.learn(levels[0], action, after[0], bool(reached[0]), over)
        levels = after
        if over:
            states = None
        progress(step)
        if step in due and _judged(life, step, success(world, learner.policy())):
            break
    life.facts = learner.describe()
    return life


def _judged(life: Life, step: int, share: float) -> bool:
    life.curve.append((step, round(share, 4)))
    if life.solved_at is not None:
        life.again = share
        return True
    if share >= SOLVED:
        life.solved_at = step
    return False


def success(world: World, policy: Policy, n: int = EVALUATED) -> float:
    """Share of episodes, other ones than those learned from, in which the policy reaches the goal in time."""
    states, levels = world.start(_TEST_SEED, n)
    done = np.zeros(n, bool)
    for step in range(world.limit):
        states, levels, reached = world.step(_TEST_SEED + 1 + step, states, policy(levels))
        done |= reached
        if done.all():
            break
    return float(done.mean())


def wander(
    world: World, n: int, seed: int = _TEST_SEED
) -> tuple[Int[np.ndarray, "n K"], Int[np.ndarray, " n"], Int[np.ndarray, "n K"]]:
    """Transitions of random actions in episodes that nobody learned from, to test a model on."""
    rng, per_step = np.random.default_rng(seed), 100
    states, levels = world.start(seed, per_step)
    parts = []
    for step in range(-(-n // per_step)):
        actions = rng.integers(len(world.action_names), size=per_step)
        states, after, _ = world.step(seed + step, states, actions)
        parts.append((levels, actions, after))
        levels = after
    before, actions, after = (np.concatenate(part)[:n] for part in zip(*parts, strict=True))
    return before, actions, after
