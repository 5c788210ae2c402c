"""The page: one HTML file that opens without network, reads without JavaScript and prints."""

from collections.abc import Sequence
from importlib.resources import files

from acf import __version__
from acf.report import action_sections, factor_sections, latent_sections, score_sections
from acf.report.drawing import Drawing
from acf.report.graphs import graph, graphs
from acf.report.groups import Group, group
from acf.report.html import escape, score_cell, svg_figure, table
from acf.report.look import Look
from acf.report.run_figures import (
    action_effect_map,
    action_maps,
    training_curves,
    traversal_means,
    traversal_samples,
)
from acf.report.score_figures import bars, per_factor, r2_heatmaps, scatter

KICKER = "<p class='kicker'>What was learned</p>"  # how every page of runs begins


def draw(look: Look) -> list[Drawing]:
    """Every figure of one run."""
    members = range(len(look.members))
    drawings = [training_curves(look)]
    if look.has_factors:
        drawings += [r2_heatmaps(look), per_factor(look), *(scatter(look, n) for n in members)]
    for n in members:
        strips = look.traversals[n]
        drawings += [traversal_means(look, n, strips), traversal_samples(look, n, strips), action_maps(look, n)]
        drawings += [action_effect_map(look, n)] if look.effects else []
        drawings += [graph(look, n, name) for name in look.graphs[n]] if look.graphs else []
    return drawings


def page(looks: Sequence[Look], drawings: dict[str, list[Drawing]]) -> tuple[str, list[Drawing]]:
    """The whole file, and the figures that compare the runs."""
    groups = group(looks)
    comparison = [bars(groups)] if groups else []
    title = looks[0].what if len(looks) == 1 else f"{len(looks)} runs compared"
    body = [_head(looks)]
    if len(looks) > 1:
        body.append(_comparison(looks, groups, comparison))
    for n, look in enumerate(looks):
        body.append(_run(look, {drawing.name: drawing for drawing in drawings[look.name]}, n, alone=len(looks) == 1))
    body.append(foot())
    return whole(title, "\n".join(body)), comparison


def whole(title: str, body: str) -> str:
    """A file that needs no other."""
    text = _asset("page.html")
    parts = {"title": escape(title), "style": _asset("page.css"), "script": _asset("page.js"), "body": body}
    for name, value in parts.items():
        text = text.replace(f"{{{{ {name} }}}}", value)
    return text


def _asset(name: str) -> str:
    return (files("acf.report") / "assets" / name).read_text()


def is_page(text: str) -> bool:
    """Whether `page` wrote it."""
    return KICKER in text


def _head(looks: Sequence[Look]) -> str:
    if len(looks) == 1:
        return f"<header>{KICKER}<h1>{escape(looks[0].what)}</h1></header>"
    links = "".join(
        f"<li><a href='#run-{n}'>{escape(look.what)}</a> <small>{escape(look.name)}</small></li>"
        for n, look in enumerate(looks)
    )
    return f"<header>{KICKER}<h1>{len(looks)} runs compared</h1><nav><ul>{links}</ul></nav></header>"


def _comparison(looks: Sequence[Look], groups: list[Group], comparison: list[Drawing]) -> str:
    left_out = [look.name for look in looks if not look.has_factors]
    why = f"<p>Without true factors, and so without R²: {escape(', '.join(left_out))}.</p>" if left_out else ""
    if not groups:
        return f"<section><h2>Comparison</h2>{why}</section>"
    columns = ("domain", "method", "seeds", "diag", "off-diag", "oracle: diag", "off-diag", "chance: diag", "off-diag")
    rows = [
        (
            escape(g.domain),
            escape(g.label),
            str(len(g.members)),
            score_cell(*g.mean_std("diag"), seeds=len(g.members)),
            score_cell(*g.mean_std("off_diag"), seeds=len(g.members)),
            *(f"{g.level(kind, score):.3f}" for kind in ("oracle", "chance") for score in ("diag", "off_diag")),
        )
        for g in groups
    ]
    return (
        "<section class='comparison'><h2>Comparison</h2>"
        "<p>Left: how much a latent tells about a factor that is not its own. Right: how much it tells about its own. "
        "The green line is what the true factors themselves score on this data, the dotted one is chance; error bars "
        "are the standard deviation over seeds.</p>"
        f"{svg_figure(comparison[0], 'Bars of the off-diagonal and diagonal score of every method and domain')}"
        f"{table(columns, rows)}{why}</section>"
    )


def _run(look: Look, drawings: dict[str, Drawing], number: int, *, alone: bool) -> str:
    found = factor_sections.factors_found(look)
    parts = [
        "" if alone else f"<h2>{escape(look.what)} <small>{escape(look.name)}</small></h2>",
        score_sections.summary(look),
        _chooser(look, number),
        found if look.for_factors else "",
        latent_sections.traversals(look),
        score_sections.r2_matrices(look),
        score_sections.scatters(look, drawings),
        score_sections.per_factor(look, drawings),
        action_sections.actions(look),
        graphs(look, drawings),
        "" if look.for_factors else found,
        score_sections.all_scores(look),
        f"<h3>Training</h3>{svg_figure(drawings['training-curves'], 'Each term of the loss over training')}",
        latent_sections.settings(look),
    ]
    return f"<section class='run' id='run-{number}' data-run='{escape(look.name)}'>{''.join(parts)}</section>"


def _chooser(look: Look, number: int) -> str:
    """Only with several members, and only where scripts run."""
    if len(look.members) == 1:
        return ""
    options = "".join(f"<option value='{n}'>seed {m['seed']}</option>" for n, m in enumerate(look.members))
    return (
        f"<p class='chooser needs-script'><label for='member-{number}'>Show the latents of </label>"
        f"<select id='member-{number}' class='choose-member'>{options}</select></p>"
    )


def foot() -> str:
    return (
        "<footer><h3>How to read the scores</h3><p>A small network predicts each true factor from each latent alone, "
        "on episodes that training never saw; R² is how much of the factor's variance it explains there. Each latent "
        "is matched to one factor. <b>diag</b> is the mean R² of the matched pairs (1 is best), <b>off-diag</b> the "
        "mean of each latent's largest R² with any <em>other</em> factor (0 is best). Where factors depend on each "
        "other even a perfect encoder leaves something there: the <b>oracle</b>, the true factors in place of the "
        "latents, shows how much. <b>Chance</b> is the level of shuffled pairs. Intervals hold 95 % of test sets drawn "
        f"again, episode by episode.</p><p class='made'>Made by acf-rl {__version__}.</p></footer>"
    )
