"""From a finished run to `scores.json`."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from acf.errors import AcfError
from acf.factors import Factors
from acf.files import write_atomic
from acf.metrics import CodeScores, action_effects, evaluate, movement, summary
from acf.study.factors import Latents, Sample, exactness, find_member_factors, keep_factors, latents_of, samples_of
from acf.study.held_out import HeldOut, open_run
from acf.training.compiled import keep_compiled_programs
from acf.training.run_dir import RunDir

FORMAT = 2


def evaluate_run(run: str | Path, *, seed: int = 0) -> dict[str, Any]:
    """Score every member on the held-out episodes, write `scores.json` and return what is in it."""
    keep_compiled_programs()
    if seed < 0:
        raise AcfError(f"expected an evaluation seed of at least 0, got {seed}")
    return evaluate_held_out(open_run(run), seed=seed)


def evaluate_held_out(held_out: HeldOut, *, seed: int = 0) -> dict[str, Any]:
    """`evaluate_run` for a run that is open already."""
    config, data = held_out.config, held_out.data
    members: list[dict[str, Any]] = [
        {"seed": member.seed, "diverged_at": trained.diverged_at}
        for member, trained in zip(config.members, held_out.members, strict=True)
    ]
    scores = {
        "format": FORMAT,
        "domain": data.source.get("domain"),
        "method": config.method,
        "evaluation_seed": seed,
        "factor_names": list(data.factor_names),
        "controllable": list(data.controllable),
        "action_names": list(data.action_names),
        "noop": data.noop,
        "members": members,
    }
    run = RunDir(held_out.run)
    samples = samples_of(run, data)
    latents = [latents_of(trained, samples) for trained in held_out.members]
    found = [find_member_factors(*own, samples) for own in zip(held_out.members, latents, strict=True)]
    for n, (member, factors) in enumerate(zip(members, found, strict=True)):
        keep_factors(run, n, factors)
        member["certificate"] = _about(factors, data.action_names)
    if held_out.factors is not None:
        scores |= _against_factors(held_out, members, found, seed)
        _add_exactness(members, found, latents, samples, data.controllable)
    for n, member in enumerate(members):
        member["actions"] = _actions(held_out, n)
    write_atomic(run.scores, json.dumps(scores, indent=2) + "\n")
    return scores


def read_scores(run: str | Path) -> dict[str, Any] | None:
    """What `evaluate_run` wrote for this run, or None where it has not, or an older version has."""
    file = RunDir(Path(run)).scores
    if not file.exists():
        return None
    again = f"`acf evaluate {run}` makes it anew"
    try:
        scores = json.loads(file.read_text())
        version = scores["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise AcfError(f"{file} is damaged ({error}); {again}") from None
    if not isinstance(version, int) or version > FORMAT:
        raise AcfError(
            f"{file}: expected scores of format {FORMAT}, found {version!r}; use a matching acf-rl, or {again}"
        )
    return scores if version == FORMAT else None


def _about(found: Factors, action_names: tuple[str, ...]) -> dict[str, Any]:
    """The certificate, each share by its name and beside it its interval, and the factors in words."""
    certificate = found.certificate
    shares = {name: getattr(certificate, name) for name in ("one_step", "no_step", "injective", "still", "along")}
    return {
        "certified": certificate.certified,
        "kind": certificate.kind,
        **{name: _round(share.value) for name, share in shares.items()},
        "intervals": {name: _round((share.low, share.high)) for name, share in shares.items()},
        "because": list(certificate.because),
        "factors": list(found.describe(action_names)),
    }


def _add_exactness(
    members: list[dict[str, Any]],
    found: list[Factors],
    latents: list[Latents],
    samples: tuple[Sample, Sample],
    controllable: tuple[bool, ...],
) -> None:
    """Of each member, how often its factors tell the true ones that actions control."""
    of = [k for k, own in enumerate(controllable) if own]
    for member, factors, z in zip(members, found, latents, strict=True):
        if of and not factors.levels.continuous:  # coordinates tell no value exactly
            told = exactness(factors, z, samples, of)
            member["exact"] = {"state": _round(told["state"]), "factors": _round(told["factors"])}


def _against_factors(
    held_out: HeldOut, members: list[dict[str, Any]], found: list[Factors], seed: int
) -> dict[str, Any]:
    """Adds each member's scores to it, and returns their summary with the oracle and chance.

    The code of `factors` is what was found in the latents, and behind it the latents of what an episode keeps.
    """
    data, s = held_out.data, held_out.factors
    assert s is not None
    episodes = len(np.unique(held_out.episode))
    if episodes < 3:
        held = f"the held-out part of {held_out.run}'s data has {episodes} episodes"
        raise AcfError(f"{held}, scoring needs 3: collect more")
    codes = [_code(held_out, n, factors) for n, factors in enumerate(found)]
    some = [n for n, code in enumerate(codes) if code.shape[1]]
    result = evaluate(
        held_out.z,
        s,
        held_out.episode,
        controllable=data.controllable or None,
        more=[codes[n] for n in some],
        seed=seed,
    )
    for member, scores in zip(members, result.members, strict=True):
        member |= _plain(scores)
    for n, scores in zip(some, result.more, strict=True):
        members[n]["factors"] = _plain(scores)
    of_factors = movement(s[held_out.i], s[held_out.j], held_out.action, data.n_actions)
    return {
        **summary(result.members),
        "oracle": _plain(result.oracle) | {"actions": {"movement": _round(of_factors)}},
        "chance": _plain(result.chance),
    }


def _code(held_out: HeldOut, member: int, found: Factors) -> np.ndarray:
    z, trained = held_out.z[member], held_out.members[member]
    own = trained.controllable(z)
    values = np.asarray(found.read(own.astype(np.float64)), np.float64)
    return np.concatenate([values, z[:, own.shape[1] :]], axis=1) if values.shape[1] else values


def _actions(held_out: HeldOut, member: int) -> dict[str, Any]:
    """What each action does to each latent: as seen in the latents and, where there are energies, by these."""
    z, data = held_out.z[member], held_out.data
    seen = movement(z[held_out.i], z[held_out.j], held_out.action, data.n_actions)
    scores = held_out.scores(member)
    if scores is None or data.noop is None:
        return {"movement": _round(seen)}
    effects = action_effects(scores, data.noop)
    return {
        "movement": _round(seen),
        "score_difference": _round(effects.mean),
        "moved": _round(effects.moved),
        "sparsity": _round(effects.sparsity),
        "sparsity_chance": _round(effects.chance),
        "sparsity_of_action": _round(effects.sparsity_of_action),
    }


def _plain(scores: CodeScores) -> dict[str, Any]:
    names = ("diag", "off_diag", "diag_controllable", "off_diag_controllable")
    return {
        "r2": _round(scores.r2),
        "r2_interval": _round(scores.r2_interval),
        "matching": scores.matching.tolist(),
        **{name: _round(getattr(scores, name)) for name in names},
        "intervals": {name: _round(ends) for name, ends in scores.intervals.items()},
        "mcc_pearson": _round(scores.mcc_pearson),
        "mcc_spearman": _round(scores.mcc_spearman),
        "disentanglement": _round(scores.disentanglement),
        "completeness": _round(scores.completeness),
        "informativeness": _round(scores.informativeness),
    }


def _round(value: Any) -> Any:
    """To what the evaluation can tell, as JSON, which has no number for what is not defined."""
    if value is None or np.isnan(np.asarray(value, np.float64)).any():
        return None
    return np.asarray(value, np.float64).round(6).tolist()
