"""The section of the page about what actions do."""

import numpy as np

from acf.report.frames import data_uri, png
from acf.report.html import escape, heat_table
from acf.report.look import Look, latent_label, latent_order

MOVES = 0.5  # of the states: from here on a sentence says that an action moves a latent


def actions(look: Look) -> str:
    members = "".join(
        f"<div class='member' data-member='{n}'>{_maps(look, n)}{_effects(look, n)}</div>"
        for n in range(len(look.members))
    )
    if look.effects is None:
        why = (
            f"The method {escape(look.scores['method'])} has no energy for each latent and action, so there is no "
            "score difference to show; the map below is of the latents themselves."
        )
    else:
        why = (
            "The score difference is how strongly, by the trained energies, an action pushes a latent away from where "
            "it would go by itself. Where each action pushes only one latent (1-sparsity 1), factors are identified."
        )
    return f"<h3>What the actions do</h3><p>{why}</p>{members}"


def _maps(look: Look, n: int) -> str:
    member, names = look.members[n], look.scores["action_names"]
    order = latent_order(member, look.n_latents)
    labels = [latent_label(look, n, k) for k in order]
    found = member["actions"]
    maps = ""
    if "score_difference" in found:
        differences = np.array(found["score_difference"])[order]
        caption = (
            f"Score difference<br><small>1-sparsity {found['sparsity']:.3f}, ideal 1, "
            f"chance {found['sparsity_chance']:.3f}</small>"
        )
        top = max(float(differences.max()), 1e-9)
        maps += heat_table(f"score-difference-member{n}", caption, differences, labels, names, keys=order, top=top)
    moved = np.array(found["movement"])[order]
    caption = "Latents moved<br><small>mean step, in units of the latent's spread</small>"
    top = max(float(moved.max()), 1e-9)
    maps += heat_table(f"movement-member{n}", caption, moved, labels, names, keys=order, top=top)
    if look.has_factors:
        true = np.array(look.scores["oracle"]["actions"]["movement"])
        caption = "Oracle: true factors moved<br><small>the same for the true factors</small>"
        top = max(float(true.max()), 1e-9)
        maps += heat_table(f"movement-oracle{n}", caption, true, look.factor_names, names, top=top)
    return f"<div class='matrices'>{maps}</div>"


def _effects(look: Look, n: int) -> str:
    """The action-effect map: which latent each action moves, in which states."""
    if look.effects is None:
        return ""
    pictures, names, noop = look.effects[n], look.scores["action_names"], look.scores["noop"]
    moved = np.array(look.members[n]["actions"]["moved"])
    order = latent_order(look.members[n], look.n_latents)
    head = "".join(f"<th scope='col'>{escape(latent_label(look, n, k))}</th>" for k in order)
    lines = []
    for a in range(len(names)):
        if a == noop:
            continue
        cells = "".join(_effect_cell(pictures.get((a, k)), float(moved[k, a])) for k in order)
        rest = max(1 - float(moved[:, a].sum()), 0)
        lines.append(f"<tr><th scope='row'>{escape(names[a])}</th>{cells}<td class='none'>{rest:.0%}</td></tr>")
    return (
        f"<p>{_sentence(look, n, moved)} Below, the share of held-out states in which the action moves that latent "
        "most, and the mean frame of those states (brightness stretched): where the action acts.</p>"
        f"<div class='wide'><table class='effects' data-effects='{n}'><thead><tr><td></td>{head}"
        f"<th scope='col'>none</th></tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _effect_cell(picture: np.ndarray | None, share: float) -> str:
    if picture is None:
        return f"<td class='none'>{share:.0%}</td>"
    image = f"<img src='{data_uri(png(picture))}' alt='mean frame of these states'>"
    return f"<td style='opacity:{0.35 + 0.65 * share:.2f}'>{image}<br>{share:.0%}</td>"


def _sentence(look: Look, n: int, moved: np.ndarray) -> str:
    """`up, down move z0 → y; left, right move z1 → x.`"""
    names = look.scores["action_names"]
    parts = []
    for k in latent_order(look.members[n], look.n_latents):
        movers = [names[a] for a in range(len(names)) if moved[k, a] >= MOVES]
        if movers:
            verb = "moves" if len(movers) == 1 else "move"
            parts.append(f"<b>{escape(', '.join(movers))}</b> {verb} {escape(latent_label(look, n, k))}")
    return f"In most states {'; '.join(parts)}." if parts else "No action moves one latent in most states."
