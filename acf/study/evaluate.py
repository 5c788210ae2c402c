"""From a finished run to `scores.json`."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from acf.data.transitions import Transitions, used_frames
from acf.errors import AcfError
from acf.files import write_atomic
from acf.metrics import Evaluation, Scores, evaluate, summary
from acf.training.config import Config
from acf.training.run_dir import RunDir, load

FORMAT = 1


def evaluate_run(run: str | Path, *, seed: int = 0) -> dict[str, Any]:
    """Score every member on the held-out episodes, write `scores.json` and return what is in it."""
    directory = RunDir(Path(run))
    config = directory.read_config()
    data = directory.open_data(config)
    if data.hash != config.data["hash"]:
        hashes = f"expected hash {config.data['hash']}, found {data.hash}"
        raise AcfError(f"the data of {run} has changed since training: {hashes}")
    if data.factors is None:
        raise AcfError(f"the data of {run} has no true factors, so there is nothing to score the latents against")
    _, test = directory.split(data)
    rows = used_frames(test)
    episodes = len(np.unique(data.episode[rows]))
    if episodes < 3:
        raise AcfError(f"the held-out part of {run}'s data has {episodes} episodes, scoring needs 3: collect more")
    frames = np.asarray(data.frames[rows])
    members = [load(run, n) for n in range(len(config.members))]
    # A diverged member's weights are finite; what they make of a frame need not be, and then tells nothing about it.
    z = np.nan_to_num(np.stack([member.encode(frames) for member in members]), posinf=0, neginf=0)
    mask = data.controllable or None
    evaluation = evaluate(z, data.factors[rows], data.episode[rows], controllable=mask, seed=seed)
    scores = _to_json(config, data, evaluation, [member.diverged_at for member in members])
    write_atomic(directory.scores, json.dumps(scores, indent=2) + "\n")
    return scores


def read_scores(run: str | Path) -> dict[str, Any] | None:
    """What `evaluate_run` wrote for this run, or None where it has not."""
    file = RunDir(Path(run)).scores
    scores = json.loads(file.read_text()) if file.exists() else {}
    return scores if scores.get("format") == FORMAT else None


def _to_json(config: Config, data: Transitions, evaluation: Evaluation, diverged_at: list[int]) -> dict[str, Any]:
    members = zip(config.members, diverged_at, evaluation.members, strict=True)
    return {
        "format": FORMAT,
        "domain": data.source.get("domain"),
        "method": config.method,
        "factor_names": list(data.factor_names),
        "controllable": list(data.controllable),
        "members": [{"seed": m.seed, "diverged_at": at, **_scores(scores)} for m, at, scores in members],
        **summary(evaluation.members),
        "oracle": _scores(evaluation.oracle),
        "chance": _scores(evaluation.chance),
    }


def _scores(scores: Scores) -> dict[str, Any]:
    """Rounded to what the evaluation can tell."""
    plain = {"r2": scores.r2.astype(float).round(6).tolist(), "matching": scores.matching.tolist()}
    return plain | {
        name: value if value is None else round(value, 6) for name, value in vars(scores).items() if name not in plain
    }
