"""The whole protocol: held-out episodes, R² matrices, scores and their intervals, oracle and chance."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, Bool, Float, Int, Real

from acf.metrics.bootstrap import interval, r2_draws
from acf.metrics.checks import check_finite
from acf.metrics.dci import DCI, dci
from acf.metrics.mcc import mcc
from acf.metrics.regression import held_out_errors, r2_of
from acf.metrics.scores import SCORES, Scores, score

# More rows cost time and memory and no longer move R² in its third digit.
_MAX_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class CodeScores(Scores):
    """Everything about one code: a member's latents, the oracle's or chance's.

    `intervals` has the 95 % bootstrap interval over the test episodes of each score, under the matching found on all of
    them, and `r2_interval` those of the matrix.
    """

    intervals: dict[str, tuple[float, float] | None]
    r2_interval: Float[np.ndarray, "2 d K"]
    mcc_pearson: float
    mcc_spearman: float
    disentanglement: float
    completeness: float
    informativeness: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of each member, beside what they should be read against.

    `oracle` has the true factors in place of the latents: what a perfect encoder scores on this data, above 0 off the
    diagonal where factors depend on each other. `chance` has the first member's latents, shuffled against the factors.
    """

    members: tuple[CodeScores, ...]
    oracle: CodeScores
    chance: CodeScores


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
    split_rng, chance_rng, draw_rng = np.random.default_rng(seed).spawn(3)
    rows = _split(split_rng, episode)
    s_splits, test = [s[part] for part in rows], rows[2]

    # Oracle and chance are two more codes, whatever d and K are.
    codes = [*z, s, z[0, chance_rng.permutation(z.shape[1])]]
    columns = np.concatenate(codes, axis=1)
    errors = held_out_errors([columns[part] for part in rows], s_splits, seed=seed)
    ends = np.cumsum([code.shape[1] for code in codes])[:-1]
    r2s = np.split(r2_of(errors).astype(np.float32), ends)
    draws = np.split(r2_draws(draw_rng, errors, episode[test]), ends, axis=1)
    dcis = dci([[code[part] for part in rows] for code in codes], s_splits, seed=seed)
    *members, oracle, chance = (
        _code_scores(code[test], s[test], r2, of_code, dci, controllable)
        for code, r2, of_code, dci in zip(codes, r2s, draws, dcis, strict=True)
    )
    return Evaluation(tuple(members), oracle, chance)


def _code_scores(
    z: Real[np.ndarray, "n d"],
    s: Real[np.ndarray, "n K"],
    r2: Float[np.ndarray, "d K"],
    draws: Float[np.ndarray, "draws d K"],
    dci: DCI,
    controllable: Bool[Array | np.ndarray, " K"] | Sequence[bool] | None,
) -> CodeScores:
    own = score(r2, controllable)
    of_draws = [score(draw, controllable, matching=own.matching) for draw in draws]
    return CodeScores(
        **vars(own),
        intervals={name: _interval([getattr(draw, name) for draw in of_draws]) for name in SCORES},
        r2_interval=interval(draws),
        mcc_pearson=mcc(z, s, "pearson").value,
        mcc_spearman=mcc(z, s, "spearman").value,
        disentanglement=dci.disentanglement,
        completeness=dci.completeness,
        informativeness=dci.informativeness,
    )


def _interval(values: list[float | None]) -> tuple[float, float] | None:
    if None in values:
        return None
    low, high = interval(np.array(values, np.float64))
    return float(low), float(high)


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
