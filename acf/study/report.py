"""From finished runs to a page, and its figures as files that a script finds."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from acf.errors import AcfError
from acf.files import write_atomic
from acf.methods import get
from acf.metrics import score_differences, strongest
from acf.report.drawing import Drawing
from acf.report.frames import stretch, to_rgb
from acf.report.look import EffectPictures, Graphs, Look
from acf.report.page import draw, is_page, page
from acf.report.traversal import Traversal, traverse
from acf.study.evaluate import evaluate_held_out, read_scores
from acf.study.held_out import HeldOut, open_run
from acf.training.config import Config
from acf.training.run_dir import REPORT, RunDir

GALLERY = 12
POINTS = 600
TRAVERSED = 6000  # frames, enough for the mean of each step


def report_runs(runs: str | Path | Sequence[str | Path], out: str | Path | None = None) -> list[dict[str, Any]]:
    """Write the page to `out`, its figures beside it, and return the runs' scores.

    A run that is not evaluated yet is evaluated. Without `out` the page of a single run lies in its directory.
    """
    paths = [Path(run) for run in ([runs] if isinstance(runs, str | Path) else runs)]
    if len({path.resolve() for path in paths}) < len(paths):
        raise AcfError(f"expected different runs, got one twice: {', '.join(map(str, paths))}")
    if out is None and len(paths) != 1:
        raise AcfError(f"expected a name for the page of {len(paths)} runs: give `out`")
    out = paths[0] / REPORT if out is None else Path(out)
    if out.is_dir():
        raise AcfError(f"expected a file name for the page, got the directory {out}")
    if out.exists() and not is_page(out.read_text(errors="replace")):
        raise AcfError(f"{out} is not a page of `acf report`, and would be overwritten. Choose another --out.")
    for path in paths:
        RunDir(path).read_finished()
    out.parent.mkdir(parents=True, exist_ok=True)
    looks = [look_at(path, name) for path, name in zip(paths, _names(paths), strict=True)]
    _write(looks, out)
    return [look.scores for look in looks]


def report_held_out(held_out: HeldOut, scores: dict[str, Any]) -> None:
    """`report_runs` of one run that is open and evaluated already, into its directory."""
    _write([_look(held_out, scores, _names([held_out.run])[0])], held_out.run / REPORT)


def _write(looks: list[Look], out: Path) -> None:
    drawings = {look.name: draw(look) for look in looks}
    text, comparison = page(looks, drawings)
    _write_figures(figures_folder(out), drawings | ({"": comparison} if comparison else {}))
    write_atomic(out, text)


def figures_folder(out: Path) -> Path:
    return out.with_name(f"{out.stem}-figures")


def look_at(run: Path, name: str) -> Look:
    """Everything that a report shows of a run; evaluates it first where that has not been done."""
    found = read_scores(run)
    held_out = open_run(run)
    return _look(held_out, found or evaluate_held_out(held_out), name)


def _look(held_out: HeldOut, scores: dict[str, Any], name: str) -> Look:
    run = RunDir(held_out.run)
    steps, curves = _curves(run.metrics, len(held_out.members))
    some = _shuffled(held_out)
    s = held_out.factors
    return Look(
        name=name,
        scores=scores,
        settings=_settings(held_out),
        steps=steps,
        curves=curves,
        gallery=to_rgb(held_out.frames[some[:GALLERY]]),
        traversals=tuple(traversals_of(held_out, member) for member in range(len(held_out.members))),
        z=held_out.z[:, some[:POINTS]],
        factors=None if s is None else s[some[:POINTS]],
        effects=_effects(held_out),
        graphs=_graphs(run, held_out),
        for_factors=get(held_out.config.method).finds_factors,
    )


def traversals_of(held_out: HeldOut, member: int) -> tuple[Traversal, ...]:
    """Of each latent."""
    few = _shuffled(held_out)[:TRAVERSED]
    frames, s = held_out.frames[few], None if held_out.factors is None else held_out.factors[few]
    return tuple(traverse(z_k, frames, s, np.random.default_rng(0)) for z_k in held_out.z[member, few].T)


def _shuffled(held_out: HeldOut) -> np.ndarray:
    return np.random.default_rng(0).permutation(len(held_out.frames))


def _effects(held_out: HeldOut) -> tuple[EffectPictures, ...] | None:
    """Of each member: the mean frame of the states in which an action moves a latent most."""
    pictures = []
    frames = to_rgb(held_out.frames[held_out.i]).astype(np.float32)
    for member in range(len(held_out.members)):
        scores = held_out.scores(member)
        if scores is None or held_out.data.noop is None:
            return None
        most = strongest(score_differences(scores, held_out.data.noop))
        where = {(a, k): most[:, a] == k for a in range(scores.shape[2]) for k in range(scores.shape[1])}
        # One state in a hundred is an accident of the energies, not a place where the action acts.
        pictures.append(
            {pair: stretch(frames[rows].mean(axis=0)) for pair, rows in where.items() if rows.mean() > 0.01}
        )
    return tuple(pictures)


def _graphs(run: RunDir, held_out: HeldOut) -> tuple[Graphs, ...] | None:
    """Of each member, from its `extras.json`; None where the method learns none."""
    files = [run.extras(n) for n in range(len(held_out.members))]
    if not all(file.exists() for file in files):
        return None
    d = held_out.z.shape[2]
    shapes = {"state": (d, d), "action": (d, held_out.config.spec.n_actions)}
    return tuple(read_graphs(file, shapes) for file in files)


def read_graphs(file: Path, shapes: dict[str, tuple[int, int]]) -> Graphs:
    """Edge probabilities by graph, from a member's `extras.json`."""
    try:
        found = json.loads(file.read_text())["graphs"]
        graphs = {name: np.array(found[name]["probability"], float) for name in shapes}
    except (ValueError, KeyError, TypeError) as error:
        raise AcfError(f"{file} is damaged ({error}): the graphs cannot be drawn") from None
    for name, shape in shapes.items():
        if graphs[name].shape != shape:
            raise AcfError(f"{file} is damaged: expected a graph {name} of shape {shape}, found {graphs[name].shape}")
    return graphs


def _curves(file: Path, members: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Steps, and each term of the loss by member."""
    if not file.exists():
        raise AcfError(f"{file} is missing: the run directory is not whole")
    try:
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        steps = np.array([line.pop("step") for line in lines], int)
        terms = [name for name in lines[0] if name != "epoch"]
        # null is what a diverged member has
        values = {
            name: np.array([[math.nan if v is None else v for v in line[name]] for line in lines]) for name in terms
        }
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise AcfError(f"{file} is damaged ({error}): the curves cannot be drawn") from None
    if any(of_term.shape != (len(steps), members) for of_term in values.values()):
        raise AcfError(f"{file} is damaged: expected {members} values a term, one for each member")
    return steps, dict(sorted(values.items(), key=lambda item: item[0] != "loss"))


def _settings(held_out: HeldOut) -> dict[str, Any]:
    config = held_out.config
    return {
        "seeds": [member.seed for member in config.members],
        "epochs": config.epochs,
        "batch size": config.batch_size,
        **_presets(config),
        "network": {name: getattr(config.spec, name) for name in ("encoder", "depth", "hidden", "latents")},
        "hyperparameters": [member.hparams for member in config.members]
        if len({json.dumps(member.hparams) for member in config.members}) > 1
        else config.members[0].hparams,
        "data": {"transitions": len(held_out.data), "hash": config.data["hash"][:12], **config.data.get("source", {})},
    }


def _presets(config: Config) -> dict[str, list[str]]:
    """Of the members, where all are known."""
    names = [member.preset for member in config.members if member.preset]
    return {"preset": list(dict.fromkeys(names))} if len(names) == len(config.members) else {}


def _names(paths: list[Path]) -> list[str]:
    """Directory names, numbered where two are the same."""
    short = [path.resolve().name for path in paths]
    return short if len(set(short)) == len(short) else [f"{name}-{n}" for n, name in enumerate(short)]


def _write_figures(folder: Path, drawings: dict[str, list[Drawing]]) -> None:
    """`FOLDER/RUN/NAME.png` and `.csv`, and `figures.json` that lists them."""
    index = []
    for run, of_run in drawings.items():
        for drawing in of_run:
            write_drawing(folder / run, drawing)
            files = {kind: str(Path(run, f"{drawing.name}.{kind}")) for kind in ("png", "csv")}
            index.append({"run": run or None, "name": drawing.name, "title": drawing.title, **files})
    write_atomic(folder / "figures.json", json.dumps(index, indent=2) + "\n")


def write_drawing(folder: Path, drawing: Drawing) -> None:
    """`FOLDER/NAME.png`, and `NAME.csv` with the numbers it shows."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / f"{drawing.name}.png", drawing.png)
    write_atomic(folder / f"{drawing.name}.csv", drawing.csv())
