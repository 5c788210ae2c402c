"""Everything needed to repeat a run, as plain data: `config.json`."""

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax

from acf.data.transitions import Transitions
from acf.errors import AcfError
from acf.methods import METHODS, get
from acf.methods.base import Encoders, Method, Spec
from acf.nn.kernel import Kernel, nvidia_capability
from acf.training.population import Schedule
from acf.training.presets import Preset, default_preset, get_preset, presets_of

FORMAT = 1
TEST_FRACTION = 0.1  # of the episodes: kept from training, for evaluation


# What a field of `Spec` was before it had a name, where that is not what it is by default now.
BEFORE_IT_WAS_NAMED: dict[str, Any] = {"encoder": "residual"}


@dataclass(frozen=True)
class Member:
    seed: int
    hparams: dict[str, float]
    preset: str | None = None
    """The one that has just these hyperparameters; None where there is none, or where the run is older than this."""


@dataclass(frozen=True)
class Config:
    method: str
    spec: Spec
    members: tuple[Member, ...]
    batch_size: int
    epochs: int
    data: dict[str, Any]
    """`path` of the data set, relative to the run directory, its `hash` and its `source`."""

    def schedule(self, transitions: int) -> Schedule:
        return Schedule(transitions, self.batch_size, self.epochs)

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **dataclasses.asdict(self)}

    @staticmethod
    def from_json(found: dict[str, Any], where: Path) -> "Config":
        version = found.get("format") if isinstance(found, dict) else None
        if version != FORMAT:
            raise AcfError(f"{where}: expected run format {FORMAT}, found {version!r}; use a matching acf-rl")
        try:
            spec = _spec(found["spec"])
            method = get(found["method"])
            every = [member | {"hparams": complete_hparams(method, member["hparams"])} for member in found["members"]]
            members = tuple(Member(**member) for member in every)
            rest = {name: found[name] for name in ("method", "batch_size", "epochs", "data")}
        except (KeyError, TypeError) as error:
            raise AcfError(f"{where} is damaged: {error}") from None
        return Config(spec=spec, members=members, **rest)


def _spec(found: dict[str, Any]) -> Spec:
    known = {field.name for field in dataclasses.fields(Spec)}
    before = {name: value for name, value in BEFORE_IT_WAS_NAMED.items() if name in known}
    values: dict[str, Any] = before | found | {"frame_shape": tuple(found["frame_shape"])}
    return Spec(**values)


def complete_hparams(method: Method, found: dict[str, float]) -> dict[str, float]:
    """With the method's defaults for what did not exist when these were written down."""
    fields = dataclasses.fields(method.hparams)
    return {field.name: field.default for field in fields if field.default is not dataclasses.MISSING} | found


class Settings(NamedTuple):
    """Of a run, as far as they can be made and checked before there is any data."""

    preset: Preset
    members: tuple[Member, ...]


def make_settings(
    method: str,
    preset: str | None,
    domain: str | None,
    seeds: Sequence[int],
    hparams: dict[str, float] | Sequence[dict[str, float]],
    epochs: int | None,
) -> Settings:
    """The preset, with what was asked in place of its own."""
    chosen = get_preset(preset or default_preset(), method, domain)
    chosen = chosen if epochs is None else dataclasses.replace(chosen, epochs=epochs)
    overrides = [hparams] * len(seeds) if isinstance(hparams, dict) else list(hparams)
    if not seeds:
        raise AcfError("expected at least one seed")
    if len(overrides) != len(seeds):
        raise AcfError(f"expected one set of hyperparameters a seed, got {len(overrides)} for {len(seeds)} seeds")
    for seed in seeds:
        if not 0 <= seed < 2**31:
            raise AcfError(f"expected seeds from 0 to 2^31 - 1, got {seed}")
    if chosen.epochs < 1 or chosen.batch_size < 2:
        raise AcfError(f"expected epochs >= 1 and batch_size >= 2, got {chosen.epochs} and {chosen.batch_size}")
    every = [dataclasses.asdict(make_hparams(get(method), chosen.hparams | own)) for own in overrides]
    named = [_name_of(own, method, preset or default_preset(), domain) for own in every]
    members = zip(map(int, seeds), every, named, strict=True)
    return Settings(chosen, tuple(Member(*member) for member in members))


def _name_of(hparams: dict[str, float], method: str, preset: str, domain: str | None) -> str | None:
    """The preset with these hyperparameters: the one that was asked for, or another that has a name."""
    for name in dict.fromkeys((preset, *presets_of(method))):
        own = get_preset(name, method, domain).hparams
        if dataclasses.asdict(make_hparams(get(method), own)) == hparams:
            return Path(name).name  # a file's own: where it lies means nothing elsewhere
    return None


def make_hparams(method: Method, values: dict[str, float]) -> Any:
    """The method's hyperparameters with these values, every name checked."""
    known = [field.name for field in dataclasses.fields(method.hparams)]
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise AcfError(f"{method.name} has no hyperparameter {', '.join(unknown)}: expected some of {', '.join(known)}")
    for name, value in values.items():
        if not math.isfinite(value):
            raise AcfError(f"hyperparameter {name}: expected a finite number, got {value}")
    if not 0 <= values.get("lr", 0) <= 1:
        raise AcfError(f"hyperparameter lr: expected a learning rate between 0 and 1, got {values['lr']}")
    return method.hparams(**{name: float(value) for name, value in values.items()})


def make_spec(
    data: Transitions,
    preset: Preset,
    members: Sequence[dict[str, float]],
    *,
    latents: int | None = None,
    encoder: Encoders | None = None,
    bf16: bool | None = None,
    kernel: Kernel = "auto",
) -> Spec:
    """What the models of these members' hyperparameters are built for, on this data."""
    if latents is None and data.factors is None:
        raise AcfError("the data has no factors, so say how many latents to learn: --latents K, or latents=K in Python")
    return Spec(
        frame_shape=data.frame_shape,
        n_actions=data.n_actions,
        noop=data.noop,
        latents=latents if latents is not None else len(data.factor_names),
        encoder=encoder or preset.encoder,
        depth=preset.depth,
        hidden=preset.hidden,
        bf16=_fast_in_bf16() if bf16 is None else bf16,
        kernel=kernel,
        decoder=any(own.get("recons", 1.0) != 0 for own in members),
    )


def _fast_in_bf16() -> bool:
    """NVIDIA's GPUs before 8.0 have no units for it."""
    return jax.default_backend() == "gpu" and not 0 < nvidia_capability() < 8


def differences(old: Config, new: Config) -> list[str]:
    """What two configs disagree on, as readable lines. Where the data lies does not matter; what it is does."""
    if old.method != new.method:  # which have no settings in common
        return [f"method: {old.method} there, {new.method} asked"]

    def plain(config: Config) -> dict[str, Any]:
        found = json.loads(json.dumps(config.to_json()))  # tuples become lists, as in the file
        found["data"] = {"hash": found["data"]["hash"]}
        for member in found["members"]:
            del member["preset"]  # a name for hyperparameters, which are compared themselves
        return found

    return differing(plain(old), plain(new))


def differing(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What two JSON objects disagree on, as readable lines."""

    def flat(value: Any, name: str) -> dict[str, Any]:
        if isinstance(value, dict):
            parts = [flat(inner, f"{name}.{key}".lstrip(".")) for key, inner in value.items()]
            return {key: inner for part in parts for key, inner in part.items()}
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return flat({str(n): inner for n, inner in enumerate(value)}, name)
        return {name: value}

    for name, there in old.items():
        if isinstance(there, list) and isinstance(new.get(name), list) and len(there) != len(new[name]):
            return [f"{len(there)} {name} there, {len(new[name])} asked"]
    a, b = flat(old, ""), flat(new, "")
    return [f"{name}: {a.get(name)} there, {b.get(name)} asked" for name in sorted(a | b) if a.get(name) != b.get(name)]


def check_trainable(config: Config, train: Transitions) -> None:
    if config.spec.noop is None and get(config.method).needs_noop:
        others = ", ".join(name for name in METHODS if not get(name).needs_noop)
        raise AcfError(
            f"{config.method} contrasts each action with one that does nothing, and the data says that it has none: "
            f"name it with --noop INDEX, noop=INDEX in Python (the actions are {train.action_names}), "
            f"or train another --method ({others})"
        )
    if config.spec.latents < 1:
        raise AcfError(f"expected at least one latent, got {config.spec.latents}")
    sampler = get(config.method).recipe.sampler
    if sampler and config.batch_size % sampler.multiple_of:
        raise AcfError(f"{config.method} needs batches of a multiple of {sampler.multiple_of}, got {config.batch_size}")
    if len(train) < config.batch_size:
        raise AcfError(
            f"the training part of the data has {len(train)} transitions, "
            f"less than one batch of {config.batch_size}: collect more"
        )
