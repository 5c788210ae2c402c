"""The data that a sweep may see.

A run keeps a tenth of the episodes for its scores. A sweep that selected on these would make the winner's scores too
good, so it never sees them: it works on the training part alone, saved as a data set of its own (`selection`). Its runs
split that once more, and what they hold out are the validation episodes.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from acf.data import collect
from acf.data.transitions import Transitions
from acf.errors import AcfError
from acf.study.sweep.objectives import check_validation
from acf.study.sweep.plan import Plan
from acf.terminal import counting, status
from acf.training.run_dir import RunDir


def prepare(plan: Plan, out: Path) -> Path:
    """Collect where need be, and set the test episodes aside."""
    selection = out / "selection"
    if not selection.exists():
        whole = _whole(plan, out)
        train, _ = RunDir(out).split(whole)
        check_enough(plan, train)
        with status("setting the test episodes aside"):
            replace(train, source=whole.source | {"part": "train"}).save(selection)
    return selection


def check_enough(plan: Plan, train: Transitions) -> None:
    training, validation = RunDir(Path()).split(train)
    if len(training) < plan.preset.batch_size:
        raise AcfError(
            f"the part of the data that samples are trained on has {len(training)} transitions, "
            f"less than one batch of {plan.preset.batch_size}: collect more"
        )
    episodes = len(np.unique(validation.episode[validation.i]))
    check_validation(plan.objective, len(validation), episodes, train.factors is not None, plan.preset.batch_size)


def _whole(plan: Plan, out: Path) -> Transitions:
    domain, preset = plan.data.get("domain"), plan.preset
    if domain is None:
        return Transitions.open(plan.data["path"])
    with counting(f"collecting {domain}") as progress:
        return collect(
            domain,
            preset.transitions,
            start=preset.start,
            horizon=preset.horizon,
            out=RunDir(out).data,
            progress=progress,
        )
