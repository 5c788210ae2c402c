"""A contact sheet: random states of a domain as the encoder will see them, with their factors."""

from pathlib import Path

import jax
import numpy as np

from acf.domains.base import Domain

ROWS, COLUMNS = 3, 6


def contact_sheet(domain: Domain, out: Path, *, start: str, seed: int = 0) -> None:
    """Write `ROWS` x `COLUMNS` states drawn from `start` as one PNG."""
    from matplotlib.figure import Figure

    keys = jax.random.split(jax.random.key(seed), ROWS * COLUMNS)
    states = jax.vmap(lambda key: domain.sample(key, start))(keys)
    frames = np.asarray(jax.vmap(domain.render)(states))
    factors = np.asarray(jax.vmap(domain.factors)(states))

    lines = -(-len(domain.factor_names) // 2)  # of caption under a frame, two factors each
    figure = Figure(figsize=(1.7 * COLUMNS, (1.5 + 0.17 * lines) * ROWS), layout="constrained")
    for axes, frame, values in zip(figure.subplots(ROWS, COLUMNS).flat, frames, factors, strict=True):
        axes.imshow(frame, interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        axes.set_xlabel(_caption(domain.factor_names, values), fontsize=7, family="monospace")
    figure.suptitle(f"{domain.name}: start states '{start}'", fontsize=10)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)


def _caption(names: tuple[str, ...], values: np.ndarray) -> str:
    parts = [f"{name} {value:.3g}" for name, value in zip(names, values, strict=True)]
    return "\n".join("  ".join(parts[k : k + 2]) for k in range(0, len(parts), 2))
