"""How long a training step takes, in a preset's own configuration: whole, and its parts on their own."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from acf.data import collect
from acf.data.transitions import Transitions
from acf.methods import get
from acf.methods.acf import HParams, losses
from acf.methods.base import Batch, Method, Spec
from acf.methods.transitions import Latents, add_noise, encode_pair
from acf.nn.kernel import chosen
from acf.study.floor import floor
from acf.training import population
from acf.training.config import make_hparams, make_spec
from acf.training.flat import layout
from acf.training.population import Schedule
from acf.training.presets import get_preset
from acf.training.program import Program

TRANSITIONS = 20_000  # enough for chunks of the usual length; a step does not depend on how many there are


@dataclass(frozen=True)
class Case:
    """A program to time."""

    name: str
    method: Method
    spec: Spec
    members: int
    batch_size: int
    hparams: dict[str, float]
    data: Transitions


@dataclass(frozen=True)
class Timing:
    name: str
    members: int
    compile_s: float
    step_ms: float
    member_mib: float
    """Of a device: parameters, moments and everything computed on the way; the data apart."""
    devices: int

    @property
    def member_ms(self) -> float:
        return self.step_ms / self.members

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"member_ms": self.member_ms}


def make_case(domain: str, preset: str, members: int, *, data: Transitions, method: str = "acf") -> Case:
    """The method as a run with this preset would train it here."""
    chosen_preset = get_preset(preset, method, domain)
    hparams = asdict(make_hparams(get(method), chosen_preset.hparams))
    spec = make_spec(data, chosen_preset, [hparams], latents=get(method).latents)
    name = domain if method == "acf" else f"{domain}, {method}"
    return Case(name, get(method), spec, members, chosen_preset.batch_size, hparams, data)


def collect_for_bench(domain: str) -> Transitions:
    return collect(domain, TRANSITIONS)


def time_cases(cases: list[Case], chunks: int = 4) -> list[Timing]:
    """Compiled side by side, timed one after the other."""
    with ThreadPoolExecutor(4 if jax.default_backend() == "gpu" else 1) as pool:
        made = list(pool.map(_make, cases))
    return [_time(case, *parts, chunks) for case, parts in zip(cases, made, strict=True)]


def _make(case: Case) -> tuple[Program, Schedule, float]:
    learner = case.method.bind(case.spec)
    schedule = Schedule(len(case.data), case.batch_size, 10)
    hparams = population.stack([make_hparams(case.method, case.hparams)] * case.members)
    seeds = list(range(case.members))
    state = jax.jit(lambda seeds: population.init(learner, seeds))(jnp.array(seeds))
    began = time.perf_counter()
    program = Program(learner, schedule, case.data, seeds, hparams)
    took = time.perf_counter() - began
    program.begin(state)
    return program, schedule, took


def _time(case: Case, program: Program, schedule: Schedule, compile_s: float, chunks: int) -> Timing:
    """Chunks one after the other, each started before the last one has ended, as in training."""
    program.start(0).wait()  # the first one warms up
    began, running = time.perf_counter(), program.start(schedule.chunk)
    for n in range(1, chunks):
        following = program.start((n + 1) * schedule.chunk)
        running.wait()
        running = following
    running.wait()
    seconds = time.perf_counter() - began
    program.close()
    step_ms = 1e3 * seconds / (chunks * schedule.chunk)
    member_mib = program.memory / program.at_once / 2**20
    return Timing(case.name, case.members, compile_s, step_ms, member_mib, program.devices)


def parts(case: Case) -> list[Case]:
    """The step's parts as programs of their own: encoder, losses on fixed latents, and the optimiser alone."""

    def encoder_only(model: Any, batch: Batch, key: Any, hparams: HParams):
        latents = encode_pair(model.encode, batch)
        return (latents.z * latents.z_next).sum(), {}

    def losses_only(model: Any, batch: Batch, key: Any, hparams: HParams):
        # As close together as those of a network just made: on a CPU the energies take longer for a wider range.
        z = 0.1 * jax.random.normal(jax.random.key(0), (2, len(batch.action), case.spec.latents)) + hparams.lr
        terms = losses(model, add_noise(Latents(z[0], batch.action, z[1]), key, hparams.noise))
        return jnp.asarray(sum(terms.values())), {}

    def optimiser_only(model: Any, batch: Batch, key: Any, hparams: HParams):
        from flax import nnx

        return sum((leaf * leaf).sum() for leaf in jax.tree.leaves(nnx.state(model))), {}

    made = {"encoder": encoder_only, "losses": losses_only, "optimiser": optimiser_only}
    return [replace(case, name=name, method=replace(case.method, loss=loss)) for name, loss in made.items()]


def parameters(case: Case) -> int:
    return layout(jax.eval_shape(case.method.bind(case.spec).init, jax.random.key(0))).size


def describe_device() -> dict[str, str]:
    device = jax.devices()[0]
    return {"device": device.device_kind, "jax": jax.__version__, "kernel": chosen("auto")}


def bench(domains: tuple[str, ...], methods: tuple[str, ...], preset: str, members: tuple[int, ...]) -> dict[str, Any]:
    """Every domain with every method and population. For ACF the parts of a step too, and its floor where there are
    kernels: they are what it is the floor of, and what the rates are measured with.
    """
    data = {domain: collect_for_bench(domain) for domain in domains}
    sizes = [(domain, method, P) for domain in domains for method in methods for P in members]
    whole = [make_case(domain, preset, P, data=data[domain], method=method) for domain, method, P in sizes]
    pieces = []
    if "acf" in methods:
        pieces = parts(make_case(domains[0], preset, members[-1], data=data[domains[0]]))
    timings = time_cases([*whole, *pieces])
    rows = [timing.to_json() for timing in timings]
    report: dict[str, Any] = {"device": describe_device(), "preset": preset, "rows": rows}
    if chosen("auto") == "pallas":
        from acf.study.rates import measure_rates  # needs Pallas

        rates = measure_rates()
        report["rates"] = rates._asdict()
        for case, row in zip(whole, rows, strict=False):
            if case.method.name == "acf":
                least = floor(case.spec, case.batch_size, parameters(case), rates)
                row["floor"] = {f"{name}_ms": 1e3 * value for name, value in least._asdict().items()}
                row["floor"]["total_ms"] = 1e3 * least.total
    for case, row in zip(pieces, rows[len(whole) :], strict=True):
        row["name"] = f"{domains[0]}: {case.name} alone"
        del row["member_mib"]  # a part may not even read the data, whose size is subtracted
    return report
