"""A whole study, really trained and really tiny: what is missing is done, what is done is left alone."""

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import jax
import pytest
import small_study
from fake_runs import fake_run

from acf.errors import AcfError
from acf.files import exclusive_lock
from acf.study import work
from acf.study.plan import Cell, read_study
from acf.study.records import read_records
from acf.study.work import populations, run_study
from acf.training.interrupt import Interrupted
from acf.training.view import View

STUDY = """
domains = ["lamp", "grid2d"]
seeds = 2
sizes = "quick"
epochs = 30
[methods]
toy = ["quick", "paper"]
"""
LAMP = [Cell("lamp", "toy", preset, seed) for preset in ("quick", "paper") for seed in (0, 1)]


@pytest.fixture
def study(tmp_path, monkeypatch):
    small_study.install(monkeypatch)
    (tmp_path / "mine.toml").write_text(STUDY)
    return read_study(str(tmp_path / "mine.toml"))


def results(out):
    """What must not depend on how often the study was stopped."""
    found = {}
    for file in sorted(out.glob("*.json")):
        record = json.loads(file.read_text())
        assert record["device_seconds"] == record.pop("training_seconds") > 0
        del record["device_seconds"]
        assert record.pop("created")
        found[file.name] = record
    return found


def mtimes(out):
    return {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.name not in (".lock", ".gitignore")}


IN_TRAINING = "runs/lamp-toy/metrics.jsonl"
COLLECTED, TRAINED = "data/lamp/meta.json", "runs/lamp-toy/members/3/model.safetensors"


@pytest.mark.parametrize(
    "moments", [(IN_TRAINING,), pytest.param((COLLECTED, IN_TRAINING, TRAINED), marks=pytest.mark.slow)]
)
def test_whole_in_parts_or_killed(study, tmp_path, capsys, moments):
    """The records are the same."""
    whole = run_study(study, tmp_path / "whole")
    assert whole.done == ("lamp-toy", "grid2d-toy")
    assert whole.missing == ()
    assert "1/2 lamp toy quick seeds 0-1, paper seeds 0-1" in capsys.readouterr().err
    expected = results(tmp_path / "whole")
    assert set(expected) == {"lamp-toy.json", "grid2d-toy.json"}
    members = expected["lamp-toy.json"]["scores"]["members"]
    assert len({member["diag"] for member in members}) == 4  # every one its own
    before = mtimes(tmp_path / "whole")
    assert run_study(study, tmp_path / "whole").done == ()
    assert mtimes(tmp_path / "whole") == before

    # One domain; its run directory is gone; then, killed as soon as a file appears, the rest.
    out = tmp_path / "out"
    part = run_study(study, out, domains=("grid2d",))
    assert part.done == ("grid2d-toy",)
    assert set(part.missing) == set(LAMP)
    (out / "runs").rename(tmp_path / "elsewhere")
    for moment in moments:
        process = start("study", tmp_path / "mine.toml", "--out", out)
        while not (out / moment).exists():
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.002)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert not (out / "lamp-toy.json").exists()
    assert run_study(study, out).done == ("lamp-toy",)
    assert results(out) == expected


def start(*args):
    cache = str(jax.config.jax_compilation_cache_dir)  # pyright: ignore[reportAttributeAccessIssue]
    env = {"JAX_COMPILATION_CACHE_DIR": cache, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1"}
    command = [sys.executable, small_study.__file__, *map(str, args)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | env)


def test_time_limit(study, tmp_path, monkeypatch, capsys):
    with pytest.raises(AcfError, match="more than 0 minutes, got 0"):
        run_study(study, tmp_path / "out", minutes=0)
    assert not (tmp_path / "out").exists()
    # By this clock a minute is over as soon as the first population trains; by that of the training it always was.
    clock = iter([0.0, 0.0, 61.0])
    with monkeypatch.context() as patch:
        patch.setattr(work, "time", SimpleNamespace(monotonic=lambda: next(clock)))
        stopped = run_study(study, tmp_path / "out", minutes=1)
    assert stopped.done == ()
    assert set(stopped.missing) == set(study.cells())
    assert "time limit: stopped at step 16 of 480 and saved; the same command goes on" in capsys.readouterr().err
    assert (tmp_path / "out/runs/lamp-toy/state/state.safetensors").exists()
    assert not (tmp_path / "out/runs/grid2d-toy").exists()
    (first, _) = populations(study, tmp_path / "out", [])
    assert (first.name, first.cells) == ("lamp-toy", tuple(LAMP))


def test_a_signal_stops_the_whole_study(study, tmp_path, monkeypatch):
    monkeypatch.setattr(View, "update", lambda view, step, terms: signal.raise_signal(signal.SIGTERM))
    with pytest.raises(Interrupted, match="stopped at step 16") as caught:
        run_study(study, tmp_path / "out")
    assert caught.value.exit_code == 128 + signal.SIGTERM
    assert not (tmp_path / "out/runs/grid2d-toy").exists()


def test_one_failure_does_not_stop_the_others(study, tmp_path, monkeypatch):
    def train(data, run, **settings):
        if run.name == "lamp-toy":
            raise AcfError("every member diverged")
        fake_run(run, study, [Cell("grid2d", "toy", c.preset, c.seed) for c in LAMP])

    monkeypatch.setattr(work, "train", train)
    with pytest.raises(AcfError, match=r"1 of 2 populations failed\. lamp-toy: every member diverged"):
        run_study(study, tmp_path / "out")
    assert [record.file.stem for record in read_records(study, tmp_path / "out")] == ["grid2d-toy"]


def test_limits_are_checked_before_any_work(study, tmp_path):
    with pytest.raises(AcfError, match="the study has no domain taxi: expected some of lamp, grid2d"):
        run_study(study, tmp_path / "out", domains=("taxi",))
    with pytest.raises(AcfError, match="the study has no method acf: expected some of toy"):
        run_study(study, tmp_path / "out", methods=("acf",))
    assert not (tmp_path / "out").exists()
    with exclusive_lock(tmp_path / "out"), pytest.raises(AcfError, match="is in use by another process"):
        run_study(study, tmp_path / "out")


def test_runs_that_were_begun(study, tmp_path):
    """They go on as they are; what is missing besides is another population."""
    out = tmp_path / "out"
    fake_run(out / "runs" / "lamp-toy", study, LAMP[2:])
    found = [population for population in populations(study, out, []) if population.domain == "lamp"]
    assert [(p.name, p.cells) for p in found] == [("lamp-toy", tuple(LAMP[2:])), ("lamp-toy-2", tuple(LAMP[:2]))]

    # A record that came from elsewhere holds half of what was begun.
    work.adopt(study, out, (fake_run(tmp_path / "elsewhere", study, LAMP[1:3]),))
    with pytest.warns(UserWarning, match="runs/lamp-toy is left alone: a record has lamp toy paper seed 0 already"):
        found = [p for p in populations(study, out, read_records(study, out)) if p.domain == "lamp"]
    assert [(p.name, p.cells) for p in found] == [("lamp-toy-3", (LAMP[0], LAMP[3]))]

    fake_run(out / "runs" / "lamp-toy-3", study, [LAMP[0], LAMP[3]], epochs=5)
    with (
        pytest.warns(UserWarning, match="left alone"),
        pytest.raises(AcfError, match=r"runs/lamp-toy-3 is not a run of mine.toml .*epochs: 5 there, 30 asked"),
    ):
        populations(study, out, read_records(study, out))
