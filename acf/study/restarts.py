"""Seeds until some are certified: trained one population after another, then put together as one run, the best first.

What is published is every seed that was trained, kept or not.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax

from acf.data.transitions import Transitions
from acf.errors import AcfError
from acf.factors import Certificate
from acf.files import exclusive_lock, write_atomic
from acf.study.factors import Sample, find_member_factors, keep_factors, latents_of, samples_of
from acf.training.config import Config, differing, make_settings
from acf.training.run_dir import RunDir, load
from acf.training.train import check_place, disk_trouble, train

MOST = 16
TOGETHER = 8  # seeds that a GPU trains at a time; a CPU takes one after the other


def at_a_time() -> int:
    return TOGETHER if jax.default_backend() == "gpu" else 1


class Try(NamedTuple):
    """A member of one of the populations."""

    run: RunDir
    member: int
    seed: int
    certificate: Certificate

    @property
    def rank(self) -> tuple[float, ...]:
        """Less is better: certified, then what comes nearest to it. No true factor has a say."""
        c = self.certificate
        shares = (c.one_step.value, c.injective.value, c.along.value)
        return (-float(c.certified), *(-share if share == share else 1.0 for share in shares))  # NaN last


def train_until_certified(
    data: str | Path,
    out: str | Path,
    *,
    keep: int = 1,
    most: int = MOST,
    seed: int = 0,
    say: Callable[[str], None] = lambda message: None,
    **options: Any,
) -> RunDir:
    """Train seeds from `seed` on, at most `most`, until `keep` are certified; `options` are those of `train`.

    The run has all seeds that were trained as its members, certified ones first. A finished run is left alone; one that
    was stopped goes on.
    """
    if not 1 <= keep <= most:
        raise AcfError(f"expected to keep at least one seed and no more than the {most} that are tried, got {keep}")
    run, asked = RunDir(Path(out)), {"keep": keep, "most": most, "first": seed}
    check_place(run)
    with disk_trouble(run), exclusive_lock(run.path):
        if run.config.exists():
            _check_same(run, asked, options)
        else:
            tries = list(_tries(Path(data), run, keep, most, seed, say, options))
            _put_together(run, Path(data), tries, asked)
        shutil.rmtree(run.restarts, ignore_errors=True)
    return run


def _check_same(run: RunDir, asked: dict[str, int], options: dict[str, Any]) -> None:
    """A directory holds one run: what is asked of it again must be what was asked then."""
    config, found = run.read_config(), json.loads(run.config.read_text()).get("restarts")
    if found is None:
        raise AcfError(f"{run.path} holds a run of given seeds. Give its --seeds, or choose another --out.")
    size, (member,) = make_settings(
        options.get("method", "acf"),
        options.get("preset"),
        config.data["source"].get("domain"),
        [config.members[0].seed],
        options.get("hparams", {}),
        options.get("epochs"),
    )
    there = {name: found[name] for name in asked} | {"epochs": config.epochs, "hparams": config.members[0].hparams}
    if changed := differing(there, asked | {"epochs": size.epochs, "hparams": member.hparams}):
        raise AcfError(f"{run.path} holds another run ({'; '.join(changed)}). Choose another --out.")


def _tries(
    data: Path, run: RunDir, keep: int, most: int, first: int, say: Callable[[str], None], options: dict[str, Any]
) -> Iterator[Try]:
    together = at_a_time()
    certified, continuous, samples = 0, 0, None
    for begin in range(0, most, together):
        seeds = range(first + begin, first + min(begin + together, most))
        one = train(data, run.restarts / str(begin), seeds=seeds, **options)
        samples = samples or samples_of(run, Transitions.open(data, noop=options.get("noop")))
        for tried in _judged(one, samples):
            certified += tried.certificate.certified
            say(_verdict(tried, certified, keep))
            yield tried
            continuous += tried.certificate.kind == "directions"
        if certified >= keep or continuous == begin + together >= 3:
            return


def _judged(run: RunDir, samples: tuple[Sample, Sample]) -> Iterator[Try]:
    for n, member in enumerate(run.read_config().members):
        trained = load(run.path, n)
        found = find_member_factors(trained, latents_of(trained, samples), samples)
        keep_factors(run, n, found)
        yield Try(run, n, member.seed, found.certificate)


def _verdict(tried: Try, certified: int, keep: int) -> str:
    if tried.certificate.certified:
        return f"seed {tried.seed}: certified, {certified} of {keep}"
    return f"seed {tried.seed}: not certified, because {tried.certificate.because[0]}"


def _put_together(run: RunDir, data: Path, tries: list[Try], asked: dict[str, int]) -> None:
    """The config comes last: a run is there when it is whole."""
    tries = sorted(tries, key=lambda one: one.rank)
    for n, tried in enumerate(tries):
        for source, target in (
            (tried.run.model(tried.member), run.model(n)),
            (tried.run.factors(tried.member), run.factors(n)),
        ):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    runs = list(dict.fromkeys(tried.run for tried in tries))
    for one in runs:
        shutil.copytree(one.tensorboard, run.tensorboard / one.path.name, dirs_exist_ok=True)
    write_atomic(run.metrics, "".join(json.dumps(row) + "\n" for row in _merged(tries)))
    configs = {one: one.read_config() for one in runs}
    members = tuple(configs[tried.run].members[tried.member] for tried in tries)
    config: Config = replace(configs[runs[0]], members=members)
    found = json.loads(runs[0].config.read_text()) | config.to_json()
    found["data"]["path"] = os.path.relpath(data.resolve(), run.path.resolve())
    found["restarts"] = asked | {"certified": sum(tried.certificate.certified for tried in tries)}
    write_atomic(run.config, json.dumps(found, indent=2) + "\n")


def _merged(tries: list[Try]) -> Iterator[dict[str, Any]]:
    """Rows of all tries' metrics, a column a member; they have the same steps."""
    rows = {run: [json.loads(line) for line in run.metrics.read_text().splitlines()] for run in {t.run for t in tries}}
    for at_step in zip(*(rows[tried.run] for tried in tries), strict=True):
        first = at_step[0]
        yield {
            name: [row[name][tried.member] for row, tried in zip(at_step, tries, strict=True)]
            if isinstance(first[name], list)
            else first[name]
            for name in first
        }
