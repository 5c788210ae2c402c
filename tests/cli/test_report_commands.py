"""`acf evaluate` and `acf report` on a run that was really trained, and on runs that are broken."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import acf
from acf.study.evaluate import evaluate_run


@pytest.fixture
def lamp(runs, tmp_path) -> Path:
    """A copy to break; the data lies beside it."""
    shutil.copytree(runs / "data", tmp_path / "data")
    return shutil.copytree(runs / "lamp", tmp_path / "lamp", ignore=shutil.ignore_patterns("report*"))


@pytest.fixture(scope="module")
def scores(runs):
    return evaluate_run(runs / "lamp")


def test_evaluate(command, lamp, scores):
    (lamp / "scores.json").unlink(missing_ok=True)
    code, out, err = command("evaluate", "lamp")
    assert (code, err) == (0, "")
    assert json.loads((lamp / "scores.json").read_text()) == scores
    for name, tables in {"seed 7": 3, "seed 3": 3, "mean ± std": 2, "oracle": 2, "chance": 2}.items():
        assert len(re.findall(rf"^│ {name} ", out, re.M)) == tables
    assert "seed 7 is not certified, because " in out
    first = next(line for line in out.splitlines() if line.startswith("│ seed 7 "))
    assert f"{scores['members'][0]['diag']:.3f}" in first
    assert "1-sparsity of the score differences (1 is best): 0." in out
    assert out.splitlines()[-2:] == ["wrote lamp/scores.json", "Look at it with acf report lamp"]


def test_scores_of_the_energies(runs):
    """`Trained.scores` is the slope of the energies in the next latent alone."""
    member = acf.load(runs / "lamp", 1)
    rng = np.random.default_rng(0)
    z, z_next = rng.uniform(-1, 1, (2, 5, 4)).astype(np.float32)
    scores = member.scores(z_next, z)
    assert scores is not None
    assert scores.shape == (5, 4, 3)
    other = member.scores(z_next + np.array([0.3, 0, 0, 0], np.float32), z)
    assert other is not None
    np.testing.assert_array_equal(other[:, 1:], scores[:, 1:])  # E_k does not see z'_j
    assert np.abs(other[:, 0] - scores[:, 0]).max() > 1e-6


def test_another_evaluation_seed(command, lamp, scores):
    assert command("evaluate", "lamp", "--seed", 1)[0] == 0
    other = json.loads((lamp / "scores.json").read_text())
    assert other["evaluation_seed"] == 1
    assert other["members"][0]["r2"] != scores["members"][0]["r2"]


def test_report_of_two_runs(command, runs, scores, tmp_path):
    code, out, err = command("report", runs / "lamp", runs / "unknown", "--out", "new/page.html")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "wrote new/page.html, and its figures as PNG and CSV in new/page-figures",
        "Open new/page.html in a browser",
    ]
    text = (tmp_path / "new" / "page.html").read_text()
    assert "2 runs compared" in text
    assert "This data has no true factors" in text
    folder = tmp_path / "new" / "page-figures"
    index = json.loads((folder / "figures.json").read_text())
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {"figures.json"} | {figure[kind] for figure in index for kind in ("png", "csv")}
    assert {
        "lamp/r2-heatmaps.csv",
        "lamp/traversal-mean-member1.png",
        "unknown/actions-member0.csv",
        "bars.png",
    } <= files
    assert not {"unknown/r2-heatmaps.csv", "unknown/scatter-member0.csv"} & files
    # evaluated on the way, since it had not been
    assert json.loads((runs / "unknown" / "scores.json").read_text())["format"] == 2


def test_no_such_evaluation_seed(command, lamp):
    code, _, err = command("evaluate", "lamp", "--seed", -1)
    assert (code, err) == (1, "error: expected an evaluation seed of at least 0, got -1\n")


def unfinished(run: Path) -> None:
    (run / "members" / "1" / "model.safetensors").unlink()


def torn_model(run: Path) -> None:
    (run / "members" / "1" / "model.safetensors").write_bytes(b"\0" * 100)


def newer_run(run: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | {"format": 99}))


def torn_config(run: Path) -> None:
    (run / "config.json").write_text('{"format": 1, ')


def no_data(run: Path) -> None:
    shutil.rmtree(run.parent / "data")


@pytest.mark.parametrize("name", ["evaluate", "report"])
@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (unfinished, "lamp is not finished: run the same `acf train` or `acf run` command again to go on"),
        (torn_model, "lamp/members/1/model.safetensors is damaged"),
        (newer_run, "lamp/config.json: expected run format 1, found 99; use a matching acf-rl"),
        (torn_config, "lamp/config.json is not JSON"),
        (no_data, "the data of lamp is gone: expected it in"),
    ],
)
def test_broken_runs(command, lamp, name, harm, message):
    harm(lamp)
    code, out, err = command(name, "lamp")
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1
    assert not (lamp / "report.html").exists()


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("scores.json", "{", "lamp/scores.json is damaged"),
        ("scores.json", '{"format": 99}', "lamp/scores.json: expected scores of format 2, found 99"),
        ("metrics.jsonl", '{"step": 1, "loss": [1', "lamp/metrics.jsonl is damaged"),
        ("metrics.jsonl", '{"step": 1, "epoch": 1, "loss": [1]}', "expected 2 values a term"),
    ],
)
def test_broken_files(command, lamp, scores, file, text, message):
    (lamp / "scores.json").write_text(json.dumps(scores))
    (lamp / file).write_text(text)
    code, out, err = command("report", "lamp")
    assert (code, out) == (1, "")
    assert message in err


def test_all_runs_are_looked_at_before_one_is_scored(command, lamp):
    (lamp / "scores.json").unlink(missing_ok=True)
    shutil.copytree(lamp, "broken")
    unfinished(Path("broken"))
    for name in ("evaluate", "report"):
        code, out, err = command(name, "lamp", "broken", *(["--out", "page.html"] if name == "report" else []))
        assert (code, out) == (1, "")
        assert "broken is not finished" in err
        assert not (lamp / "scores.json").exists()


def test_only_a_page_is_overwritten(command, lamp, scores):
    (lamp / "scores.json").write_text(json.dumps(scores))
    page = Path("notes.html")
    page.write_text("<p>mine</p>")
    code, _, err = command("report", "lamp", "--out", page)
    assert (code, page.read_text()) == (1, "<p>mine</p>")
    assert err == ("error: notes.html is not a page of `acf report`, and would be overwritten. Choose another --out.\n")
    page.unlink()
    for _ in range(2):
        assert command("report", "lamp", "--out", page)[0] == 0
    assert "R²" in page.read_text()


def test_page_cannot_be_a_directory(command, lamp, tmp_path):
    (tmp_path / "there").mkdir()
    code, _, err = command("report", "lamp", "--out", "there")
    assert code == 1
    assert err == "error: expected a file name for the page, got the directory there\n"
