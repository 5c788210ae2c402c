"""A small search with the toy method, and looking at what it left."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest

from acf.study.sweep import plan as plans
from acf.study.sweep import sweep
from acf.study.sweep.ledger import Ledger, open_journal
from acf.study.sweep.plan import Plan
from acf.training.presets import Preset
from acf.training.ranges import Range

RANGES = {"lr": (1e-4, 1e-2), "noise": (0.0, 0.5)}
TOY: dict[str, Any] = {"method": "toy", "preset": "quick", "ranges": RANGES, "objective": "udr", "seeds": 2}
ARGS = ["--method", "toy", "--objective", "udr", "--seeds", "2"]
ARGS += ["--ranges", "lr", "1e-4", "1e-2", "noise", "0", "0.5"]

PLAN = Plan(
    data={"domain": "lamp"},
    method="toy",
    preset=Preset(epochs=8, hparams={"lr": 1e-3}),
    ranges={name: Range(*ends) for name, ends in RANGES.items()},
    samples=5,
    seeds=2,
    seed=0,
    members=4,
    objective="udr",
    sampler="random",
    prune=False,
    with_preset=True,
    latents=None,
)


def plan(**changes: Any) -> Plan:
    return replace(PLAN, **changes)


def search(data: Path, out: Path, **changes: Any):
    """Five samples and the preset in three populations."""
    return sweep(data, out, **{**TOY, "samples": 5, "population": 4, **changes})


@contextmanager
def stopped_in_the_fourth_trial(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is done in here stops before the fourth trial is ended in the study."""
    end, count = Ledger.end, 0

    def stop(*args: Any) -> None:
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        end(*args)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Ledger, "end", stop)
        yield


def trials(out: Path, storage: Any = None) -> list[tuple[Any, ...]]:
    """What the study holds, in its order, without times."""
    found = plans.read(out)
    assert found is not None
    study = optuna.load_study(study_name=found[1], storage=storage or open_journal(out / "study.journal"))
    return [(t.number, t.state.name, t.values, t.params, t.user_attrs, t.intermediate_values) for t in study.trials]
