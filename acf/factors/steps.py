"""The elementary moves of a world, as vectors in latent space.

The changes of all latents together fall into few directions, one for each thing that can happen by itself. That holds
whatever copies and mixtures the latents are: a factor needs no latent of its own.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import fcluster, linkage

from acf.factors.moves import Moves

MOST = 3000  # changes that are clustered: memory and time grow with the square
SAME = 0.35  # of a unit: changes closer than this are the same step
WIDE = 0.8  # the same for worlds that move continuously; two steps at a right angle are 1.4 apart
RARE = 0.02  # of an action's changes: steps rarer than this are noise ...
FEWEST = 4  # ... and so are steps seen less often
LOUD = 1.5  # a step is this much longer than changes that are it usually stray from it: else it is noise
NEAREST = 0.8  # cosine: changes nearer to a direction than this are along it
OWN = 0.25  # of its length: a step that comes nearer to the span of others is no direction of its own


@dataclass(frozen=True, eq=False)
class Step:
    """A direction in which something moves, forth or back."""

    vector: Float[np.ndarray, " K"]
    actions: Float[np.ndarray, " A"]
    """The share of each action's changes that are this step."""

    @property
    def weight(self) -> float:
        return float(self.actions.max())


def find_steps(moves: Moves, n_actions: int, same: float = SAME, seed: int = 0) -> list[Step]:
    """Steps, the most usual first."""
    change, size = moves.change, np.linalg.norm(moves.change, axis=1)
    actions = moves.effective()
    if not actions:
        return []
    usual = np.array([np.median(size[moves.of_action(a)]) for a in actions])
    unit = float(np.median(usual))
    rng = np.random.default_rng(seed)
    picked = [
        rng.permutation(np.flatnonzero(moves.of_action(a) & (size > SAME * min(unit, own))))
        for a, own in zip(actions, usual, strict=True)
    ]
    picked = [rows[:most] for rows, most in zip(picked, _fair(np.array([len(r) for r in picked])), strict=True)]
    rows = np.concatenate(picked)
    if unit == 0 or len(rows) < 2:
        return []
    vectors = _one_way(change[rows])
    cluster = fcluster(linkage(vectors, "average"), same * unit, "distance")
    found = []
    for one in np.flatnonzero(np.bincount(cluster) >= FEWEST):
        own = cluster == one
        vector = np.median(vectors[own], axis=0)
        if np.linalg.norm(vector) < LOUD * np.median(np.linalg.norm(vectors[own] - vector, axis=1)):
            continue
        share = np.zeros(n_actions)
        for action, of_action in zip(actions, picked, strict=True):
            share[action] = (own & np.isin(rows, of_action)).sum() / max(len(of_action), 1)
        found.append(Step(vector, share))
    return [step for step in _joined(found, same * unit) if step.weight > RARE]


def independent(steps: list[Step]) -> list[Step]:
    """Steps in directions of their own, the most usual first; whole sums and multiples of others are left out."""
    chosen: list[Step] = []
    for step in steps:
        rest = step.vector - _in_span(step.vector, chosen)
        if np.linalg.norm(rest) > OWN * np.linalg.norm(step.vector):
            chosen.append(step)
    return chosen


def straightened(steps: list[Step], moves: Moves, times: int = 3) -> Float[np.ndarray, "m K"]:
    """Directions of a world with noise in every move: medians of all changes along them, not of one cluster's."""
    vectors = np.array([step.vector for step in steps])
    change = moves.change[moves.changed]
    length = np.linalg.norm(change, axis=1)
    for _ in range(times):
        own = np.linalg.norm(vectors, axis=1)
        cosine = (change @ vectors.T) / np.maximum(length[:, None] * own, 1e-12)
        best = np.abs(cosine).argmax(1)
        near = np.abs(cosine).max(1, initial=0) > NEAREST
        for n in range(len(vectors)):
            rows = near & (best == n) & (length > own[n] / 2)
            if rows.sum() >= FEWEST:
                vectors[n] = np.median(change[rows] * np.sign(cosine[rows, n])[:, None], axis=0)
    return vectors


def _in_span(vector: Float[np.ndarray, " K"], steps: list[Step]) -> Float[np.ndarray, " K"]:
    """The nearest sum of the steps, whole or not."""
    if not steps:
        return np.zeros_like(vector)
    basis = np.array([step.vector for step in steps]).T
    return basis @ np.linalg.lstsq(basis, vector, rcond=None)[0]


def _fair(counts: Int[np.ndarray, " A"]) -> Int[np.ndarray, " A"]:
    """How many of each to take, `MOST` in all: what rare actions leave goes to the others."""
    most, left, out = MOST, len(counts), np.zeros_like(counts)
    for n in np.argsort(counts, kind="stable"):
        out[n] = min(counts[n], most // left)
        most, left = most - out[n], left - 1
    return out


def _one_way(vectors: Float[np.ndarray, "n K"]) -> Float[np.ndarray, "n K"]:
    """Forth and back made one: the largest entry is positive."""
    largest = np.abs(vectors).argmax(1)
    return vectors * np.sign(vectors[np.arange(len(vectors)), largest])[:, None]


def _joined(steps: list[Step], near: float) -> list[Step]:
    """Clusters that are the same up to their sign, the most usual first."""
    out: list[Step] = []
    for step in sorted(steps, key=lambda step: -step.weight):
        for n, other in enumerate(out):
            apart = min(np.linalg.norm(other.vector - step.vector), np.linalg.norm(other.vector + step.vector))
            if apart < near:
                out[n] = Step(other.vector, other.actions + step.actions)
                break
        else:
            out.append(step)
    return out
