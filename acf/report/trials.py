"""The samples of a sweep: a table of all, and the objective against each hyperparameter."""

from collections.abc import Mapping
from typing import NamedTuple

from matplotlib.ticker import NullFormatter

from acf.report.colours import CATEGORIES, CHANCE, ORACLE
from acf.report.drawing import Drawing, new_figure, plain


class Trial(NamedTuple):
    sample: int
    """0: the preset that the search started from."""
    state: str
    epochs: int
    objective: float | None
    seeds: tuple[float | None, ...]
    hparams: dict[str, float]


def draw_trials(
    trials: list[Trial],
    *,
    seeds: list[int],
    ranges: Mapping[str, tuple[float, float]],
    objective: str,
    best: int | None,
) -> Drawing:
    """A panel a hyperparameter; the winner and the preset are marked, samples that were stopped early are grey."""
    figure = new_figure(1.9 * len(ranges) + 0.8, 2.8)
    panels = figure.subplots(1, len(ranges), sharey=True, squeeze=False)[0]
    for axes, (name, (low, high)) in zip(panels, ranges.items(), strict=True):
        for trial in sorted(trials, key=lambda trial: (trial.sample == best, trial.sample == 0)):
            if trial.objective is not None:
                colour, size, label = _mark(trial, best)
                axes.plot(trial.hparams[name], trial.objective, "o", ms=size, color=colour, label=label, clip_on=False)
        if low > 0:
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
        values = [trial.hparams[name] for trial in trials if trial.hparams[name] > 0 or low == 0]
        axes.set_xlim(min([low, *values]), max([high, *values]))
        axes.set_xlabel(name, fontsize=8)
        axes.tick_params(labelsize=7)
        plain(axes)
    figure.axes[0].set_ylabel("objective", fontsize=8)
    figure.suptitle(objective, fontsize=9)
    shown = dict(zip(*reversed(figure.axes[0].get_legend_handles_labels()), strict=True))
    if shown:
        figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=4, fontsize=7, frameon=False)
    columns = ("sample", "state", "epochs", "objective", *(f"seed {seed}" for seed in seeds), *ranges)
    rows = [
        (trial.sample, trial.state, trial.epochs, trial.objective, *trial.seeds, *trial.hparams.values())
        for trial in sorted(trials)
    ]
    return Drawing("trials", "samples of the sweep", figure, columns, rows)


def _mark(trial: Trial, best: int | None) -> tuple[str, float, str]:
    if trial.sample == best:
        return ORACLE, 7, "the best" if trial.sample else "the best: the preset"
    if trial.sample == 0:
        return CHANCE, 7, "the preset"
    return ("#BBBBBB", 3, "stopped early") if trial.state == "pruned" else (CATEGORIES[0], 4, "a sample")
