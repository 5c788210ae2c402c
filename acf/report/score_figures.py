"""Figures of scores: R² heatmaps, the paper's main bars, score per factor, scatter."""

import numpy as np

from acf.report.colours import CATEGORIES, CHANCE, ORACLE
from acf.report.drawing import Drawing, heatmap, new_figure, plain
from acf.report.groups import Group
from acf.report.look import Look, aligned_r2, matched_latent, mean_std

MAX_POINTS = 600


def r2_heatmaps(look: Look) -> Drawing:
    """Mean and standard deviation over seeds, beside the oracle and chance; row j is the latent matched to factor j."""
    names = look.factor_names
    mean, std = mean_std([aligned_r2(member) for member in look.members])
    panels = {
        "mean over seeds": mean,
        "std over seeds": std,
        "oracle": aligned_r2(look.scores["oracle"]),
        "chance": aligned_r2(look.scores["chance"]),
    }
    size = max(2.2, 0.45 * len(names) + 1.1)
    figure = new_figure(4 * size, size)
    rows = []
    for axes, (panel, values) in zip(figure.subplots(1, 4, sharey=True), panels.items(), strict=True):
        heatmap(axes, values, [f"latent of {name}" for name in names], names)
        axes.set_title(panel, fontsize=9)
        axes.set_xlabel("true factor", fontsize=8)
        rows += [(panel, names[i], names[j], value) for (i, j), value in np.ndenumerate(values)]
    figure.suptitle(f"R² of each factor from each latent: {look.what}", fontsize=10)
    columns = ("panel", "latent matched to", "factor", "r2")
    return Drawing("r2-heatmaps", f"R² heatmaps, {look.what}", figure, columns, rows)


def per_factor(look: Look) -> Drawing:
    """R² of each factor with its own latent: each seed a dot, the mean a bar, oracle and chance as marks."""
    names = look.factor_names
    K = len(names)
    own = np.array([_own(member, K) for member in look.members])
    mean, std = mean_std(list(own))
    oracle, chance = _own(look.scores["oracle"], K), _own(look.scores["chance"], K)
    figure = new_figure(max(3.6, 0.8 * K + 1.6), 2.8)
    axes = figure.subplots()
    x = np.arange(K)
    spread = {"yerr": std, "capsize": 3} if len(own) > 1 else {}
    axes.bar(x, mean, 0.6, color=CATEGORIES[0], alpha=0.85, label="mean over seeds", **spread)
    for n, values in enumerate(own):
        axes.plot(x + 0.18, values, ".", ms=5, color="#222222", label="a seed" if not n else None)
    _marks(axes, x, oracle, chance, 0.36)
    named = [name if ours else f"({name})" for name, ours in zip(names, _controllable(look), strict=True)]
    axes.set_xticks(x, named, rotation=30 if K > 4 else 0)
    axes.set(ylim=(0, 1.08), ylabel="R² with its latent")
    plain(axes)
    figure.legend(loc="outside upper center", ncols=4, fontsize=7, frameon=False)
    rows = [
        (name, "" if member is None else look.members[member]["seed"], kind, value)
        for kind, member, values in [
            *(("seed", n, values) for n, values in enumerate(own)),
            ("mean", None, mean),
            ("std", None, std),
            ("oracle", None, oracle),
            ("chance", None, chance),
        ]
        for name, value in zip(names, values, strict=True)
    ]
    return Drawing("per-factor", f"Score per factor, {look.what}", figure, ("factor", "seed", "kind", "r2"), rows)


def bars(groups: list[Group]) -> Drawing:
    """The paper's main figure: off-diagonal and diagonal of every method and domain, with oracle and chance."""
    domains = list(dict.fromkeys(group.domain for group in groups))
    labels = list(dict.fromkeys(group.label for group in groups))
    colour = {label: CATEGORIES[n % len(CATEGORIES)] for n, label in enumerate(labels)}
    figure = new_figure(min(max(6.5, 1 + 0.8 * len(groups)), 11), 3.0)
    sides = (("off_diag", "off-diagonal R² (0 is best)"), ("diag", "diagonal R² (1 is best)"))
    rows = []
    for axes, (score, title) in zip(figure.subplots(1, 2, sharey=True), sides, strict=True):
        ticks = []
        x = 0.0
        for domain in domains:
            of_domain = [group for group in groups if group.domain == domain]
            for group in of_domain:
                mean, std = group.mean_std(score)
                oracle, chance = group.level("oracle", score), group.level("chance", score)
                spread = {"yerr": std, "capsize": 3} if len(group.members) > 1 else {}
                axes.bar(x, mean, 0.8, color=colour[group.label], label=group.label, **spread)
                _marks(axes, np.array([x]), np.array([oracle]), np.array([chance]), 0.46)
                rows.append((domain, group.label, score, mean, std, len(group.members), oracle, chance))
                x += 1
            ticks.append((x - len(of_domain) / 2 - 0.5, domain))
            x += 0.8
        axes.set_xticks([place for place, _ in ticks], [name for _, name in ticks])
        axes.set_title(title, fontsize=10)
        axes.set(xlim=(-0.9, x - 0.9))
        plain(axes)
    figure.axes[0].set_ylim(0, max([1.08, *(mean + std + 0.03 for _, _, _, mean, std, *_ in rows)]))  # both share it
    found = dict(zip(*reversed(figure.axes[0].get_legend_handles_labels()), strict=True))
    columns = min(len(found), 8)
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns, fontsize=8, frameon=False)
    columns = ("domain", "method", "score", "mean", "std", "seeds", "oracle", "chance")
    return Drawing("bars", "Off-diagonal and diagonal scores", figure, columns, rows)


def scatter(look: Look, member: int) -> Drawing:
    """Each matched latent against its true factor."""
    assert look.factors is not None
    code, names = look.members[member], look.factor_names
    pairs = [(k, j) for j in range(len(names)) if (k := matched_latent(code, j)) is not None]
    z, s = look.z[member][:MAX_POINTS], look.factors[:MAX_POINTS]
    columns = min(4, len(pairs))
    lines = -(-len(pairs) // columns)
    figure = new_figure(2.1 * columns + 0.3, 2.1 * lines)
    grid = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes, (k, j) in zip(grid, pairs, strict=False):
        axes.plot(_apart(s[:, j]), z[:, k], "o", ms=2.2, mew=0, alpha=0.5, color=CATEGORIES[0])
        r2, best = code["r2"][k][j], look.scores["oracle"]["r2"][j][j]
        axes.set_title(f"R² {r2:.3f} (oracle {best:.3f}, chance {look.scores['chance']['diag']:.3f})", fontsize=6.5)
        axes.set_xlabel(f"true {names[j]}", fontsize=8)
        axes.set_ylabel(f"latent z{k}", fontsize=8)
        axes.tick_params(labelsize=7)
        plain(axes)
    for axes in grid[len(pairs) :]:
        axes.set_axis_off()
    rows = [(names[j], k, s[n, j], z[n, k]) for k, j in pairs for n in range(len(s))]
    title = f"Matched latents against true factors, {look.what}, seed {code['seed']}"
    return Drawing(f"scatter-member{member}", title, figure, ("factor", "latent", "s", "z"), rows)


def _apart(s: np.ndarray) -> np.ndarray:
    """Values of a factor with few levels, spread a little so that dots do not hide each other."""
    levels = np.unique(s)
    if len(levels) > 20 or len(levels) < 2:
        return s
    return s + np.random.default_rng(0).uniform(-0.25, 0.25, len(s)) * np.diff(levels).min()


def _own(code: dict, K: int) -> np.ndarray:
    """R² of each factor with its latent, NaN where it has none."""
    return np.diag(aligned_r2(code)) if K else np.zeros(0)


def _controllable(look: Look) -> list[bool]:
    return look.scores["controllable"] or [True] * len(look.factor_names)


def _marks(axes, x: np.ndarray, oracle: np.ndarray, chance: np.ndarray, half: float) -> None:
    axes.hlines(oracle, x - half, x + half, color=ORACLE, lw=2.5, label="oracle", zorder=3)
    axes.hlines(chance, x - half, x + half, color=CHANCE, lw=2.5, linestyle=(0, (1.5, 1)), label="chance", zorder=3)
