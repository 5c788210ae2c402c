"""The elementary moves of a world, as vectors in latent space.

The changes of all latents together fall into few directions, one for each thing that can happen by itself. That holds
whatever copies and mixtures the latents are: a factor needs no latent of its own.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.cluster.hierarchy import fcluster, linkage

from acf.factors.moves import Moves

MOST = 3000  # changes that are clustered: memory and time grow with the square
SAME = 0.35  # of a unit: changes closer than this are the same step
RARE = 0.02  # of an action's changes: steps rarer than this are noise


@dataclass(frozen=True, eq=False)
class Step:
    """A direction in which something moves, forth or back."""

    vector: Float[np.ndarray, " K"]
    actions: Float[np.ndarray, " A"]
    """The share of each action's changes that are this step."""

    @property
    def weight(self) -> float:
        return float(self.actions.max())


@dataclass(frozen=True, eq=False)
class Basis:
    """Steps of which all others are whole sums."""

    vectors: Float[np.ndarray, "m K"]
    carries: tuple[tuple[int, int], ...] = ()
    """(p, q): what moves along p is sometimes carried along by a move of q, in one step."""


def find_steps(moves: Moves, n_actions: int, seed: int = 0) -> tuple[list[Step], float]:
    """Steps, the most usual first, and the unit: the usual length of a change."""
    change, size = moves.change, np.linalg.norm(moves.change, axis=1)
    actions = moves.effective()
    if not actions:
        return [], 0.0
    unit = float(np.median([np.median(size[moves.of_action(a)]) for a in actions]))
    rng = np.random.default_rng(seed)
    picked = []
    for action in actions:
        rows = np.flatnonzero(moves.of_action(action) & (size > SAME * unit))
        picked.append(rng.permutation(rows)[: MOST // len(actions)])
    rows = np.concatenate(picked)
    if len(rows) < 2:
        return [], unit
    vectors = _one_way(change[rows])
    cluster = fcluster(linkage(vectors, "average"), SAME * unit, "distance")
    found = []
    for one in np.unique(cluster):
        own = cluster == one
        share = np.zeros(n_actions)
        for action, of_action in zip(actions, picked, strict=True):
            share[action] = (own & np.isin(rows, of_action)).sum() / max(len(of_action), 1)
        found.append(Step(np.median(vectors[own], axis=0), share))
    return _joined([step for step in found if step.weight > RARE], unit), unit


def choose_basis(steps: list[Step], unit: float) -> Basis:
    """Steps that are no whole sums of more usual ones; of a step that carries another, what it adds."""
    chosen: list[Step] = []
    for step in steps:
        if not chosen or _remainder(step.vector, chosen) > 0.4 * unit:
            chosen.append(step)
    vectors, carries = [step.vector for step in chosen], []
    for p, carried in enumerate(chosen):
        for q, carrier in enumerate(chosen):
            if p == q or (q, p) in carries or np.minimum(carried.actions, carrier.actions).sum() < 0.1:
                continue  # no action that does now the one, now the other
            times = vectors[p] @ carrier.vector / (carrier.vector @ carrier.vector)
            rest = vectors[p] - np.round(times) * carrier.vector
            whole = abs(abs(times) - 1) < 0.3
            if whole and SAME * unit < np.linalg.norm(rest) < 0.95 * np.linalg.norm(vectors[p]):
                vectors[p] = rest
                carries.append((p, q))
    return Basis(np.array(vectors).reshape(len(vectors), -1), tuple(carries))


def _one_way(vectors: Float[np.ndarray, "n K"]) -> Float[np.ndarray, "n K"]:
    """Forth and back made one: the largest entry is positive."""
    largest = np.abs(vectors).argmax(1)
    return vectors * np.sign(vectors[np.arange(len(vectors)), largest])[:, None]


def _joined(steps: list[Step], unit: float) -> list[Step]:
    """Clusters that are the same up to their sign, the most usual first."""
    out: list[Step] = []
    for step in sorted(steps, key=lambda step: -step.weight):
        for n, other in enumerate(out):
            apart = min(np.linalg.norm(other.vector - step.vector), np.linalg.norm(other.vector + step.vector))
            if apart < SAME * unit:
                out[n] = Step(other.vector, other.actions + step.actions)
                break
        else:
            out.append(step)
    return out


def _remainder(vector: Float[np.ndarray, " K"], steps: list[Step]) -> float:
    """What is left of it after the nearest whole sum of the steps."""
    basis = np.array([step.vector for step in steps]).T
    times = np.linalg.lstsq(basis, vector, rcond=None)[0]
    return float(np.linalg.norm(basis @ np.round(times) - vector))
