"""What was made at format 1 (`fixtures/format1`, committed records) is read, gone on with, scored and drawn today."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import acf
from acf.data import Transitions
from acf.study.evaluate import read_scores
from acf.study.plan import read_study
from acf.study.records import read_records
from acf.study.study_report import report_study
from acf.study.work import missing_cells
from acf.training.presets import Preset, get_preset

OLD = Path(__file__).parent / "fixtures" / "format1"
RESULTS = Path(__file__).parents[1] / "results"
TOLERANCE = 1e-3  # bit-equality holds on one kind of machine alone


@pytest.fixture
def old(tmp_path):
    """A copy: `run` is finished, `half` the same run stopped after one epoch of four."""
    return Path(shutil.copytree(OLD, tmp_path / "old"))


def go_on(old, name, **options):
    return acf.train(old / "data", old / name, preset=str(old / "tiny.toml"), seeds=[7, 3], **options)


def logged(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def weights(run, member):
    return safetensors.numpy.load_file(run / "members" / str(member) / "model.safetensors")


def test_data(old):
    data = Transitions.open(old / "data")
    assert (len(data), data.frame_shape, data.source["domain"]) == (70, (32, 32, 3), "lamp")
    again = acf.collect("lamp", 70, horizon=2, out=old / "data")
    assert again.hash == data.hash


@pytest.mark.parametrize(("member", "seed"), [(0, 7), (1, 3)])
def test_latents(old, member, seed):
    trained = acf.load(old / "run", member)
    assert trained.seed == seed
    frames = Transitions.open(old / "data").frames[:20]
    np.testing.assert_allclose(trained.encode(frames), np.load(old / "latents.npy")[member], atol=TOLERANCE)


def test_finished_is_finished(old):
    before = (old / "run" / "state" / "state.safetensors").stat().st_mtime_ns
    go_on(old, "run")
    assert (old / "run" / "state" / "state.safetensors").stat().st_mtime_ns == before


def test_half_done_goes_on(old):
    assert [line["step"] for line in logged(old / "half")] == [3]
    go_on(old, "half")
    lines, whole = logged(old / "half"), logged(old / "run")
    assert [line["step"] for line in lines] == [3, 6, 9, 12]
    assert lines[0] == whole[0]  # which was not done again
    np.testing.assert_allclose([line["loss"] for line in lines], [line["loss"] for line in whole], rtol=TOLERANCE)
    for member in range(2):
        found, expected = weights(old / "half", member), weights(old / "run", member)
        for name in expected:
            np.testing.assert_allclose(found[name], expected[name], atol=TOLERANCE, err_msg=name)


def test_scores(old):
    before = read_scores(old / "run")
    assert before is not None
    scores = acf.evaluate_run(old / "run")
    assert scores.keys() >= before.keys()
    for now, then in zip(scores["members"], before["members"], strict=True):
        assert now["seed"] == then["seed"]
        assert now["diag"] == pytest.approx(then["diag"], abs=0.02)


def test_report(old):
    acf.report_runs(old / "run")
    text = (old / "run" / "report.html").read_text()
    assert "acf on lamp" in text
    assert "seed 7" in text


def test_preset():
    sizes = {"transitions": 70, "horizon": 2, "depth": 2, "hidden": 8, "batch_size": 16, "epochs": 4}
    assert get_preset(str(OLD / "tiny.toml"), "acf", "lamp") == Preset(**sizes)


def test_sweep(old):
    pytest.importorskip("optuna")
    made = acf.sweep("lamp", old / "sweep", preset=str(old / "tiny.toml"), samples=2, seeds=1, population=2)
    assert made.was_finished
    files = sorted((old / "sweep" / "populations").glob("*/objective.json"))
    outcomes = {o["sample"]: o["objective"] for file in files for o in json.loads(file.read_text())}
    assert {one.sample.number: one.outcome.objective for one in made.tried} == outcomes
    assert made.best is not None
    assert made.best.outcome.objective == max(outcomes.values())


@pytest.mark.parametrize(
    ("study", "out", "records", "missing"),
    [
        ("paper", RESULTS / "paper", 32, 0),
        (str(RESULTS / "factored_markov" / "study.toml"), RESULTS / "factored_markov", 3, 0),
    ],
)
def test_records(study, out, records, missing):
    asked = read_study(study)
    found = read_records(asked, out)
    assert len(found) == records
    assert len(missing_cells(asked, found)) == missing


def test_study_report(tmp_path):
    out = Path(shutil.copytree(RESULTS / "factored_markov", tmp_path / "out"))
    before = (out / "README.md").read_text()
    report_study(read_study(str(out / "study.toml")), out)
    table = [line for line in before.splitlines() if line.startswith("| taxi |")]
    assert table
    assert set(table) <= set((out / "README.md").read_text().splitlines())
