"""The whole protocol: held-out episodes, R² matrices, scores, oracle and chance."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, Bool, Int, Real

from acf.metrics.regression import check_finite, r2_matrix
from acf.metrics.scores import Scores, score

# More rows cost time and memory and no longer move R² in its third digit.
_MAX_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of each member, beside what they should be read against.

    `oracle` has the true factors in place of the latents: what a perfect encoder scores on this data, above 0 off the
    diagonal where factors depend on each other. `chance` has the first member's latents, shuffled against the factors.
    """

    members: tuple[Scores, ...]
    oracle: Scores
    chance: Scores


def evaluate(
    z: Real[Array | np.ndarray, "members n d"],
    s: Real[Array | np.ndarray, "n K"],
    episode: Int[Array | np.ndarray, " n"],
    *,
    controllable: Bool[Array | np.ndarray, " K"] | Sequence[bool] | None = None,
    seed: int = 0,
) -> Evaluation:
    """Score the latents `z` of each member against the true factors `s`.

    The regressors are fitted on 60 % of the episodes, stopped on 20 % and scored on 20 %, at most 10,000 random rows
    of each. Rows that belong to no episode can each be given their own number.
    """
    z, s, episode = np.asarray(z), np.asarray(s), np.asarray(episode)
    _check(z, s, episode)
    split_rng, chance_rng = np.random.default_rng(seed).spawn(2)
    fit, val, test = _split(split_rng, episode)

    # Oracle and chance ride along as some more latents, whatever d and K are.
    members, n, d = z.shape
    K = s.shape[1]
    columns = np.concatenate([*z, s, z[0, chance_rng.permutation(n)]], axis=1)
    r2 = r2_matrix(columns[fit], s[fit], columns[val], s[val], columns[test], s[test], seed=seed)
    of_members, of_oracle, of_chance = np.split(r2, [members * d, members * d + K])
    return Evaluation(
        members=tuple(score(r2, controllable) for r2 in of_members.reshape(members, d, K)),
        oracle=score(of_oracle, controllable),
        chance=score(of_chance, controllable),
    )


def _check(
    z: Real[np.ndarray, "members n_z d"], s: Real[np.ndarray, "n_s K"], episode: Int[np.ndarray, " n_e"]
) -> None:
    for name, x, axes in (("z", z, "members, n, d"), ("s", s, "n, K"), ("episode", episode, "n")):
        if x.ndim != len(axes.split(", ")) or not x.size:
            raise ValueError(f"{name} must be [{axes}] and not empty, got shape {x.shape}")
    if not z.shape[1] == len(s) == len(episode):
        raise ValueError(f"z has {z.shape[1]} rows, s has {len(s)}, episode has {len(episode)}")
    for m, z_member in enumerate(z):
        check_finite(f"z of member {m}", z_member, "latent")
    check_finite("s", s, "factor")


def _split(rng: np.random.Generator, episode: Int[np.ndarray, " n"]) -> list[Int[np.ndarray, " _"]]:
    """Rows to fit, validate and test on: whole episodes, 60/20/20 and at least one each."""
    names = np.unique(episode)
    if len(names) < 3:
        raise ValueError(f"need at least 3 episodes, to fit, validate and test on different ones; got {len(names)}")
    held_out = max(1, round(0.2 * len(names)))
    parts = np.split(rng.permutation(names), [len(names) - 2 * held_out, len(names) - held_out])
    return [rng.permutation(np.flatnonzero(np.isin(episode, part)))[:_MAX_ROWS] for part in parts]
