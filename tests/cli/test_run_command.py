"""`acf run`: everything in one command, which goes on where it stopped."""

import errno
import json
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy

import acf
from acf.files import exclusive_lock
from acf.training.view import View

pytestmark = pytest.mark.usefixtures("small")

ARGS = ("run", "lamp", "--method", "acf", "--preset", "quick", "--epochs", "2")
FILES = {".lock", "config.json", "metrics.jsonl", "tensorboard", "members", "data", "state", "scores.json"}
FILES |= {"report.html", "report-figures"}


def mtimes(run):
    return {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.name != ".lock"}


def test_from_start_to_scores_and_again(command, tmp_path):
    code, out, err = command(*ARGS)
    assert code == 0
    run = tmp_path / "runs" / "lamp-acf-quick"
    assert {path.name for path in run.iterdir()} == FILES
    scores = json.loads((run / "scores.json").read_text())
    assert [member["seed"] for member in scores["members"]] == [0]
    # Not a terminal: a few lines on stderr, and what came out on stdout.
    assert re.findall(r"^training acf: step (\d+)/32  .*fwd \d", err, re.M) == ["16", "32"]
    stages = ("collecting", "training", "evaluating", "drawing")
    assert re.fullmatch(r"took " + ", ".join(rf"\d+ s {stage}" for stage in stages), err.splitlines()[-1])
    assert "acf on lamp" in out
    row = next(row for row in out.splitlines() if row.startswith("│ seed 0 "))
    assert re.findall(r"\d\.\d{3}", row) == [
        f"{scores['members'][0][name]:.3f}"
        for name in ("diag", "off_diag", "diag_controllable", "off_diag_controllable")
    ]
    assert re.search(r"^│ oracle ", out, re.M)
    assert re.search(r"^│ chance ", out, re.M)
    wrote, look, use = out.splitlines()[-3:]
    assert wrote.startswith("wrote runs/lamp-acf-quick: config.json, ")
    assert look == "Look at it: open runs/lamp-acf-quick/report.html in a browser"
    assert use == 'Use it with acf.load("runs/lamp-acf-quick").encode(frames)'
    data = acf.Transitions.open(run / "data")
    assert acf.load("runs/lamp-acf-quick").encode(data.frames).shape == (660, 4)

    before = mtimes(run)
    code, again, err = command(*ARGS)
    assert (code, err) == (0, "")
    assert mtimes(run) == before
    assert again.splitlines()[-3:] == ["runs/lamp-acf-quick was finished already: nothing to do", look, use]
    assert again.splitlines()[:-3] == out.splitlines()[:-3]

    code, out, err = command(*ARGS, "--seed", 1)
    assert (code, out) == (1, "")
    assert "runs/lamp-acf-quick holds another run (members.0.seed: 0 there, 1 asked)" in err


def test_goes_on_after_an_interruption(command, tmp_path, monkeypatch):
    args = (*ARGS, "--seed", 7, "--hparams", "lr", "0.002")
    update = View.update

    def stop(view, step, terms):
        update(view, step, terms)
        signal.raise_signal(signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(View, "update", stop)
        code, out, err = command(*args, "--out", "run")
    assert (code, out) == (128 + signal.SIGTERM, "")
    assert err.splitlines()[-1] == "stopped at step 16 of 32 and saved; the same command goes on"
    assert not (tmp_path / "run" / "scores.json").exists()

    assert command(*args, "--out", "run")[0] == 0
    assert (tmp_path / "run" / "scores.json").exists()
    acf.train("run/data", "whole", preset="quick", seeds=[7], epochs=2, hparams={"lr": 0.002})
    stopped, whole = (safetensors.numpy.load_file(f"{run}/members/0/model.safetensors") for run in ("run", "whole"))
    assert stopped.keys() == whole.keys()
    for name in whole:
        np.testing.assert_array_equal(stopped[name], whole[name])
    stopped, whole = ((tmp_path / run / "metrics.jsonl").read_text() for run in ("run", "whole"))
    assert stopped == whole


def test_a_directory_of_something_else(command, tmp_path):
    """Nothing is collected into it."""
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("mine")
    code, out, err = command(*ARGS, "--out", "thesis")
    assert (code, out) == (1, "")
    assert err == "error: thesis is not for a run: it holds chapter.tex. Choose another --out.\n"
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter.tex"]


def test_a_run_on_data_that_lies_elsewhere(command, tmp_path, capsys):
    """Its directory is no place for another domain's data."""
    acf.train(acf.collect("lamp", 600, out="elsewhere"), tmp_path / "own", preset="quick", epochs=1)
    for data, name in (("elsewhere", "other"), ("own/data", "again")):
        acf.train(data, name, preset="quick", epochs=1)
        capsys.readouterr()
        code, _, err = command(*ARGS, "--out", name)
        assert (code, err) == (1, f"error: {name} holds a run on data that lies elsewhere. Choose another --out.\n")
        assert not (tmp_path / name / "data").exists()


def test_a_full_disk(command, monkeypatch):
    def full(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("acf.data.collect", full)
    code, _, err = command(*ARGS, "--out", "run")
    assert code == 1
    assert err.startswith("error: cannot work in run (No space left on device)")


def test_directory_in_use(command, tmp_path):
    with exclusive_lock("run"):
        code, out, err = command(*ARGS, "--out", "run")
    assert (code, out) == (1, "")
    assert re.fullmatch(r"error: run is in use by another process \(pid \d+\); wait for it or stop it\n", err)
    assert {path.name for path in (tmp_path / "run").iterdir()} == {".lock"}


def test_three_lines_of_python():
    data = acf.collect("lamp", 600)
    acf.train(data, "run", preset="quick")
    z = acf.load("run").encode(data.frames)
    assert z.shape == (660, 4)
    assert np.isfinite(z).all()


def test_names_are_loaded_on_first_use():
    program = """
import sys, acf
assert not {"jax", "numpy", "flax"} & sys.modules.keys()
assert {"train", "collect", "load", "make", "Transitions"} <= set(dir(acf))
try:
    acf.magic
except AttributeError as error:
    print(error)
print(acf.train.__module__, acf.collect.__module__, acf.load.__module__)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "module 'acf' has no attribute 'magic'",
        "acf.training.train acf.data.collect acf.training.run_dir",
    ], done.stderr


def test_longer(command, tmp_path):
    """Scores and page are those of the longer run."""
    run = tmp_path / "run"
    assert command(*ARGS, "--out", "run")[0] == 0
    before = {name: (run / name).read_text() for name in ("scores.json", "report.html")}
    code, out, _ = command(*ARGS[:-1], "3", "--out", "run")
    assert code == 0
    assert "wrote run: " in out
    steps = [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert steps == [16, 32, 48]
    assert all((run / name).read_text() != text for name, text in before.items())
    code, _, err = command(*ARGS, "--out", "run")
    assert code == 1
    assert err.startswith("error: run was trained for 3 epochs, 2 asked: a run can be made longer, not shorter")
