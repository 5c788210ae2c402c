"""Figures of one run that need no scores: training curves, traversals, what actions do."""

import numpy as np

from acf.report.colours import CATEGORIES
from acf.report.drawing import Drawing, heatmap, new_figure, plain
from acf.report.frames import stretch
from acf.report.look import Look, Scored, latent_label, latent_order
from acf.report.traversal import Traversal


def training_curves(look: Look) -> Drawing:
    """Every term of the loss: a line a member."""
    terms = list(look.curves)
    columns = min(4, len(terms))
    lines = -(-len(terms) // columns)
    figure = new_figure(2.4 * columns, 1.7 * lines)
    grid = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes, term in zip(grid, terms, strict=False):
        for n, member in enumerate(look.members):
            colour = CATEGORIES[n % len(CATEGORIES)]
            marker = "o" if len(look.steps) == 1 else ""  # a line of one point is not seen
            seed = f"seed {member['seed']}"
            axes.plot(look.steps, look.curves[term][:, n], lw=1, marker=marker, ms=2, color=colour, label=seed)
        axes.set_title(term, fontsize=8)
        axes.tick_params(labelsize=6)
        axes.ticklabel_format(axis="x", scilimits=(-3, 4))
        plain(axes)
    for axes in grid[len(terms) :]:
        axes.set_axis_off()
    figure.supxlabel("step", fontsize=8)
    if len(look.members) > 1:
        handles = grid[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper center", ncols=min(len(look.members), 6), fontsize=7, frameon=False)
    rows = [
        (term, member["seed"], int(step), value)
        for term, values in look.curves.items()
        for n, member in enumerate(look.members)
        for step, value in zip(look.steps, values[:, n], strict=True)
    ]
    return Drawing("training-curves", f"Training curves, {look.what}", figure, ("term", "seed", "step", "value"), rows)


def traversal_means(look: Scored, member: int, traversals: tuple[Traversal, ...]) -> Drawing:
    """A row a latent: the mean observation over frames whose latent lies in each step from low to high."""
    order = latent_order(look.members[member], look.n_latents)
    bright = stretch(np.concatenate([traversals[k].means for k in order]))
    ends = np.cumsum([len(traversals[k].values) for k in order])[:-1]
    strips = [np.concatenate(list(frames), axis=1) for frames in np.split(bright, ends)]
    return _strips(look, member, traversals, strips, "mean observation", f"traversal-mean-member{member}")


def traversal_samples(look: Scored, member: int, traversals: tuple[Traversal, ...]) -> Drawing:
    """A row a latent: one random observation among those whose latent lies in each step from low to high."""
    order = latent_order(look.members[member], look.n_latents)
    strips = [np.concatenate(list(traversals[k].samples[:, 0]), axis=1) for k in order]
    return _strips(look, member, traversals, strips, "random observations", f"traversal-samples-member{member}")


def _strips(
    look: Scored, member: int, traversals: tuple[Traversal, ...], strips: list[np.ndarray], what: str, name: str
) -> Drawing:
    order = latent_order(look.members[member], look.n_latents)
    figure = new_figure(9.5, 1.02 * len(order) + 0.5)
    grid = figure.subplots(len(order), 1, squeeze=False).ravel()
    rows = []
    for axes, k, strip in zip(grid, order, strips, strict=True):
        traversal = traversals[k]
        width = strip.shape[1] // len(traversal.values)
        axes.imshow(strip, interpolation="nearest")
        axes.set_xticks((np.arange(len(traversal.values)) + 0.5) * width, [f"{v:.2f}" for v in traversal.values])
        axes.set_yticks([])
        axes.tick_params(length=0, labelsize=6, pad=1)
        axes.set_ylabel(latent_label(look, member, k, "\n"), rotation=0, ha="right", va="center", fontsize=8)
        axes.spines[:].set_visible(False)
        axes.vlines(np.arange(1, len(traversal.values)) * width - 0.5, -0.5, len(strip) - 0.5, color="white", lw=2)
        rows += [
            (k, step, value, count, *([] if traversal.factor_means is None else traversal.factor_means[step]))
            for step, (value, count) in enumerate(zip(traversal.values, traversal.counts, strict=True))
        ]
    title = f"Traversals, {what}: {look.what}, seed {look.members[member]['seed']}"
    figure.suptitle(title, fontsize=9)
    columns = ("latent", "step", "value", "frames", *(f"mean {factor}" for factor in look.factor_names))
    return Drawing(name, title, figure, columns, rows)


def action_maps(look: Look, member: int) -> Drawing:
    """How far each action moves each latent (and each true factor), and the score differences where there are some."""
    actions, names = look.members[member]["actions"], look.scores["action_names"]
    order = latent_order(look.members[member], look.n_latents)
    labels = [latent_label(look, member, k) for k in order]
    panels = {"latents moved (in their spread)": (np.array(actions["movement"])[order], labels)}
    if look.has_factors:
        oracle = np.array(look.scores["oracle"]["actions"]["movement"])
        panels["oracle: true factors moved"] = (oracle, look.factor_names)
    if "score_difference" in actions:
        title = f"score difference, 1-sparsity {actions['sparsity']:.2f} (chance {actions['sparsity_chance']:.2f})"
        panels[title] = (np.array(actions["score_difference"])[order], labels)
    figure = new_figure((0.42 * len(names) + 2.1) * len(panels), 0.34 * max(len(order), 2) + 1.5)
    rows = []
    for axes, (title, (values, of_rows)) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        heatmap(axes, values, of_rows, names, top=max(float(values.max()), 1e-6))
        axes.set_title(title, fontsize=7.5)
        rows += [(title.split(",")[0], of_rows[i], names[a], value) for (i, a), value in np.ndenumerate(values)]
    title = f"What each action does, {look.what}, seed {look.members[member]['seed']}"
    return Drawing(f"actions-member{member}", title, figure, ("map", "row", "action", "value"), rows)


def action_effect_map(look: Look, member: int) -> Drawing:
    """Which latent each action moves, in which share of the states, and the mean frame of those states."""
    assert look.effects is not None
    pictures, names = look.effects[member], look.scores["action_names"]
    moved = np.array(look.members[member]["actions"]["moved"])
    order = latent_order(look.members[member], look.n_latents)
    acts = [a for a in range(len(names)) if a != look.scores["noop"]]
    figure = new_figure(0.95 * len(order) + 1.2, 1.05 * len(acts) + 0.6)
    grid = figure.subplots(len(acts), len(order), squeeze=False)
    for line, a in zip(grid, acts, strict=True):
        for axes, k in zip(line, order, strict=True):
            if (a, k) in pictures:
                axes.imshow(pictures[a, k], interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_color("#cccccc")
            axes.set_xlabel(f"{moved[k, a]:.0%}", fontsize=7, labelpad=2)
        line[0].set_ylabel(names[a], rotation=0, ha="right", va="center", fontsize=8)
    for axes, k in zip(grid[0], order, strict=True):
        axes.set_title(latent_label(look, member, k, "\n"), fontsize=8)
    title = f"States in which each action moves each latent, {look.what}, seed {look.members[member]['seed']}"
    figure.suptitle("states where the action moves the latent most", fontsize=8)
    rows = [(names[a], k, latent_label(look, member, k), moved[k, a]) for a in acts for k in order]
    columns = ("action", "latent", "label", "share of states")
    return Drawing(f"action-effects-member{member}", title, figure, columns, rows)
