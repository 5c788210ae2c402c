"""What each action does to each latent: by the trained energies, and as it was seen to happen."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, Float, Int, Real

from acf.metrics.checks import check_columns, check_same_rows

# A score difference below this share of the typical largest one is no effect.
NO_EFFECT = 0.2


@dataclass(frozen=True, eq=False)
class ActionEffects:
    """Sparsity of the score differences `∂/∂z'_k [E_k(z'_k, a, z) - E_k(z'_k, a₀, z)]`, the theorem's condition 4.

    `sparsity` is the share of all score difference that lies in the largest entry of its transition and action: 1 when
    every action moves at most one latent in every state, near 1/K when it is spread evenly. `moved` says in which share
    of the transitions latent k is the one that action a moves most, and moves at all.
    """

    mean: Float[np.ndarray, "K A"]
    moved: Float[np.ndarray, "K A"]
    sparsity: float
    chance: float
    """The sparsity of the same score differences, dealt out at random."""
    sparsity_of_action: Float[np.ndarray, " A"]
    """The same for each action; 0 for one without any score difference, such as the no-op."""


def action_effects(scores: Float[Array | np.ndarray, "N K A"], noop: int) -> ActionEffects:
    """Of the scores `∂E_k(z'_k, a, z) / ∂z'_k` at some transitions, for every action at each.

    >>> scores = np.zeros((4, 2, 3))  # action 1 moves latent 0; action 2 moves both alike
    >>> scores[:, 0, 1] = scores[:, :, 2] = 6.0
    >>> effects = action_effects(scores, noop=0)
    >>> effects.mean.tolist(), effects.sparsity_of_action.tolist()
    ([[0.0, 6.0, 6.0], [0.0, 0.0, 6.0]], [0.0, 1.0, 0.5])
    """
    g = score_differences(scores, noop)
    K = g.shape[1]
    largest, total = g.max(axis=1).sum(axis=0), g.sum(axis=(0, 1))
    most = strongest(g)
    effects = np.delete(g, noop, axis=2)
    dealt_out = np.random.default_rng(0).permutation(effects.ravel()).reshape(effects.shape)
    return ActionEffects(
        mean=g.mean(axis=0),
        moved=np.stack([(most == k).mean(axis=0) for k in range(K)]),
        sparsity=_sparsity(effects),
        chance=_sparsity(dealt_out),
        sparsity_of_action=np.where(total > 0, largest / np.where(total > 0, total, 1), 0),
    )


def _sparsity(g: Float[np.ndarray, "N K B"]) -> float:
    total = g.sum()
    return float(g.max(axis=1).sum() / total) if total else 0.0


def score_differences(scores: Float[Array | np.ndarray, "N K A"], noop: int) -> Float[np.ndarray, "N K A"]:
    """Absolute differences to the no-op, whose own column is 0."""
    scores = np.asarray(scores, np.float64)
    if scores.ndim != 3 or not scores.size:
        raise ValueError(f"scores must be [transitions, latents, actions] and not empty, got shape {scores.shape}")
    if not 0 <= noop < scores.shape[2]:
        raise ValueError(f"noop must be one of the {scores.shape[2]} actions, got {noop}")
    bad = ~np.isfinite(scores).all(axis=(1, 2))
    if bad.any():
        raise ValueError(f"scores are not finite at {bad.sum()} of {len(scores)} transitions")
    return np.abs(scores - scores[:, :, [noop]])


def strongest(g: Float[np.ndarray, "N K A"]) -> Int[np.ndarray, "N A"]:
    """The latent that each action moves most at each transition, -1 where it moves none."""
    largest = g.max(axis=1)
    typical = np.quantile(largest, 0.95)
    return np.where(largest > NO_EFFECT * typical, g.argmax(axis=1), -1)


def movement(
    z: Real[Array | np.ndarray, "N d"],
    z_next: Real[Array | np.ndarray, "N d"],
    action: Int[Array | np.ndarray, " N"],
    n_actions: int,
) -> Float[np.ndarray, "d A"]:
    """Mean |z'_k - z_k| under each action, in units of the latent's spread; 0 for an action never taken.

    >>> z = np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 1.0], [2.0, 1.0]])
    >>> movement(z, z + np.array([[0, 0], [2, 0], [0, 0], [-2, 0]]), np.array([0, 1, 0, 1]), 2).tolist()
    [[0.0, 2.0], [0.0, 0.0]]
    """
    z, z_next, action = check_columns("z", z, "latent"), check_columns("z_next", z_next, "latent"), np.asarray(action)
    check_same_rows(z=z, z_next=z_next, action=action)
    spread = z.std(axis=0)
    change = np.abs(z_next - z) / np.where(spread > 1e-6, spread, np.inf)
    taken = action[:, None] == np.arange(n_actions)
    return change.T @ taken / np.maximum(taken.sum(axis=0), 1)
