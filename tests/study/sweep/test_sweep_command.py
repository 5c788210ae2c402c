"""`acf sweep` from a domain to a preset file that other commands take."""

import re

import pytest
from sweeps import ARGS

from acf.training.run_dir import RunDir

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_from_a_domain_to_a_preset(command, tmp_path):
    args = ("sweep", "lamp", *ARGS, "--preset", "quick", "--samples", 5, "--population", 4)
    code, out, err = command(*args)
    assert code == 0
    assert re.findall(r"^population (\d of \d) \(2 samples, 2 epochs\)$", err, re.M) == ["1 of 3", "2 of 3", "3 of 3"]
    assert out.startswith("agreement between seeds, UDR (1 is best)")
    objectives = [float(value) for value in re.findall(r"^│ (?:sample \d|the preset) +│ (\d\.\d{3})", out, re.M)]
    assert 5 <= len(objectives) <= 6  # the best five, and the preset wherever it stands
    assert "the preset" in out
    assert objectives == sorted(objectives, reverse=True)
    *_, counts, wrote, then = out.splitlines()
    assert counts == "6 samples: 6 complete"
    assert wrote == "wrote runs/lamp-toy-sweep: best.toml, trials.csv, trials.png, plan.json, populations/"
    best = "runs/lamp-toy-sweep/best.toml"
    assert then.endswith(f": acf run lamp --preset {best} --method toy --seed 2 --seeds 2")
    assert (tmp_path / "runs/lamp-toy-sweep/data/meta.json").exists()

    code, out, err = command(*args)
    assert (code, err) == (0, "")
    assert out.splitlines()[-2] == "runs/lamp-toy-sweep was finished already: nothing to do"

    data = "runs/lamp-toy-sweep/data"
    assert command("train", data, "--method", "toy", "--preset", best, "--out", "run")[0] == 0
    hparams = RunDir(tmp_path / "run").read_config().members[0].hparams
    assert f"lr = {hparams['lr']!r}\n" in (tmp_path / best).read_text()
    code, _, err = command("train", data, "--preset", best, "--out", "other")
    assert (code, err) == (1, f"error: preset file {best} is for toy, not for acf: add --method toy\n")


def test_errors_are_one_line(command, tmp_path):
    code, out, err = command("sweep", "lamp", *ARGS, "--preset", "quick", "--samples", 0)
    assert (code, out, err) == (1, "", "error: expected --samples of at least 1, got 0\n")
    code, out, err = command("sweep", "lamp", "--method", "acf", "--preset", "quick", "--ranges", "warp", "1", "2")
    assert (code, out) == (1, "")
    assert err.startswith("error: range of 'warp': acf has no such hyperparameter, only lr, fwd, ratio, ")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_of_something_else(command, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("mine")
    code, out, err = command("sweep", "lamp", *ARGS, "--preset", "quick", "--out", "thesis")
    assert (code, out) == (1, "")
    assert err == "error: thesis is not for a sweep: it holds chapter.tex. Choose another --out.\n"
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter.tex"]


def test_all_diverged(command):
    args = ("--method", "toy", "--preset", "quick", "--objective", "udr", "--seeds", 2, "--samples", 1)
    code, out, err = command("sweep", "lamp", *args, "--ranges", "nan_from", 0.1, 0.2, "--no-with-preset")
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].startswith("error: every sample diverged, so none is the best: give lower ranges")
