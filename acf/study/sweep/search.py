"""`sweep`: a search over a method's hyperparameters, from the question to a preset file; the same call goes on."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from acf import domains
from acf.data.transitions import Transitions
from acf.domains.base import Domain
from acf.errors import AcfError
from acf.files import exclusive_lock
from acf.methods import get, name_of
from acf.methods.base import Method
from acf.study.sweep import plan as plans
from acf.study.sweep.ledger import Ledger, check_optuna, open_journal, open_storage
from acf.study.sweep.objectives import Objective
from acf.study.sweep.plan import Plan, Sampler
from acf.study.sweep.population import Runner, read_outcomes, run_here
from acf.study.sweep.samples import Outcome, Population, Sample, better_half, choose, pack, rounds
from acf.study.sweep.selection import check_enough, prepare
from acf.study.sweep.winner import Tried, are_written, best, write_results
from acf.training.config import make_hparams
from acf.training.preset_file import write_preset
from acf.training.presets import default_preset, get_preset
from acf.training.ranges import get_ranges
from acf.training.run_dir import RunDir

POPULATION = 64  # members: a GPU is then full

Data = str | Path | Domain | type[Domain]


@dataclass(frozen=True)
class Sweep:
    path: Path
    plan: Plan
    tried: list[Tried]
    best: Tried | None
    """None where every sample diverged."""
    was_finished: bool


def sweep(
    data: Data,
    out: str | Path,
    *,
    method: str | Method = "acf",
    preset: str | None = None,
    samples: int = 50,
    seeds: int = 5,
    seed: int = 0,
    population: int = POPULATION,
    objective: Objective | None = None,
    sampler: Sampler = "random",
    prune: bool = False,
    with_preset: bool = True,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    latents: int | None = None,
    storage: str | None = None,
    ray: str | None = None,
) -> Sweep:
    """Try `samples` settings of a method, each with `seeds` seeds, on a domain or a data set.

    The same call goes on where it stopped, and one with more `samples` adds to those that were tried.
    `population` members train at once. `objective` is `supervised` where the data has true factors, else `udr`. The
    study lies in `out`, or in the database at the URL `storage`; with `ray`, populations run on that cluster. Where the
    study lies and who does the work is not part of the question: both may change when a sweep goes on.
    """
    check_optuna()
    if ray is not None and preset is None:
        raise AcfError("with --ray, say which --preset: this machine does not know what the cluster's are good for")
    out = Path(out)
    asked = _plan(
        data,
        method=name_of(method),
        preset=preset,
        samples=samples,
        seeds=seeds,
        seed=seed,
        members=population,
        objective=objective,
        sampler=sampler,
        prune=prune,
        with_preset=with_preset,
        ranges=ranges,
        latents=latents,
    )
    plans.settle(asked, out)  # errors come before any work
    return _carry_out(asked, out, storage, ray)


def _carry_out(asked: Plan, out: Path, storage: str | None, ray: str | None) -> Sweep:
    """What is not done yet of the plan, and the results."""
    with ExitStack() as stack:
        run: Runner = run_here
        if ray is not None:
            from acf.study.sweep.on_ray import connected

            run = stack.enter_context(connected(ray))
        opened = open_storage(storage) if storage is not None else None
        stack.enter_context(exclusive_lock(out))
        plan = plans.settle(asked, out)
        prepare(plan, out)
        if not (out / "preset.toml").exists():
            write_preset(out / "preset.toml", plan.preset, plan.method, "What the sweep in this folder starts from.")
        name = plans.write(plan, out)
        ledger = Ledger(plan, opened or open_journal(out / "study.journal"), name)
        search = _Search(out, plan, ledger, run)
        search.work()
        winner = best(plan, search.tried)
        finished = not search.worked and are_written(out, plan, search.tried)
        if not finished:
            write_results(out, plan, search.tried, winner)
    return Sweep(out, plan, search.tried, winner, finished)


def _plan(data: Data, *, method, preset, objective, ranges, latents, **rest) -> Plan:
    """Everything that was asked, checked."""
    domain, path = _domain(data), Path(str(data))
    whole = None if domain else _open(path)
    source = {"domain": domain} if whole is None else {"path": str(path.resolve()), "hash": whole.hash}
    of_domain = domains.make(domain).name if domain else None
    of_domain = of_domain if whole is None else whole.source.get("domain")
    chosen = get_preset(preset or default_preset(), method, of_domain)
    every = asdict(make_hparams(get(method), chosen.hparams))  # the method's defaults written out
    known = whole is None or whole.factors is not None
    made = Plan(
        data=source,
        method=method,
        preset=replace(chosen, hparams=every),
        ranges=get_ranges(get(method), every, ranges),
        objective=objective or ("supervised" if known else "udr"),
        latents=latents,
        **rest,
    )
    plans.check(made)
    if whole is not None:
        if latents is None and not known:
            raise AcfError("the data has no factors, so say how many latents to learn: --latents K")
        check_enough(made, RunDir(Path()).split(whole)[0])
    return made


def _domain(data: Data) -> str | None:
    """Its name; None for the directory of a data set."""
    if isinstance(data, str | Path):
        outside = ":" in str(data) and not Path(data).exists()
        return domains.name_of(str(data)) if outside or str(data) in domains.REGISTRY.names() else None
    return domains.name_of(data)


def _open(path: Path) -> Transitions:
    if not path.exists():
        known = ", ".join(domains.REGISTRY.names())
        raise AcfError(f"{str(path)!r} is no domain ({known}, or MODULE:NAME), and no data set lies there")
    return Transitions.open(path)


class _Search:
    """Goes through the rounds of a plan. What was done already is read, the rest is run."""

    def __init__(self, out: Path, plan: Plan, ledger: Ledger, run: Runner):
        self._out, self._plan, self._ledger, self._run = out, plan, ledger, run
        self._populations = 0
        self.tried: list[Tried] = []
        self.worked = False

    def work(self) -> None:
        for numbers in rounds(self._plan):
            done = {one.sample.number: (one.sample, one.outcome) for one in self.tried}
            samples = self._ledger.begin(choose(self._plan, numbers, done))
            self._round(samples)
        self.tried.sort(key=lambda one: one.sample.number)

    def _round(self, samples: list[Sample]) -> None:
        plan = self._plan
        if not plan.prune:
            self._finish(self._pack(samples, plan.preset.epochs))
            return
        first = self._pack(samples, plan.first_epochs)
        found = {outcome.sample: outcome for _, outcomes in self._outcomes(first) for outcome in outcomes}
        kept = better_half(list(found.values()), plan.maximise)
        home = {sample.number: (p.number, place) for p in first for place, sample in enumerate(p.samples)}
        for sample in samples:
            if sample.number not in kept:
                outcome = found[sample.number]
                self._ledger.prune(outcome, home[sample.number][0], plan.first_epochs)
                self._try(sample, outcome, plan.first_epochs, "pruned")
        rest = self._pack([sample for sample in samples if sample.number in kept], plan.preset.epochs)
        self._finish([replace(p, goes_on_from=tuple(home[sample.number] for sample in p.samples)) for p in rest])

    def _finish(self, populations: list[Population]) -> None:
        for population, outcomes in self._outcomes(populations):
            for sample, outcome in zip(population.samples, outcomes, strict=True):
                self._ledger.end(outcome, population.number, population.epochs)
                self._try(sample, outcome, population.epochs, "complete")

    def _try(self, sample: Sample, outcome: Outcome, epochs: int, state) -> None:
        self.tried.append(Tried(sample, outcome, epochs, state if outcome.objective is not None else "diverged"))

    def _pack(self, samples: list[Sample], epochs: int) -> list[Population]:
        packed = pack(samples, self._plan, self._populations, epochs)
        self._populations += len(packed)
        return packed

    def _outcomes(self, populations: list[Population]) -> Iterator[tuple[Population, list[Outcome]]]:
        """Of all populations: those that are done first, then the others as they end."""
        left = []
        for population in populations:
            outcomes = read_outcomes(self._out, population)
            if outcomes is None:
                left.append(population)
            else:
                yield population, outcomes
        self.worked |= bool(left)
        if left:
            yield from self._run(self._out, left)
