"""The samples of a sweep: a table of all, and the objective against each hyperparameter."""

from typing import NamedTuple

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


def draw_trials(trials: list[Trial], *, seeds: list[int], log: set[str], objective: str, best: int | None) -> Drawing:
    """A panel a hyperparameter; the winner and the preset are marked, samples that were stopped early are grey."""
    names = list(trials[0].hparams)
    figure = new_figure(2.4 * len(names) + 0.6, 2.8)
    for axes, name in zip(figure.subplots(1, len(names), sharey=True, squeeze=False)[0], names, strict=True):
        for trial in sorted(trials, key=lambda trial: (trial.sample == best, trial.sample == 0)):
            if trial.objective is not None:
                colour, size, label = _mark(trial, best)
                axes.plot(trial.hparams[name], trial.objective, "o", ms=size, color=colour, label=label)
        axes.set_xscale("log" if name in log else "linear")
        axes.set_xlabel(name, fontsize=8)
        axes.tick_params(labelsize=7)
        plain(axes)
    figure.axes[0].set_ylabel("objective", fontsize=8)
    figure.suptitle(objective, fontsize=9)
    shown = dict(zip(*reversed(figure.axes[0].get_legend_handles_labels()), strict=True))
    if shown:
        figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=4, fontsize=7, frameon=False)
    columns = ("sample", "state", "epochs", "objective", *(f"seed {seed}" for seed in seeds), *names)
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
