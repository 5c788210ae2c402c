"""Latent traversals without a decoder: what real frames look like as one latent goes from low to high."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, UInt8

from acf.report.frames import to_rgb

BINS = 11
SAMPLES = 4


@dataclass(frozen=True, eq=False)
class Traversal:
    """One latent in equal steps from its 1st to its 99th percentile; steps that no frame falls in are left out."""

    values: Float[np.ndarray, " B"]
    """Mean of the latent in each step."""
    counts: Int[np.ndarray, " B"]
    means: Float[np.ndarray, "B h w 3"]
    """Mean observation."""
    samples: UInt8[np.ndarray, "B S h w 3"]
    """Random observations; fewer than `SAMPLES` different ones repeat."""
    factor_means: Float[np.ndarray, "B K"] | None
    factor_stds: Float[np.ndarray, "B K"] | None


def traverse(
    z: Float[np.ndarray, " n"],
    frames: UInt8[np.ndarray, "n H W C"],
    factors: Float[np.ndarray, "n K"] | None,
    rng: np.random.Generator,
) -> Traversal:
    """The traversal of one latent over some frames."""
    low, high = np.quantile(z, [0.01, 0.99])
    step = np.clip((z - low) / max(high - low, 1e-9) * BINS, 0, BINS - 1).astype(int)
    rows = [np.flatnonzero(step == b) for b in range(BINS)]
    rows = [of_bin for of_bin in rows if len(of_bin)]
    rgb = to_rgb(frames)
    return Traversal(
        values=np.array([z[of_bin].mean() for of_bin in rows]),
        counts=np.array([len(of_bin) for of_bin in rows]),
        means=np.stack([rgb[of_bin].mean(axis=0) for of_bin in rows]),
        samples=np.stack([rgb[rng.choice(of_bin, SAMPLES, replace=len(of_bin) < SAMPLES)] for of_bin in rows]),
        factor_means=None if factors is None else np.stack([factors[of_bin].mean(axis=0) for of_bin in rows]),
        factor_stds=None if factors is None else np.stack([factors[of_bin].std(axis=0) for of_bin in rows]),
    )
