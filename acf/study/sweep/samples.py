"""Which settings are tried, and which of them train together. Pure: the same plan and results, the same samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from acf.study.sweep.plan import Plan
from acf.training.ranges import Range

T = TypeVar("T")


@dataclass(frozen=True)
class Sample:
    number: int
    """0 is the preset's own settings; drawn ones count from 1."""
    hparams: dict[str, float]
    """What differs from the preset."""


@dataclass(frozen=True)
class Population:
    """Samples that train together, each with all seeds; its number is that of its run directory."""

    number: int
    samples: tuple[Sample, ...]
    epochs: int
    goes_on_from: tuple[tuple[int, int], ...] = ()
    """Of each sample: the population, and the place in it, where its training began; empty where it begins here."""


@dataclass(frozen=True)
class Outcome:
    """How good a sample is; `objective` is the mean of its seeds, None where one of these diverged."""

    sample: int
    objective: float | None
    seeds: tuple[float | None, ...]


def rounds(plan: Plan) -> list[list[int]]:
    """Numbers of the samples that are chosen at once: all, or a population's worth where one learns from another.

    Those that an extension adds come after the others, which keep their rounds.
    """
    starts = [0 if plan.with_preset else 1, *(n + 1 for n in plan.earlier)]
    stages = [list(range(*ends)) for ends in pairwise([*starts, plan.samples + 1])]
    return stages if plan.sampler == "random" else [part for stage in stages for part in _parts(stage, plan)]


def choose(plan: Plan, numbers: Sequence[int], done: dict[int, tuple[Sample, Outcome]]) -> list[Sample]:
    """The samples of a round, from the results of those before it."""
    drawn = [n for n in numbers if n > 0]
    if plan.sampler == "random":
        chosen = {n: draw(plan.ranges, plan.seed, n) for n in drawn}
    else:
        from acf.study.sweep.tpe import propose

        chosen = dict(zip(drawn, propose(plan, drawn, done), strict=True))
    return [Sample(n, chosen.get(n, {})) for n in numbers]


def draw(ranges: dict[str, Range], seed: int, number: int) -> dict[str, float]:
    """Depends on the seed and the number alone: whoever draws it, in whatever order, gets the same sample."""
    rng = np.random.default_rng([seed, number])
    return {name: _between(range, rng.uniform()) for name, range in ranges.items()}


def pack(samples: Sequence[Sample], plan: Plan, first: int, epochs: int) -> list[Population]:
    """As few populations as hold the samples with all their seeds, of sizes as equal as they can be."""
    parts = _parts(samples, plan)
    return [Population(first + n, tuple(part), epochs) for n, part in enumerate(parts)]


def better_half(outcomes: Sequence[Outcome], maximise: bool) -> list[int]:
    """The samples that go on after the first epochs; the preset does in any case, to compare with."""
    finite = [(outcome.objective, outcome.sample) for outcome in outcomes if outcome.objective is not None]
    ordered = sorted(finite, key=lambda found: (-found[0] if maximise else found[0], found[1]))
    kept = {sample for _, sample in ordered[: -(-len(outcomes) // 2)]}
    return sorted(kept | {sample for _, sample in finite if sample == 0})


def _parts(items: Sequence[T], plan: Plan) -> list[list[T]]:
    if not items:  # all of a pruned round diverged
        return []
    at_once = plan.members // plan.seeds
    sizes = np.array_split(np.arange(len(items)), -(-len(items) // at_once))
    return [[items[n] for n in part] for part in sizes]


def _between(range: Range, share: float) -> float:
    low, high = range
    value = low * (high / low) ** share if range.log else low + (high - low) * share
    return float(min(max(value, low), high))  # rounding may step over the end
