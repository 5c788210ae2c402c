"""One population of a sweep: trained into a run directory of its own, then scored. Done again, it does nothing."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np

from acf.errors import AcfError
from acf.files import write_atomic
from acf.study.held_out import open_run
from acf.study.sweep import plan as plans
from acf.study.sweep.go_on import carry_over
from acf.study.sweep.objectives import OBJECTIVES
from acf.study.sweep.plan import Plan
from acf.study.sweep.samples import Outcome, Population
from acf.terminal import counting, errors
from acf.training import train
from acf.training.train import AllDiverged

# Trains and scores populations of the sweep in a directory, in any order, each once.
Runner = Callable[[Path, list[Population]], Iterator[tuple[Population, list[Outcome]]]]


def run_here(out: Path, populations: list[Population]) -> Iterator[tuple[Population, list[Outcome]]]:
    """One after the other, in this process."""
    for n, population in enumerate(populations, 1):
        size = f"{len(population.samples)} samples, {population.epochs} epochs"
        errors.print(f"population {n} of {len(populations)} ({size})", soft_wrap=True)
        yield population, run_population(out, population)


def run_population(out: Path, population: Population) -> list[Outcome]:
    """Train and score the population of the sweep in `out`; what was done already is kept."""
    outcomes = read_outcomes(out, population)
    if outcomes is None:
        found = plans.read(out)
        if found is None:
            raise AcfError(f"{out} has no plan.json: expected a sweep, on a disk that all machines see")
        outcomes = _train_and_score(out, found[0], population)
        text = json.dumps([asdict(outcome) for outcome in outcomes], indent=2) + "\n"
        write_atomic(_outcomes(out, population), text)
    return outcomes


def read_outcomes(out: Path, population: Population) -> list[Outcome] | None:
    """Of a population that is done; None where it is not."""
    file = _outcomes(out, population)
    if not file.exists():
        return None
    try:
        outcomes = [Outcome(o["sample"], o["objective"], tuple(o["seeds"])) for o in json.loads(file.read_text())]
    except (ValueError, KeyError, TypeError) as error:
        raise AcfError(f"{file} is damaged ({error}); remove it and run the same command again") from None
    expected, found = [sample.number for sample in population.samples], [outcome.sample for outcome in outcomes]
    if found != expected:
        raise AcfError(f"{file}: expected samples {expected}, found {found}; choose another --out")
    return outcomes


def directory(out: Path, number: int) -> Path:
    return out / "populations" / f"{number:04d}"


def _outcomes(out: Path, population: Population) -> Path:
    return directory(out, population.number) / "objective.json"


def _train_and_score(out: Path, plan: Plan, population: Population) -> list[Outcome]:
    run = directory(out, population.number)
    if population.goes_on_from:
        sources = [(directory(out, number), place) for number, place in population.goes_on_from]
        carry_over(sources, run, plan.seeds)
    members = [(seed, sample.hparams) for sample in population.samples for seed in plan.member_seeds]
    try:
        train(
            out / "selection",
            run,
            method=plan.method,
            preset=str(out / "preset.toml"),
            seeds=[seed for seed, _ in members],
            hparams=[hparams for _, hparams in members],
            latents=plan.latents,
            epochs=population.epochs,
        )
    except AllDiverged:
        return [Outcome(sample.number, None, (None,) * plan.seeds) for sample in population.samples]
    return _score(run, plan, population)


def _score(run: Path, plan: Plan, population: Population) -> list[Outcome]:
    held_out = open_run(run)
    outcomes = []
    with counting("scoring samples") as progress:
        for n, sample in enumerate(population.samples):
            members = range(n * plan.seeds, (n + 1) * plan.seeds)
            values = OBJECTIVES[plan.objective].of_seeds(held_out, members)
            diverged = [held_out.members[m].diverged_at >= 0 for m in members]
            seeds = tuple(
                None if gone or not np.isfinite(value) else float(value)
                for gone, value in zip(diverged, values, strict=True)
            )
            # Settings under which a seed diverges are not good settings, however good its siblings are.
            finite = [value for value in seeds if value is not None]
            objective = float(np.mean(finite)) if len(finite) == plan.seeds else None
            outcomes.append(Outcome(sample.number, objective, seeds))
            progress(n + 1, len(population.samples))
    return outcomes
