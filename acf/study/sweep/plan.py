"""What a sweep is asked to do: everything that decides its results, checked, as plain data (`plan.json`)."""

import dataclasses
import json
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from acf.errors import AcfError
from acf.files import check_own, write_atomic
from acf.methods import get
from acf.study.sweep.objectives import OBJECTIVES, Objective
from acf.terminal import errors
from acf.training.config import complete_hparams, differing
from acf.training.presets import Preset
from acf.training.ranges import Range

FORMAT = 1
Sampler = Literal["random", "tpe"]


@dataclass(frozen=True)
class Plan:
    data: dict[str, Any]
    """`domain`, or `path` and `hash` of a data set."""
    method: str
    preset: Preset
    ranges: dict[str, Range]
    samples: int
    seeds: int
    seed: int
    """Of the sampling, and the first of the members' seeds."""
    members: int
    """That train at once, at most."""
    objective: Objective
    sampler: Sampler
    prune: bool
    with_preset: bool
    """Whether the preset's own settings are tried too."""
    latents: int | None
    earlier: tuple[int, ...] = ()
    """How many samples it had before each time that it was extended."""

    @property
    def member_seeds(self) -> range:
        return range(self.seed, self.seed + self.seeds)

    @property
    def maximise(self) -> bool:
        return OBJECTIVES[self.objective].maximise

    @property
    def first_epochs(self) -> int:
        """After which a pruned search keeps the better half."""
        return max(1, self.preset.epochs // 4)

    def to_json(self) -> dict[str, Any]:
        return json.loads(json.dumps(dataclasses.asdict(self)))  # as it comes back: tuples are lists

    @staticmethod
    def from_json(found: dict[str, Any]) -> "Plan":
        ranges = {name: Range(*ends) for name, ends in found["ranges"].items()}
        earlier = tuple(found.get("earlier", ()))  # older plans have none
        preset = Preset(**found["preset"])
        preset = replace(preset, hparams=complete_hparams(get(found["method"]), preset.hparams))
        return Plan(**found | {"preset": preset, "ranges": ranges, "earlier": earlier})


def check(plan: Plan) -> None:
    """Everything that can be wrong before any data is seen."""
    method = get(plan.method)
    for name, value in (("samples", plan.samples), ("seeds", plan.seeds)):
        if value < 1:
            raise AcfError(f"expected --{name} of at least 1, got {value}")
    if not 0 <= plan.seed < 2**31 - plan.seeds:
        raise AcfError(f"expected --seed from 0 to 2^31 - 1, got {plan.seed}")
    if plan.latents is not None and plan.latents < 1:
        raise AcfError(f"expected --latents of at least 1, got {plan.latents}")
    if plan.members < plan.seeds:
        raise AcfError(f"expected --population of at least the {plan.seeds} seeds of one sample, got {plan.members}")
    if plan.objective == "udr" and plan.seeds < 2:
        raise AcfError("--objective udr is the agreement between seeds: expected --seeds of at least 2, got 1")
    if plan.objective == "loss" and not method.nats:
        raise AcfError(f"{plan.method} does not say which of its terms are losses in nats: choose --objective udr")
    if plan.objective == "loss" and "noise" in plan.ranges:
        raise AcfError(
            "--objective loss cannot compare samples with different noise, which makes the same task easier or harder: "
            "leave noise out of --ranges, or choose another objective"
        )
    if plan.prune and plan.preset.epochs < 2:
        raise AcfError(f"--prune stops samples early: expected a preset of at least 2 epochs, got {plan.preset.epochs}")


def read(out: Path) -> tuple[Plan, str] | None:
    """The plan of the sweep in this directory and the name of its study; None where there is no sweep."""
    file = out / "plan.json"
    try:
        found = json.loads(file.read_text())
        if found.pop("format") != FORMAT:
            raise AcfError(f"{file} is of another version of acf-rl: use a matching one")
        return Plan.from_json({name: value for name, value in found.items() if name != "study"}), found["study"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, AcfError):
            raise
        raise AcfError(f"{file} is damaged ({error}): choose another --out") from None


def settle(asked: Plan, out: Path) -> Plan:
    """What to do in a directory, which holds one sweep: every later call must ask for the same, or for more samples."""
    found = read(out)
    if found is None:
        check_own(out, "a sweep", ("data", "selection", "preset.toml"))  # it begins with these
        return asked
    there = found[0]
    plan = replace(asked, earlier=there.earlier)
    changed = differing(there.to_json(), plan.to_json())
    if asked.samples > there.samples and len(changed) == 1:  # in nothing else
        return replace(asked, earlier=(*there.earlier, there.samples))
    if changed:
        raise AcfError(f"{out} holds another sweep ({'; '.join(changed)}). Choose another --out.")
    return plan


def write(plan: Plan, out: Path) -> str:
    """Write the plan down where it is new; returns the name of its study, which no other sweep shares."""
    found = read(out)
    if found is not None and found[0].to_json() == plan.to_json():
        return found[1]
    if found is not None:
        name, there = found[1], found[0].samples
        errors.print(f"{out} has {there} samples: {plan.samples - there} are added", soft_wrap=True)
    else:
        name = f"{out.name}-{secrets.token_hex(4)}"
    write_atomic(out / "plan.json", json.dumps({"format": FORMAT, "study": name, **plan.to_json()}, indent=2) + "\n")
    return name
