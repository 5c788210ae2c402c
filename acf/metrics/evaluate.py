"""The whole protocol: held-out episodes, R² matrices, scores and their intervals, oracle and chance."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float, Int, Real

from acf.metrics.bootstrap import interval, r2_draws
from acf.metrics.checks import check_finite
from acf.metrics.dci import DCI, dci, dci_of
from acf.metrics.mcc import mcc
from acf.metrics.regression import HeldOutErrors, held_out_errors, r2_of
from acf.metrics.scores import SCORES, Scores, score

# More rows cost time and memory and no longer move R² in its third digit.
_MAX_ROWS = 10_000

# Every episode is tested on in one of these, so that the split's seed does not choose what is tested.
_FOLDS = 3


class Fold(NamedTuple):
    """Rows of whole episodes; fit and validation have the same size in all folds."""

    fit: Int[np.ndarray, " n_fit"]
    val: Int[np.ndarray, " n_val"]
    test: Int[np.ndarray, " n_test"]


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
    more: tuple[CodeScores, ...] = ()
    """Of further codes of the same rows, each of its own width."""


def evaluate(
    z: Real[Array | np.ndarray, "members n d"],
    s: Real[Array | np.ndarray, "n K"],
    episode: Int[Array | np.ndarray, " n"],
    *,
    controllable: Bool[Array | np.ndarray, " K"] | Sequence[bool] | None = None,
    more: Sequence[Real[np.ndarray, "n _"]] = (),
    seed: int = 0,
) -> Evaluation:
    """Score the latents `z` of each member against the true factors `s`.

    Three times, regressors are fitted on a half of the episodes, stopped on a sixth and scored on the third that is
    left, another third each time; at most 10,000 random rows of each. All tested rows together make the scores. Rows
    that belong to no episode can each be given their own number. `more` codes are scored beside the members.
    """
    z, s, episode = np.asarray(z), np.asarray(s), np.asarray(episode)
    _check(z, s, episode)
    split_rng, chance_rng, draw_rng = np.random.default_rng(seed).spawn(3)
    folds = _folds(split_rng, episode)
    tested = np.concatenate([test for _, _, test in folds])

    # Oracle and chance are two more codes, whatever d and K are.
    codes = [*z, s, z[0, chance_rng.permutation(z.shape[1])], *(code.astype(np.float32) for code in more)]
    with ThreadPoolExecutor(1) as pool:  # on a GPU most of the time goes into compiling, which can be done side by side
        later = pool.submit(_dcis, codes, s, folds, seed)
        errors = _errors(np.concatenate(codes, axis=1), s, folds, seed)
        dcis = later.result()
    ends = np.cumsum([code.shape[1] for code in codes])[:-1]
    r2s = np.split(r2_of(errors).astype(np.float32), ends)
    draws = np.split(r2_draws(draw_rng, errors, episode[tested]), ends, axis=1)
    scored = [
        _code_scores(code[tested], s[tested], r2, of_code, dci, controllable)
        for code, r2, of_code, dci in zip(codes, r2s, draws, dcis, strict=True)
    ]
    oracle, chance, *rest = scored[len(z) :]
    return Evaluation(tuple(scored[: len(z)]), oracle, chance, tuple(rest))


def r2_matrices(
    z: Real[Array | np.ndarray, "members n d"],
    s: Real[Array | np.ndarray, "n K"],
    episode: Int[Array | np.ndarray, " n"],
    *,
    seed: int = 0,
) -> Float[np.ndarray, "members d K"]:
    """Each member's R² matrix, the very one that `evaluate` finds, at a small part of its cost."""
    z, s, episode = np.asarray(z), np.asarray(s), np.asarray(episode)
    _check(z, s, episode)
    folds = _folds(np.random.default_rng(seed).spawn(3)[0], episode)
    r2 = r2_of(_errors(np.concatenate([*z], axis=1), s, folds, seed))
    return r2.reshape(len(z), z.shape[2], -1).astype(np.float32)


def _errors(
    columns: Real[np.ndarray, "n L"], s: Real[np.ndarray, "n K"], folds: list[Fold], seed: int
) -> HeldOutErrors:
    """Of all folds, one after the other."""
    longest = max(len(test) for _, _, test in folds)
    parts = []
    for fit, val, test in folds:
        rows = fit, val, np.resize(test, longest)  # of one size, so that one program serves all folds
        errors = held_out_errors([columns[part] for part in rows], [s[part] for part in rows], seed=seed)
        parts.append(HeldOutErrors(errors.squared[: len(test)], errors.s[: len(test)], errors.known))
    # A pair that one fold cannot know, it explains nothing of: `squared` says so already.
    known = np.any([part.known for part in parts], axis=0)
    return HeldOutErrors(np.concatenate([p.squared for p in parts]), np.concatenate([p.s for p in parts]), known)


def _dcis(codes: list[Real[np.ndarray, "n _"]], s: Real[np.ndarray, "n K"], folds: list[Fold], seed: int) -> list[DCI]:
    """Of each code, from its importances and informativeness as means over the folds."""
    longest = max(len(test) for _, _, test in folds)
    of_folds = []
    for fit, val, test in folds:
        rows = fit, val, np.resize(test, longest)
        of_folds.append(dci([[code[part] for part in rows] for code in codes], [s[part] for part in rows], seed=seed))
    return [
        dci_of(np.mean([d.importance for d in of_code], axis=0), float(np.mean([d.informativeness for d in of_code])))
        for of_code in zip(*of_folds, strict=True)
    ]


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


def _folds(rng: np.random.Generator, episode: Int[np.ndarray, " n"]) -> list[Fold]:
    """Rows to fit, validate and test on: whole episodes, a half, a sixth and a third of them, at least one each."""
    names = np.unique(episode)
    if len(names) < 3:
        raise ValueError(f"need at least 3 episodes, to fit, validate and test on different ones; got {len(names)}")
    thirds = np.array_split(rng.permutation(names), _FOLDS)
    folds = []
    for n, test in enumerate(thirds):
        rest = np.concatenate([third for m, third in enumerate(thirds) if m != n])
        val, fit = np.split(rng.permutation(rest), [max(1, len(rest) // 4)])
        parts = (np.flatnonzero(np.isin(episode, part)) for part in (fit, val, test))
        folds.append([rng.permutation(rows)[:_MAX_ROWS] for rows in parts])
    sizes = np.min([[len(rows) for rows in fold] for fold in folds], axis=0)
    return [Fold(fit[: sizes[0]], val[: sizes[1]], test) for fit, val, test in folds]
