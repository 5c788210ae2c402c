"""A study as a file: which methods, domains, seeds and presets, and what the ablation table compares."""

import tomllib
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from acf.data.collect import Plan
from acf.domains import make
from acf.errors import AcfError
from acf.methods import get, name_of
from acf.training.config import TEST_FRACTION, make_hparams
from acf.training.presets import Preset, get_preset

SHIPPED = ("paper", "smoke")
MIN_TEST_EPISODES = 3  # to fit, validate and test the regressors on different ones

Methods = dict[str, tuple[str, ...]]  # the presets of each method


class Cell(NamedTuple):
    """One trial: the least that a study asks for."""

    domain: str
    method: str
    preset: str
    seed: int


@dataclass(frozen=True)
class Ablation:
    """The rows of the ablation table."""

    domain: str
    methods: Methods


@dataclass(frozen=True)
class Study:
    """A preset in `methods` and `ablation` stands for its hyperparameters; data, networks, batches and epochs are those
    of the preset `sizes` throughout, so that the settings of a method train as one population.
    """

    name: str
    domains: tuple[str, ...]
    seeds: int
    sizes: str
    methods: Methods
    ablation: Ablation | None = None
    transitions: int | None = None
    epochs: int | None = None

    def size(self, domain: str, method: str) -> Preset:
        """What to collect and how large to train."""
        own = {"transitions": self.transitions, "epochs": self.epochs}
        given = {name: value for name, value in own.items() if value is not None}
        return replace(get_preset(self.sizes, method, domain), **given)

    def source(self, domain: str, method: str) -> dict[str, Any]:
        """What the data says of its making."""
        size = self.size(domain, method)
        return Plan(make(domain), size.transitions, 0, size.start, size.horizon, "uniform").source

    @property
    def is_the_papers_size(self) -> bool:
        return self.sizes == "paper" and self.transitions is None and self.epochs is None

    def presets(self, domain: str, method: str) -> tuple[str, ...]:
        """Of the main part and of the ablation together."""
        main = self.methods.get(method, ()) if domain in self.domains else ()
        more = self.ablation.methods.get(method, ()) if self.ablation and self.ablation.domain == domain else ()
        return tuple(dict.fromkeys((*main, *more)))

    def domain_called(self, name: str | None) -> str | None:
        """What this study calls the domain of this name: `mydomain:Dial` where that is `dial`."""
        return next((domain for domain, _ in self.pairs() if make(domain).name == name), None)

    def pairs(self) -> list[tuple[str, str]]:
        """Every domain and method that something is asked of."""
        domains, methods = list(self.domains), list(self.methods)
        if self.ablation:
            domains, methods = [*domains, self.ablation.domain], [*methods, *self.ablation.methods]
        every = [(domain, method) for domain in dict.fromkeys(domains) for method in dict.fromkeys(methods)]
        return [pair for pair in every if self.presets(*pair)]

    def cells(self) -> list[Cell]:
        return [
            Cell(domain, method, preset, seed)
            for domain, method in self.pairs()
            for preset in self.presets(domain, method)
            for seed in range(self.seeds)
        ]


def hparams_of(method: str, preset: str, domain: str) -> dict[str, float]:
    """All of them: those that the preset leaves to the method too."""
    return asdict(make_hparams(get(method), get_preset(preset, method, domain).hparams))


def read_study(name: str) -> Study:
    """A study that is shipped, by its name, or one of your own, by its file."""
    file = files("acf.study") / "studies" / f"{name}.toml" if name in SHIPPED else Path(name)
    if not file.is_file():
        raise AcfError(f"there is no study {name!r}: expected {', '.join(SHIPPED)} or a TOML file")
    try:
        found = tomllib.loads(file.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AcfError(f"{name} is not TOML ({error})") from None
    study = _parse(found, name)
    _check(study, name)
    return study


def choose(known: tuple[str, ...], asked: tuple[str, ...], what: str) -> tuple[str, ...]:
    """Those of the study that were asked for, or all where none was."""
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise AcfError(f"the study has no {what} {', '.join(unknown)}: expected some of {', '.join(known)}")
    return tuple(name for name in known if name in asked or not asked)


_TYPES: dict[str, type] = {
    "domains": list,
    "seeds": int,
    "sizes": str,
    "methods": dict,
    "ablation": dict,
    "transitions": int,
    "epochs": int,
}
_REQUIRED = ("domains", "seeds", "sizes", "methods")


def _parse(found: dict[str, Any], where: str) -> Study:
    _keys(found, _TYPES, _REQUIRED, where)
    ablation = None
    if "ablation" in found:
        _keys(found["ablation"], {"domain": str, "methods": dict}, ("domain", "methods"), f"{where}: ablation")
        ablation = Ablation(found["ablation"]["domain"], _methods(found["ablation"]["methods"], where))
    domains = _names(found["domains"], f"{where}: domains")
    rest = {name: found[name] for name in ("seeds", "sizes", "transitions", "epochs") if name in found}
    methods = _methods(found["methods"], where)
    return Study(name=Path(where).name, domains=domains, methods=methods, ablation=ablation, **rest)


def _keys(found: dict[str, Any], types: dict[str, type], required: tuple[str, ...], where: str) -> None:
    unknown, missing = sorted(found.keys() - types.keys()), [name for name in required if name not in found]
    if unknown:
        raise AcfError(f"{where}: unknown key {', '.join(unknown)}, expected some of {', '.join(types)}")
    if missing:
        raise AcfError(f"{where}: {', '.join(missing)} is missing")
    for name, value in found.items():
        if type(value) is not types[name]:
            words = {list: "a list", int: "a whole number", str: "text", dict: "a table"}
            raise AcfError(f"{where}: expected {words[types[name]]} for {name}, found {value!r}")


def _names(found: Any, where: str) -> tuple[str, ...]:
    if not isinstance(found, list) or not found or not all(isinstance(name, str) for name in found):
        raise AcfError(f"{where}: expected a list of names, found {found!r}")
    if len(set(found)) < len(found):
        raise AcfError(f"{where}: a name stands there twice: {', '.join(found)}")
    return tuple(found)


def _methods(found: dict[str, Any], where: str) -> Methods:
    if not found:
        raise AcfError(f"{where}: expected at least one method with its presets: acf = ['paper']")
    return {method: _names(presets, f"{where}: presets of {method}") for method, presets in found.items()}


def _check(study: Study, where: str) -> None:
    """Whatever could only fail later fails here."""
    try:
        for name in ("seeds", "transitions", "epochs"):
            value = getattr(study, name)
            if value is not None and value < 1:
                raise AcfError(f"expected {name} of at least 1, found {value}")
        for domain, method in study.pairs():
            make(domain)
            if name_of(method) != method:
                raise AcfError(f"{method} is known as {name_of(method)}: write that")
            _check_presets(study, domain, method)
            _check_enough(study, domain, method)
    except AcfError as error:
        raise AcfError(f"{where}: {error}") from None


def _check_presets(study: Study, domain: str, method: str) -> None:
    """A member's preset is recognised by its hyperparameters, so no two may have the same."""
    named: list[tuple[str, dict[str, float]]] = []
    for preset in study.presets(domain, method):
        hparams = hparams_of(method, preset, domain)
        if same := [name for name, others in named if others == hparams]:
            names = f"{same[0]} and {preset}"
            raise AcfError(f"{names} are the same hyperparameters for {method} on {domain}: expected one of them")
        named.append((preset, hparams))


def _check_enough(study: Study, domain: str, method: str) -> None:
    size = study.size(domain, method)
    episodes = size.transitions // size.horizon
    test = round(TEST_FRACTION * episodes)
    if test < MIN_TEST_EPISODES or (episodes - test) * size.horizon < size.batch_size:
        raise AcfError(
            f"{size.transitions} transitions of {domain} are {episodes} episodes, {test} of them for tests: expected "
            f"{MIN_TEST_EPISODES} of these and a batch of {size.batch_size} in the rest. Set transitions higher."
        )
