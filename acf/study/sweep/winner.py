"""What comes out of a sweep: the winner as a preset file, and all samples as a table and a picture."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from acf.files import write_atomic
from acf.study.sweep.objectives import OBJECTIVES
from acf.study.sweep.plan import Plan
from acf.study.sweep.samples import Outcome, Sample
from acf.training.preset_file import write_preset


@dataclass(frozen=True)
class Tried:
    sample: Sample
    outcome: Outcome
    epochs: int
    state: Literal["complete", "pruned", "diverged"]


def best(plan: Plan, tried: list[Tried]) -> Tried | None:
    """Of the samples that were trained to the end; the first of equals."""
    ended = [one for one in tried if one.state == "complete"]

    def rank(one: Tried) -> tuple[float, int]:
        assert one.outcome.objective is not None
        return (-one.outcome.objective if plan.maximise else one.outcome.objective), one.sample.number

    return min(ended, key=rank, default=None)


def write_results(out: Path, plan: Plan, tried: list[Tried], winner: Tried | None) -> None:
    """`trials.csv`, `trials.png` and, where a sample won, `best.toml`, last: it says of how many samples they are."""
    from acf.report.trials import Trial, draw_trials

    drawing = draw_trials(
        [
            Trial(
                one.sample.number,
                one.state,
                one.epochs,
                one.outcome.objective,
                one.outcome.seeds,
                {name: (plan.preset.hparams | one.sample.hparams)[name] for name in plan.ranges},
            )
            for one in tried
        ],
        seeds=list(plan.member_seeds),
        ranges=plan.ranges,
        objective=OBJECTIVES[plan.objective].title,
        best=winner.sample.number if winner else None,
    )
    write_atomic(out / f"{drawing.name}.csv", drawing.csv())
    write_atomic(out / f"{drawing.name}.png", drawing.png)
    if winner is not None:
        found = replace(plan.preset, hparams=plan.preset.hparams | winner.sample.hparams)
        write_preset(out / "best.toml", found, plan.method, _about(plan, tried, winner))


def are_written(out: Path, plan: Plan, tried: list[Tried]) -> bool:
    """Whether the results of just these samples lie there already."""
    file = out / "best.toml"
    return file.exists() and _of_what(plan, tried) in file.read_text()


def _about(plan: Plan, tried: list[Tried], winner: Tried) -> str:
    name = "the preset's own settings" if winner.sample.number == 0 else f"sample {winner.sample.number}"
    lines = [
        f"{_of_what(plan, tried)}: {name}.",
        f"Objective: {OBJECTIVES[plan.objective].title},",
        f"mean of {plan.seeds} seeds on validation episodes: {winner.outcome.objective:.4f}.",
    ]
    for one in tried:
        if one.sample.number == 0 and one.outcome.objective is not None:
            lines.append(f"The preset that the sweep started from: {one.outcome.objective:.4f}.")
    lines.append("The best of many is flattered by chance: score it again on test episodes, with other seeds.")
    return "\n".join(lines)


def _of_what(plan: Plan, tried: list[Tried]) -> str:
    where = plan.data.get("domain") or plan.data["path"]
    return f"The best of {len(tried)} samples of `acf sweep {where} --method {plan.method}`"
