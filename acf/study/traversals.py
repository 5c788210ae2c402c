"""Traversals of a study, drawn when a run is recorded: pictures outlive the weights."""

from dataclasses import replace
from pathlib import Path

from acf.registry import own_part
from acf.study.evaluate import evaluate_held_out, read_scores
from acf.study.held_out import open_run
from acf.study.plan import Cell, Study
from acf.study.records import recognise
from acf.training import RunDir

FIGURES = "figures"


def draw_traversals(study: Study, run: Path, out: Path) -> None:
    """Of each main preset of ACF the lowest seed that did not diverge, into `out`; none without weights and data."""
    directory = RunDir(run)
    config = directory.read_config()
    whole = directory.is_finished(config) and (run / config.data["path"]).exists()
    if config.method != "acf" or not whole:
        return
    from acf.report.look import Scored
    from acf.report.run_figures import traversal_means, traversal_samples
    from acf.study.report import traversals_of, write_drawing

    held_out = open_run(run)
    scores = read_scores(run) or evaluate_held_out(held_out)
    look = Scored(run.name, scores, {})
    cells = recognise(study, config, str(run))
    for preset in study.methods.get("acf", ()):
        healthy = [n for n, member in enumerate(scores["members"]) if member["diverged_at"] < 0]
        of_preset = [n for n in healthy if cells[n].preset == preset]
        if not of_preset:
            continue
        n = min(of_preset, key=lambda n: cells[n].seed)
        traversals = traversals_of(held_out, n)
        for kind, draw in (("mean", traversal_means), ("samples", traversal_samples)):
            drawing = replace(draw(look, n, traversals), name=traversal_name(cells[n], kind))
            write_drawing(out / FIGURES, drawing)


def traversal_name(cell: Cell, kind: str) -> str:
    return f"traversal-{kind}-{own_part(cell.domain)}-{cell.method}-{cell.preset}-seed{cell.seed}"
