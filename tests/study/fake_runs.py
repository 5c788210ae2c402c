"""Runs of a study as far as records need them, without training: a config and made-up scores."""

import json
from pathlib import Path

import numpy as np

from acf.domains import make
from acf.study.plan import Cell, Study, hparams_of

MORE = ("mcc_pearson", "mcc_spearman", "disentanglement", "completeness", "informativeness")
TINY = {"transitions": 600, "encoder": "places", "depth": 2, "hidden": 8, "epochs": 2, "batch_size": 32}

STUDY = """
domains = ["lamp", "grid2d"]
seeds = 2
sizes = "quick"
[methods]
acf = ["quick", "sparse"]
msa = ["quick"]
[ablation]
domain = "lamp"
[ablation.methods]
acf = ["quick", "no-fwd"]
"""


def fake_run(path: Path, study: Study, cells: list[Cell], **changes) -> Path:
    """A run directory with `config.json` and `scores.json` for these cells; `changes` are made to the config."""
    domain, method = cells[0].domain, cells[0].method
    world, size = make(domain), study.size(domain, method)
    K = len(world.factor_names)
    config = {
        "format": 1,
        "method": method,
        "spec": {
            "frame_shape": [32, 32, 3],
            "n_actions": world.n_actions,
            "noop": world.noop,
            "latents": K,
            "encoder": size.encoder,
            "depth": size.depth,
            "hidden": size.hidden,
            "bf16": False,
            "kernel": "auto",
        },
        "members": [{"seed": c.seed, "hparams": hparams_of(method, c.preset, domain)} for c in cells],
        "batch_size": size.batch_size,
        "epochs": size.epochs,
        "data": {"path": "../data", "hash": "abc", "source": study.source(domain, method)},
        "versions": {"jax": "0"},
        "created": "2026-11-16T00:00:00+00:00",
    } | changes
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(config))
    (path / "scores.json").write_text(json.dumps(fake_scores(domain, method, cells, K)))
    return path


def fake_scores(domain: str, method: str, cells: list[Cell], K: int) -> dict:
    world = make(domain)
    members = [{"seed": c.seed, "diverged_at": -1, **code(K, diag_of(c), off_diag_of(c))} for c in cells]
    for member in members:
        member["actions"] = {"movement": np.ones((K, world.n_actions)).tolist()}
    return {
        "format": 2,
        "domain": domain,
        "method": method,
        "evaluation_seed": 0,
        "factor_names": list(world.factor_names),
        "controllable": list(world.controllable),
        "action_names": list(world.action_names),
        "noop": world.noop,
        "members": members,
        "diag": {"mean": 0.123, "std": 0.456},  # over all presets: must not come up again
        "oracle": code(K, 0.999, 0.111),
        "chance": code(K, 0.002, 0.001),
    }


def diag_of(cell: Cell) -> float:
    """Another one for each cell."""
    return round(0.4 + 0.1 * cell.seed + 0.01 * len(cell.preset) + 0.001 * len(cell.method + cell.domain), 6)


def off_diag_of(cell: Cell) -> float:
    return round(diag_of(cell) / 3, 6)


def code(K: int, diag: float, off_diag: float) -> dict:
    r2 = np.full((K, K), off_diag)
    np.fill_diagonal(r2, diag)
    scores = {
        "diag": diag,
        "off_diag": off_diag,
        "diag_controllable": None,
        "off_diag_controllable": None,
        **dict.fromkeys(MORE, 0.5),
    }
    return {"r2": r2.tolist(), "r2_interval": [r2.tolist()] * 2, "matching": list(range(K)), "intervals": {}, **scores}
