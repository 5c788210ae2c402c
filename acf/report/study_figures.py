"""Figures of a whole study; its main one is `acf.report.score_figures.bars`."""

import numpy as np

from acf.registry import own_part
from acf.report.drawing import Drawing, heatmap, new_figure
from acf.report.groups import Group
from acf.report.look import aligned_r2, mean_std


def method_heatmaps(groups: list[Group]) -> Drawing:
    """The R² matrices of every method on one domain: mean over seeds above, standard deviation below, oracle last."""
    first = groups[0].looks[0]
    domain, names = groups[0].domain, first.factor_names
    panels = {group.label: mean_std([aligned_r2(member) for member in group.members]) for group in groups}
    oracle = aligned_r2(first.scores["oracle"])
    panels["oracle"] = oracle, np.full_like(oracle, np.nan)
    size = max(1.9, 0.4 * len(names) + 0.5)
    figure = new_figure(len(panels) * size + 1.2, 2 * size + 0.6)
    grid = figure.subplots(2, len(panels), sharex=True, sharey=True, squeeze=False)
    rows = []
    for column, (label, matrices) in zip(grid.T, panels.items(), strict=True):
        column[0].set_title(label, fontsize=9)
        for axes, kind, values in zip(column, ("mean", "std"), matrices, strict=True):
            if label == "oracle" and kind == "std":
                axes.set_axis_off()
                continue
            heatmap(axes, values, [f"latent of {name}" for name in names], names)
            rows += [(label, kind, names[i], names[j], value) for (i, j), value in np.ndenumerate(values)]
    for axes, kind in zip(grid[:, 0], ("mean over seeds", "std over seeds"), strict=True):
        axes.set_ylabel(kind, fontsize=9)
    title = f"R² of each factor from each latent: {domain}"
    figure.suptitle(title, fontsize=10)
    columns = ("method", "panel", "latent matched to", "factor", "r2")
    return Drawing(f"heatmaps-{own_part(domain)}", title, figure, columns, rows)
