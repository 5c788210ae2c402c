"""What was made at format 1 (`fixtures/format1`, committed records) is read, gone on with, scored and drawn today."""

import json
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import numpy as np
import pytest
import safetensors.numpy

import acf
from acf.cli.tables import print_scores
from acf.data import Transitions
from acf.errors import AcfError
from acf.methods import acf as acf_method
from acf.study.evaluate import read_scores
from acf.study.plan import read_study
from acf.study.records import read_records
from acf.study.study_report import report_study
from acf.study.work import missing_cells
from acf.training import RunDir
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


def sweep(old):
    return acf.sweep("lamp", old / "sweep", preset=str(old / "tiny.toml"), samples=2, seeds=1, population=2)


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


def test_report_of_scores_from_before_there_was_one(old, capsys):
    """What is not in the file is a dash, on the page and in the terminal."""
    file = old / "run" / "scores.json"
    scores = json.loads(file.read_text())
    for part in (scores, scores["oracle"], scores["chance"], *scores["members"]):
        del part["mcc_pearson"]
    file.write_text(json.dumps(scores))
    acf.report_runs(old / "run")
    text = (old / "run" / "report.html").read_text()
    assert "acf on lamp" in text
    table = text.partition("All scores")[2]
    rows = re.findall(r"<th scope='row'>(?:seed 7|mean ± std|oracle|chance)</th>(.*?)</tr>", table)
    assert [row.count("<td>–</td>") for row in rows] == [1] * 4
    print_scores(scores)
    assert re.search(r"^│ seed 7 +│ – +│ 0\.", capsys.readouterr().out, re.M)


def test_preset():
    expected = Preset(transitions=70, horizon=2, depth=2, hidden=8, batch_size=16, epochs=4)
    assert get_preset(str(OLD / "tiny.toml"), "acf", "lamp") == expected


def test_sweep(old):
    pytest.importorskip("optuna")
    made = sweep(old)
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


@pytest.fixture
def newer(monkeypatch):
    """ACF with a hyperparameter that it did not have then."""

    @jax.tree_util.register_dataclass
    @dataclass(frozen=True)
    class HParams(acf_method.HParams):
        entropy: float = 0.0

    monkeypatch.setattr(acf_method, "METHOD", replace(acf_method.METHOD, hparams=HParams))


@pytest.mark.usefixtures("newer")
def test_a_hyperparameter_that_is_new(old):
    """It is at its default, where it was."""
    assert RunDir(old / "run").read_config().members[0].hparams["entropy"] == 0
    go_on(old, "run")  # is finished
    go_on(old, "half")
    assert [line["step"] for line in logged(old / "half")] == [3, 6, 9, 12]
    with pytest.raises(AcfError, match=r"members.0.hparams.entropy: 0.0 there, 1.0 asked"):
        go_on(old, "half", hparams={"entropy": 1.0})
    pytest.importorskip("optuna")
    assert sweep(old).was_finished


@pytest.mark.usefixtures("newer")
@pytest.mark.parametrize("study", ["paper", str(RESULTS / "factored_markov" / "study.toml")])
def test_records_from_before_it(study):
    out = RESULTS / ("paper" if study == "paper" else "factored_markov")
    asked = read_study(study)
    assert not missing_cells(asked, read_records(asked, out))


def test_a_field_that_is_new(old):
    """A network of then is built as it was then, whatever is usual now."""
    run = RunDir(old / "run")
    assert run.read_config().spec.encoder == "residual"
    found = json.loads(run.config.read_text())
    run.config.write_text(json.dumps(found | {"spec": found["spec"] | {"encoder": "places"}}))
    assert run.read_config().spec.encoder == "places"


def test_longer(old):
    go_on(old, "run", epochs=5)
    assert [line["step"] for line in logged(old / "run")] == [3, 6, 9, 12, 15]
    assert read_scores(old / "run") is None
    assert len(acf.load(old / "run").encode(Transitions.open(old / "data").frames[0])) == 4
