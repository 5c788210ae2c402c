"""Sections of the page about scores."""

from typing import Any

import numpy as np

from acf.metrics import SCORES
from acf.report.drawing import Drawing
from acf.report.html import escape, heat_table, png_figure, svg_figure, table
from acf.report.look import FOUND, PARTLY, Look, aligned_r2, latent_label, latent_order, matched_latent, mean_std

NO_FACTORS = (
    "<p class='lead'>This data has no true factors, so there is nothing to score the latents against: no R², no "
    "oracle. What can be shown is what the latents hold and what the actions do to them.</p>"
)
MORE = {
    "mcc_pearson": "MCC, Pearson",
    "mcc_spearman": "MCC, Spearman",
    "disentanglement": "DCI disentanglement",
    "completeness": "DCI completeness",
    "informativeness": "DCI informativeness",
}
LABELS = {
    "diag": "diag",
    "off_diag": "off-diag",
    "diag_controllable": "diag, controllable",
    "off_diag_controllable": "off-diag, controllable",
} | MORE


def summary(look: Look) -> str:
    """What a reader should know after a minute."""
    if not look.has_factors:
        return NO_FACTORS
    K, names = len(look.factor_names), look.factor_names
    own, _ = mean_std([np.diag(aligned_r2(member)) for member in look.members])
    found = [names[j] for j in range(K) if own[j] >= FOUND]
    missed = [names[j] for j in range(K) if not own[j] >= PARTLY]
    lead = f"<b>{len(found)} of {K} factors found.</b> "
    copied = [name for name in found if _latents_that_hold(look, names.index(name)) > 1]
    single = [name for name in found if name not in copied]
    lead += f"A single latent holds {_and(single)}. " if single else "No factor is held by a single latent. "
    lead += f"Several latents hold {_and(copied)}. " if copied else ""
    lead += f"Less than half of {_and(missed)} is in its latent. " if missed else ""
    diverged = [str(m["seed"]) for m in look.members if m["diverged_at"] >= 0]
    lead += f"Training diverged for seed {_and(diverged)}." if diverged else ""
    cards = _score_card(look, "diag", "diag", "how much latents tell about their own factor; 1 is best")
    cards += _score_card(look, "off_diag", "off-diag", "how much they tell about any other; 0 is best")
    if look.scores.get("diag_controllable") and not all(look.scores["controllable"]):
        cards += _score_card(
            look, "diag_controllable", "diag, controllable", "over the factors that actions can change"
        )
    cards += _sparsity_card(look)
    return f"<p class='lead'>{lead}</p><div class='cards'>{cards}</div>{_factors(look, own)}"


def _latents_that_hold(look: Look, factor: int) -> int:
    """In the seed that has most of them."""
    return max(int((np.asarray(member["r2"])[:, factor] >= FOUND).sum()) for member in look.members)


def _score_card(look: Look, score: str, label: str, meaning: str) -> str:
    value, members = look.scores[score], look.members
    if len(members) > 1:
        spread = f"± {value['std']:.3f} over {len(members)} seeds"
    else:
        low, high = members[0]["intervals"][score]
        spread = f"95 % interval {low:.3f} to {high:.3f}"
    levels = {kind: look.scores[kind][score] for kind in ("oracle", "chance")}
    return _card(label, value["mean"], spread, ("oracle", levels["oracle"]), levels["chance"], meaning)


def _sparsity_card(look: Look) -> str:
    """Of the score differences; nothing for a method without energies."""
    found = [member["actions"] for member in look.members if "sparsity" in member["actions"]]
    if not found:
        return ""
    values, chance = [actions["sparsity"] for actions in found], [actions["sparsity_chance"] for actions in found]
    spread = f"± {np.std(values):.3f} over {len(values)} seeds" if len(values) > 1 else "of the score differences"
    meaning = "how far each action pushes one latent only, by the energies; 1 is best"
    return _card("1-sparsity", float(np.mean(values)), spread, ("ideal", 1.0), float(np.mean(chance)), meaning)


def _card(label: str, value: float, spread: str, best: tuple[str, float], chance: float, meaning: str) -> str:
    name, goal = best
    return (
        f"<div class='card'><p class='label'>{label}</p><p class='big'>{value:.3f}</p>"
        f"<p class='spread'>{spread}</p><div class='gauge'>"
        f"<i class='fill' style='width:{_percent(value)}'></i>"
        f"<i class='tick oracle' style='left:{_percent(goal)}'></i>"
        f"<i class='tick chance' style='left:{_percent(chance)}'></i></div>"
        f"<p class='levels'><span class='oracle'>{name} {goal:.3f}</span> "
        f"<span class='chance'>chance {chance:.3f}</span></p><p class='meaning'>{meaning}</p></div>"
    )


def _percent(value: float) -> str:
    return f"{100 * min(max(value, 0), 1):.1f}%"


def _factors(look: Look, own: np.ndarray) -> str:
    """One line a factor: which latent, how well, what else it tells, and both of the oracle."""
    oracle, chance = aligned_r2(look.scores["oracle"]), np.diag(aligned_r2(look.scores["chance"]))
    aligned, _ = mean_std([aligned_r2(member) for member in look.members])
    rows = []
    for j, name in enumerate(look.factor_names):
        latents = [matched_latent(member, j) for member in look.members]
        which = ", ".join("–" if k is None else f"z{k}" for k in latents)
        state = "found" if own[j] >= FOUND else "partly" if own[j] >= PARTLY else "missed"
        fixed = look.scores["controllable"] and not look.scores["controllable"][j]
        rows.append(
            (
                escape(name) + (" <small>(no action controls it)</small>" if fixed else ""),
                f"<span class='state {state}'>{state}</span>",
                which,
                _number(own[j]),
                _other(look, aligned[j], j),
                f"{oracle[j, j]:.3f}",
                _other(look, oracle[j], j),
                _number(chance[j]),
            )
        )
    columns = (
        "factor",
        "",
        "latent" + (" of each seed" if len(look.members) > 1 else ""),
        "R²",
        "most of another factor",
        "oracle's R²",
        "oracle's most of another",
        "chance",
    )
    return table(columns, rows)


def _other(look: Look, row: np.ndarray, j: int) -> str:
    others = np.where(np.arange(len(row)) == j, -1, np.nan_to_num(row, nan=-1))
    if others.max() < 0:
        return "–"
    name = f" <small>{escape(look.factor_names[others.argmax()])}</small>" if others.max() >= 0.01 else ""
    return f"{others.max():.3f}{name}"


def _number(value: float | None) -> str:
    return "–" if value is None or value != value else f"{value:.3f}"


def r2_matrices(look: Look) -> str:
    if not look.has_factors:
        return ""
    names = look.factor_names
    own = list(range(len(names)))
    mean, std = mean_std([aligned_r2(member) for member in look.members])
    members = "".join(
        f"<div class='member' data-member='{n}'>{_member_matrix(look, n)}</div>" for n in range(len(look.members))
    )
    rows = [f"latent of {name}" for name in names]
    others = ""
    if len(look.members) > 1:
        seeds = f"over {len(look.members)} seeds"
        others += heat_table("r2-mean", f"Mean {seeds}", mean, rows, names, outlined=own)
        others += heat_table("r2-std", f"Standard deviation {seeds}", std, rows, names, outlined=own)
    others += heat_table(
        "r2-oracle", "Oracle: true factors as latents", aligned_r2(look.scores["oracle"]), names, names
    )
    chance = aligned_r2(look.scores["chance"])
    others += heat_table("r2-chance", "Chance: shuffled pairs", chance, rows, names)
    return (
        "<h3>Which latent knows which factor</h3><p>R² of each true factor (columns) from each latent alone (rows); "
        "the outlined cell is the factor it is matched to, with a question mark where it tells less than half of it. "
        "Perfect is dark in the outlined cells and, elsewhere, as pale as the oracle. "
        "<span class='needs-script'>Point at a cell for its numbers.</span></p>"
        f"<div class='matrices'>{members}{others}</div>"
    )


def _member_matrix(look: Look, n: int) -> str:
    member, oracle = look.members[n], look.scores["oracle"]
    order = latent_order(member, look.n_latents)
    low, high = (np.array(end)[order] for end in member["r2_interval"])
    r2 = np.array(member["r2"])[order]
    matched = [member["matching"][k] for k in order]

    def tip(i: int, j: int) -> str:
        latent, factor, own = order[i], look.factor_names[j], matched[i]
        floor = f"; oracle {oracle['r2'][own][j]:.3f}" if own >= 0 else ""
        return f"z{latent} and {factor}: R² {r2[i, j]:.4f}, 95 % {low[i, j]:.3f} to {high[i, j]:.3f}{floor}"

    return heat_table(
        f"r2-member{n}",
        f"Seed {member['seed']}",
        r2,
        [latent_label(look, n, k) for k in order],
        look.factor_names,
        tips=[[tip(i, j) for j in range(r2.shape[1])] for i in range(len(order))],
        keys=order,
        outlined=matched,
    )


def scatters(look: Look, drawings: dict[str, Drawing]) -> str:
    if not look.has_factors:
        return ""
    alt = "Each matched latent against its true factor; a thin line is a perfect code, a cloud is none"
    figures = "".join(
        f"<div class='member' data-member='{n}'>{png_figure(drawings[f'scatter-member{n}'], alt)}</div>"
        for n in range(len(look.members))
    )
    return f"<h3>Latents against the truth</h3><p>A thin line, of whatever shape, is a perfect code.</p>{figures}"


def per_factor(look: Look, drawings: dict[str, Drawing]) -> str:
    if not look.has_factors:
        return ""
    alt = "R² of each factor with its latent, beside oracle and chance"
    note = "In brackets: factors that no action controls." if not all(look.scores["controllable"]) else ""
    return f"<h3>Score per factor</h3><p>{note}</p>{svg_figure(drawings['per-factor'], alt)}"


def all_scores(look: Look) -> str:
    if not look.has_factors:
        return ""
    rows = [(f"seed {member['seed']}", *_score_cells(member)) for member in look.members]
    if len(look.members) > 1:
        rows.append(("mean ± std", *(_mean_std(look.scores.get(name)) for name in LABELS)))
    rows += [(kind, *_score_cells(look.scores[kind])) for kind in ("oracle", "chance")]
    return f"<h3>All scores</h3>{table(['', *LABELS.values()], rows)}"


def _score_cells(code: dict[str, Any]) -> list[str]:
    cells = []
    for name in LABELS:
        ends = code["intervals"].get(name) if name in SCORES else None
        cells.append(
            _number(code.get(name)) + (f"<br><small class='ends'>{ends[0]:.3f} – {ends[1]:.3f}</small>" if ends else "")
        )
    return cells


def _mean_std(value: dict[str, float] | None) -> str:
    return "–" if value is None else f"{value['mean']:.3f} ± {value['std']:.3f}"


def _and(names: list[str]) -> str:
    """`x`, `x and y`, `x, y and z`."""
    shown = [f"<b>{escape(name)}</b>" for name in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
