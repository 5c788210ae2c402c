"""Doing what is missing of a study, population by population; stopped at any moment, the same call goes on."""

import math
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from acf.data import collect
from acf.errors import AcfError
from acf.files import Busy, exclusive_lock
from acf.methods import get
from acf.registry import own_part
from acf.study.plan import Cell, Study, choose, hparams_of
from acf.study.records import Record, describe, leave_out_of_git, read_records, recognise, record_of, write_record
from acf.study.traversals import draw_traversals
from acf.terminal import counting, errors, status
from acf.training import RunDir, train
from acf.training.interrupt import Interrupted


@dataclass(frozen=True)
class Population:
    """Cells of one domain and method that train together, whatever their presets: this keeps a device full."""

    name: str
    """Of its run directory and its record."""
    cells: tuple[Cell, ...]

    @property
    def domain(self) -> str:
        return self.cells[0].domain

    @property
    def method(self) -> str:
        return self.cells[0].method


@dataclass(frozen=True)
class Outcome:
    done: tuple[str, ...]
    """Records written by this call."""
    missing: tuple[Cell, ...]
    """Of the whole study."""


def missing_cells(study: Study, records: list[Record]) -> list[Cell]:
    held = {cell for record in records for cell in record.cells}
    return [cell for cell in study.cells() if cell not in held]


def populations(study: Study, out: Path, records: list[Record]) -> list[Population]:
    """What is left to do: runs that were begun, and for the other missing cells of a domain and method a new one."""
    missing = missing_cells(study, records)
    return [
        population
        for pair in study.pairs()
        for population in _of_pair(study, out, [cell for cell in missing if cell[:2] == pair])
    ]


def _of_pair(study: Study, out: Path, missing: list[Cell]) -> Iterator[Population]:
    names = _names_without_record(out, *missing[0][:2]) if missing else iter(())
    while missing:
        name = next(names)
        run = RunDir(out / "runs" / name)
        if not run.config.exists():
            yield Population(name, tuple(missing))
            return
        begun = recognise(study, run.read_config(), str(run.path))
        if set(begun) <= set(missing):
            yield Population(name, begun)
            missing = [cell for cell in missing if cell not in begun]
        else:
            held = [cell for cell in begun if cell not in missing]
            warnings.warn(f"{run.path} is left alone: a record has {describe(held)} already", stacklevel=2)


def _names_without_record(out: Path, domain: str, method: str) -> Iterator[str]:
    """`taxi-acf`, `taxi-acf-2` and so on."""
    base = f"{own_part(domain)}-{get(method).name}"
    names = chain([base], (f"{base}-{n}" for n in count(2)))
    return (name for name in names if not (out / f"{name}.json").exists())


def run_study(
    study: Study,
    out: str | Path,
    *,
    domains: tuple[str, ...] = (),
    methods: tuple[str, ...] = (),
    minutes: float = math.inf,
) -> Outcome:
    """Train, evaluate and record what `out` does not hold yet, or only that of some domains and methods.

    After `minutes` nothing is begun, and a training in progress is saved and stopped.
    """
    out = Path(out)
    wanted = _wanted(study, domains, methods)
    if not minutes > 0:
        raise AcfError(f"expected a time limit of more than 0 minutes, got {minutes:g}")
    until = time.monotonic() + 60 * minutes
    done, failed = [], []
    with _held(study, out) as records, counting(f"trials of {study.name}") as progress:
        left = [p for p in populations(study, out, records) if (p.domain, p.method) in wanted]
        trials = [cell for cell in study.cells() if cell[:2] in wanted]
        for n, population in enumerate(left):
            progress(len(trials) - sum(len(p.cells) for p in left[n:]), len(trials))
            if time.monotonic() >= until:
                break
            errors.print(f"{n + 1}/{len(left)} {describe(population.cells)}", soft_wrap=True)
            try:
                _work(study, population, out, until)
                done.append(population.name)
            except Interrupted as stop:
                if stop.signum is not None:
                    raise
                errors.print(f"time limit: {stop}", soft_wrap=True)
            except Busy:
                raise
            except AcfError as error:  # the others may still come to something
                failed.append(f"{population.name}: {error}")
        records = read_records(study, out)
    if failed:
        raise AcfError(f"{len(failed)} of {len(left)} populations failed. " + " ".join(failed))
    return Outcome(tuple(done), tuple(missing_cells(study, records)))


def adopt(study: Study, out: str | Path, runs: tuple[str | Path, ...]) -> list[str]:
    """Records of runs that were trained elsewhere; returns their names. All are checked before one is written."""
    out = Path(out)
    found = [(run, recognise(study, RunDir(Path(run)).read_config(), str(run))) for run in runs]
    with _held(study, out) as records:
        missing = set(missing_cells(study, records))
        contents = []
        for run, cells in found:
            if twice := [cell for cell in cells if cell not in missing]:
                raise AcfError(f"{run}: {study.name} does not ask for {describe(twice)}, or a record has it already")
            missing -= set(cells)
            with status(f"scoring {run}"):
                contents.append((Path(run), record_of(run, study)))
        names = []
        for run, content in contents:
            free = _names_without_record(out, content["domain"], content["method"])
            name = next(name for name in free if not RunDir(out / "runs" / name).config.exists())
            draw_traversals(study, run, out)
            write_record(out / f"{name}.json", content)
            names.append(name)
    return names


@contextmanager
def _held(study: Study, out: Path) -> Iterator[list[Record]]:
    """The directory of the study, for this process alone, and the records in it.

    Data and weights are not committed, nor is the page, which holds what the README beside it says.
    """
    read_records(study, out)  # before anything is written there
    with exclusive_lock(out):
        leave_out_of_git(out)
        yield read_records(study, out)


def _wanted(study: Study, domains: tuple[str, ...], methods: tuple[str, ...]) -> set[tuple[str, str]]:
    pairs = study.pairs()
    known = [tuple(dict.fromkeys(names)) for names in zip(*pairs, strict=True)]
    of_domain, of_method = choose(known[0], domains, "domain"), choose(known[1], methods, "method")
    chosen = {(domain, method) for domain, method in pairs if domain in of_domain and method in of_method}
    if not chosen:
        raise AcfError(f"{study.name} asks for none of {', '.join(of_method)} on {', '.join(of_domain)}")
    return chosen


def _work(study: Study, population: Population, out: Path, until: float) -> None:
    """A run directory first, then its figures, then its record: what is there already is not made again."""
    domain, method, run = population.domain, population.method, out / "runs" / population.name
    size, data = study.size(domain, method), out / "data" / own_part(domain)
    with counting(f"collecting {domain}") as progress:
        collect(domain, size.transitions, start=size.start, horizon=size.horizon, out=data, progress=progress)
    train(
        data,
        run,
        method=method,
        preset=study.sizes,
        seeds=[cell.seed for cell in population.cells],
        hparams=[hparams_of(method, cell.preset, domain) for cell in population.cells],
        epochs=study.epochs,
        until=until,
    )
    if time.monotonic() >= until:
        raise Interrupted(f"{run} is trained but not evaluated yet; the same command goes on", None)
    with status(f"evaluating {population.name}"):
        draw_traversals(study, run, out)
        command = f"acf study {study.name} --domains {domain} --methods {method}"
        write_record(out / f"{population.name}.json", record_of(run, study, command=command))
