"""A contact sheet: random states of a domain as the encoder will see them, with their factors."""

import textwrap
from pathlib import Path

import jax
import numpy as np

from acf.domains.base import Domain

ROWS, COLUMNS = 3, 6
CAPTION_WIDTH = 27  # characters under a frame


def contact_sheet(domain: Domain, out: Path, *, start: str, seed: int = 0) -> None:
    """Write `ROWS` x `COLUMNS` states drawn from `start` as one PNG."""
    from matplotlib.figure import Figure

    keys = jax.random.split(jax.random.key(seed), ROWS * COLUMNS)
    states = jax.vmap(lambda key: domain.sample(key, start))(keys)
    frames = np.asarray(jax.vmap(domain.render)(states))
    factors = np.asarray(jax.vmap(domain.factors)(states))

    captions = [_caption(domain.factor_names, values) for values in factors]
    lines = max(caption.count("\n") + 1 for caption in captions)
    figure = Figure(figsize=(1.7 * COLUMNS, (1.5 + 0.17 * lines) * ROWS), layout="constrained")
    for axes, frame, caption in zip(figure.subplots(ROWS, COLUMNS).flat, frames, captions, strict=True):
        axes.imshow(frame, interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        axes.set_xlabel(caption, fontsize=7, family="monospace")
    figure.suptitle(f"{domain.name}: start states '{start}'", fontsize=10)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)


def _caption(names: tuple[str, ...], values: np.ndarray) -> str:
    # A name and its value stay on one line: no-break spaces inside, ordinary ones to break at.
    parts = [f"{name}\xa0{value:.3g}" for name, value in zip(names, values, strict=True)]
    return textwrap.fill(" ".join(parts), CAPTION_WIDTH)
