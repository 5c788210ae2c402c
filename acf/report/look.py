"""What a report shows of one run, as plain arrays: figures and page are functions of this alone."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt8

from acf.report.traversal import Traversal

FOUND, PARTLY = 0.9, 0.5  # R² of a factor with its latent, from which on it is called so

EffectPictures = dict[tuple[int, int], UInt8[np.ndarray, "h w 3"]]  # (action, latent): mean frame of where it acts
# `state` and `action`: how probable it is that z'_i hangs on each latent, and on each action.
Graphs = dict[str, Float[np.ndarray, "d columns"]]


@dataclass(frozen=True, eq=False)
class Scored:
    """What the scores of a run tell, without its weights."""

    name: str
    """The run directory's, unlike that of every other run in the report."""
    scores: dict[str, Any]
    """As in `scores.json`."""
    settings: dict[str, Any]

    @property
    def members(self) -> list[dict[str, Any]]:
        return self.scores["members"]

    @property
    def has_factors(self) -> bool:
        return "oracle" in self.scores

    @property
    def what(self) -> str:
        return f"{self.scores['method']} on {self.scores['domain'] or self.name}"

    @property
    def factor_names(self) -> list[str]:
        return self.scores["factor_names"]

    @property
    def n_latents(self) -> int:
        return len(self.members[0]["actions"]["movement"])


@dataclass(frozen=True, eq=False)
class Look(Scored):
    steps: Int[np.ndarray, " T"]
    curves: dict[str, Float[np.ndarray, "T members"]]
    gallery: UInt8[np.ndarray, "n h w 3"]
    """Some held-out frames."""
    traversals: tuple[tuple[Traversal, ...], ...]
    """By member and latent."""
    z: Float[np.ndarray, "members n d"]
    """Latents of some held-out frames, for scatter plots."""
    factors: Float[np.ndarray, "n K"] | None
    """The true factors of the same frames."""
    effects: tuple[EffectPictures, ...] | None
    """By member; None for a method without energies."""
    graphs: tuple[Graphs, ...] | None
    """By member; None for a method that learns none."""
    for_factors: bool
    """Whether the method's latents are made for factors that can be certified: these then come first."""


def matched_latent(code: dict[str, Any], factor: int) -> int | None:
    """The latent that stands for a factor, where one does."""
    return code["matching"].index(factor) if factor in code["matching"] else None


def latent_order(member: dict[str, Any], n_latents: int) -> list[int]:
    """Latents in the order of the factors they stand for, those that stand for none last."""
    matching = member.get("matching", [-1] * n_latents)  # without true factors there is none
    return sorted(range(n_latents), key=lambda k: (matching[k] < 0, matching[k], k))


def latent_label(look: Scored, member: int, latent: int, arrow: str = " → ") -> str:
    """`z2 → taxi_x`; `z2 (taxi_x?)` where it is matched but tells little; `z2` where it stands for no factor."""
    code = look.members[member]
    factor = code["matching"][latent] if look.has_factors else -1
    if factor < 0:
        return f"z{latent}"
    name = look.factor_names[factor]
    return f"z{latent}{arrow}{name}" if code["r2"][latent][factor] >= PARTLY else f"z{latent}{arrow[:1]}({name}?)"


def aligned_r2(code: dict[str, Any]) -> Float[np.ndarray, "K K"]:
    """The R² matrix with row j that of the latent matched to factor j; NaN where there is none."""
    r2 = np.array(code["r2"])
    rows = [matched_latent(code, factor) for factor in range(r2.shape[1])]
    return np.stack([np.full(r2.shape[1], np.nan) if row is None else r2[row] for row in rows])


def mean_std(matrices: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Over those that have an entry; NaN where none has."""
    stacked = np.stack(matrices)
    known = ~np.isnan(stacked)
    n = known.sum(axis=0)
    mean = np.where(n, np.where(known, stacked, 0).sum(axis=0) / np.maximum(n, 1), np.nan)
    square = np.where(known, (stacked - mean) ** 2, 0).sum(axis=0) / np.maximum(n, 1)
    return mean, np.where(n, np.sqrt(square), np.nan)
