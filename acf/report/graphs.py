"""The graphs that a method learned (DMS): what the next value of each latent hangs on. Figures and section."""

import numpy as np
from matplotlib.patches import Rectangle

from acf.report.colours import CHANCE
from acf.report.drawing import Drawing, heatmap, new_figure
from acf.report.html import svg_figure
from acf.report.look import Look, latent_label, latent_order

OPEN = 0.5  # from this probability on an edge is in the graph


def graph(look: Look, member: int, name: str) -> Drawing:
    """Edge probabilities of one graph, `state` or `action`: row i is what z'_i hangs on. Open edges are framed."""
    assert look.graphs is not None
    order = latent_order(look.members[member], look.n_latents)
    labels = [latent_label(look, member, k) for k in order]
    values = look.graphs[member][name][order]
    if name == "state":
        values, columns = values[:, order], labels
    else:
        columns = look.scores["action_names"]
    figure = new_figure(0.5 * len(columns) + 2.1, 0.34 * max(len(order), 2) + 1.5)
    axes = figure.subplots()
    heatmap(axes, values, [f"next {label}" for label in labels], columns)
    for i, j in np.argwhere(values > OPEN):
        frame = Rectangle((j - 0.46, i - 0.46), 0.92, 0.92, fill=False, edgecolor=CHANCE, linewidth=1.8)
        axes.add_patch(frame)
    axes.set_title(f"{name} → next state, {(values > OPEN).sum()} of {values.size} edges open", fontsize=8)
    rows = [(labels[i], columns[j], value, value > OPEN) for (i, j), value in np.ndenumerate(values)]
    title = f"Graph {name} → next state, {look.what}, seed {look.members[member]['seed']}"
    return Drawing(f"graph-{name}-member{member}", title, figure, ("next", "hangs on", "probability", "open"), rows)


def graphs(look: Look, drawings: dict[str, Drawing]) -> str:
    if look.graphs is None:
        return ""
    alt = "Probability of each edge of the learned graph; open edges are framed"
    members = "".join(
        f"<div class='member' data-member='{n}'><div class='matrices'>"
        f"{''.join(svg_figure(drawings[f'graph-{name}-member{n}'], alt) for name in of_member)}</div></div>"
        for n, of_member in enumerate(look.graphs)
    )
    return (
        "<h3>The learned graphs</h3><p>A row is what the next value of a latent hangs on: which latents before, and "
        "which actions. A number is the probability that the edge is open; a frame marks an edge that is in the graph. "
        f"Factors can be identified where each action has an edge to one latent.</p>{members}"
    )
