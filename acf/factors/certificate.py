"""A certificate, without true factors, that a code of whole numbers has the factors exactly.

If in every transition that changes the picture exactly one number changes, by one; if the states of an episode have
different numbers; and if what stands still keeps its numbers: then the numbers are the controllable factors, up to the
names of levels, chains that may hold two factors and cycles that may be two (`docs/lattice.md` has the proof).
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from acf.factors.moves import Moves

ONE_STEP, NO_STEP, INJECTIVE, STILL = 0.995, 0.005, 0.999, 0.995  # what a certificate asks for
PAIRS = 40_000
Z95 = 1.96


@dataclass(frozen=True)
class Share:
    """Of cases, with its 95 % interval."""

    value: float
    low: float
    high: float

    @staticmethod
    def of(value: float, cases: int) -> "Share":
        """Wilson's interval, which is right near 0 and 1 too."""
        if not cases or not np.isfinite(value):
            return Share(float("nan"), 0.0, 1.0)
        n, z2 = cases, Z95**2
        middle = (value + z2 / (2 * n)) / (1 + z2 / n)
        half = Z95 * np.sqrt(value * (1 - value) / n + z2 / (4 * n * n)) / (1 + z2 / n)
        return Share(float(value), max(0.0, float(middle - half)), min(1.0, float(middle + half)))


@dataclass(frozen=True)
class Certificate:
    """What was counted on held-out episodes, each action counting alike, and the verdict."""

    certified: bool
    because: tuple[str, ...]
    """Why not; empty where it is."""
    one_step: Share
    """Changes of the picture that are one step along one axis, or along one and what it carries."""
    no_step: Share
    injective: Share
    """Pairs of different pictures of one episode that have different numbers."""
    still: Share
    """Pictures that stay as they are and keep their numbers."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def certify(
    moves: Moves,
    levels: Int[np.ndarray, "T m"],
    levels_next: Int[np.ndarray, "T m"],
    carries: tuple[tuple[int, int], ...] = (),
    seed: int = 0,
) -> Certificate:
    change = levels_next - levels
    cases = int(moves.changed.sum())
    at_rest = ~moves.changed
    different = _pairs_told_apart(moves, levels, np.random.default_rng(seed))
    one = Share.of(moves.mean(is_one_step(change, carries)), cases)
    none = Share.of(moves.mean((change == 0).all(1)), cases)
    injective = Share.of(float(different.mean()) if len(different) else float("nan"), len(different))
    still = Share.of(float((change[at_rest] == 0).all(1).mean()) if at_rest.any() else 1.0, max(int(at_rest.sum()), 1))
    because = [
        text
        for wrong, text in (
            (not levels.shape[1], "no steps were found: nothing that actions do repeats itself"),
            (
                not one.value >= ONE_STEP,
                f"only {one.value:.1%} of what actions change is one step (needs {ONE_STEP:.1%})",
            ),
            (not none.value <= NO_STEP, f"{none.value:.1%} of what actions change is no step (at most {NO_STEP:.1%})"),
            (not injective.value >= INJECTIVE, f"{1 - injective.value:.2%} of an episode's states look the same"),
            (not still.value >= STILL, f"{1 - still.value:.1%} of what stands still moves"),
        )
        if wrong
    ]
    return Certificate(not because, tuple(because), one, none, injective, still)


def is_one_step(change: Int[np.ndarray, "T m"], carries: tuple[tuple[int, int], ...] = ()) -> Bool[np.ndarray, " T"]:
    """One number by one; or two by one, of which the second carries the first (a taxi its passenger)."""
    total = np.abs(change).sum(1)
    one = total == 1
    for p, q in carries:
        one |= (total == 2) & (np.abs(change[:, p]) == 1) & (np.abs(change[:, q]) == 1)
    return one


def _pairs_told_apart(
    moves: Moves, levels: Int[np.ndarray, "T m"], rng: np.random.Generator
) -> Bool[np.ndarray, " pairs"]:
    """Of random pairs of states of one episode whose pictures differ, whether their numbers differ too."""
    order = np.argsort(moves.episode, kind="stable")
    _, first, count = np.unique(moves.episode[order], return_index=True, return_counts=True)
    episode = rng.choice(len(first), PAIRS, p=count / count.sum())
    a, b = (order[first[episode] + (rng.random(PAIRS) * count[episode]).astype(int)] for _ in range(2))
    differ = moves.picture[a] != moves.picture[b]
    return (levels[a[differ]] != levels[b[differ]]).any(1)


def direction_share(change: Float[np.ndarray, "T m"]) -> Float[np.ndarray, " T"]:
    """How much of each change lies along one axis: 1 if it is all along one, 1 / m if it is spread evenly."""
    size = np.abs(change)
    return size.max(1) / np.maximum(size.sum(1), 1e-12)
