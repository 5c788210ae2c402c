"""From a finished run to `scores.json`."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from acf.errors import AcfError
from acf.files import write_atomic
from acf.metrics import CodeScores, action_effects, evaluate, movement, summary
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
    if held_out.factors is not None:
        scores |= _against_factors(held_out, members, seed)
    for n, member in enumerate(members):
        member["actions"] = _actions(held_out, n)
    write_atomic(RunDir(held_out.run).scores, json.dumps(scores, indent=2) + "\n")
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


def _against_factors(held_out: HeldOut, members: list[dict[str, Any]], seed: int) -> dict[str, Any]:
    """Adds each member's scores to it, and returns their summary with the oracle and chance."""
    data, s = held_out.data, held_out.factors
    assert s is not None
    episodes = len(np.unique(held_out.episode))
    if episodes < 3:
        found = f"the held-out part of {held_out.run}'s data has {episodes} episodes"
        raise AcfError(f"{found}, scoring needs 3: collect more")
    result = evaluate(held_out.z, s, held_out.episode, controllable=data.controllable or None, seed=seed)
    for member, scores in zip(members, result.members, strict=True):
        member |= _plain(scores)
    of_factors = movement(s[held_out.i], s[held_out.j], held_out.action, data.n_actions)
    return {
        **summary(result.members),
        "oracle": _plain(result.oracle) | {"actions": {"movement": _round(of_factors)}},
        "chance": _plain(result.chance),
    }


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
    """To what the evaluation can tell, as JSON."""
    return None if value is None else np.asarray(value, np.float64).round(6).tolist()
