"""Whole sweeps with a toy method: what comes out, and what remains of one that is stopped."""

import csv
import json
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from sweeps import ARGS, search, stopped_in_the_fourth_trial, trials
from trained_runs import assert_same_tensors, finish, model, n_logged, start, wait_until

import acf
from acf.errors import AcfError
from acf.study.sweep import search as search_module
from acf.study.sweep.ledger import Ledger
from acf.study.sweep.samples import draw
from acf.training.presets import get_preset
from acf.training.ranges import Range
from acf.training.run_dir import RunDir

pytestmark = pytest.mark.usefixtures("small")

FILES = {".lock", "best.toml", "plan.json", "populations", "preset.toml", "selection", "study.journal"}
FILES |= {"trials.csv", "trials.png"}


@pytest.fixture(scope="module")
def whole(lamp, tmp_path_factory):
    """Never stopped."""
    import small_acf

    out = tmp_path_factory.mktemp("sweeps") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        small_acf.install(patch)
        search(lamp, out)
    return out


def rows(out):
    return list(csv.DictReader((out / "trials.csv").read_text().splitlines()))


def assert_same_results(found, expected):
    assert (found / "trials.csv").read_bytes() == (expected / "trials.csv").read_bytes()
    assert (found / "best.toml").read_text() == (expected / "best.toml").read_text()


def assert_same_sweep(found, expected):
    assert_same_results(found, expected)
    by_sample = [sorted(trials(out), key=lambda trial: trial[4]["sample"]) for out in (found, expected)]
    assert [trial[1:] for trial in by_sample[0]] == [trial[1:] for trial in by_sample[1]]


def test_what_comes_out(whole):
    assert {path.name for path in whole.iterdir()} == FILES
    found = rows(whole)
    assert [int(row["sample"]) for row in found] == [0, 1, 2, 3, 4, 5]
    assert {row["state"] for row in found} == {"complete"}
    for row in found:
        assert float(row["objective"]) == pytest.approx((float(row["seed 0"]) + float(row["seed 1"])) / 2)
    assert [float(found[0][name]) for name in ("lr", "noise")] == [1e-3, 0.1]  # the preset's own
    best = max(found, key=lambda row: float(row["objective"]))
    preset = get_preset(str(whole / "best.toml"), "toy", "lamp")
    assert {name: preset.hparams[name] for name in ("lr", "noise")} == {n: float(best[n]) for n in ("lr", "noise")}
    base = get_preset("quick", "toy", "lamp")
    assert (preset.epochs, preset.hidden, preset.batch_size) == (base.epochs, base.hidden, base.batch_size)
    assert [trial[1] for trial in trials(whole)] == ["COMPLETE"] * 6
    assert [trial[2] for trial in trials(whole)] == [[float(row["objective"])] for row in found]


def test_members_are_samples_and_seeds(whole):
    """A member is what it would be if trained alone."""
    configs = [RunDir(whole / "populations" / f"{n:04d}").read_config() for n in range(3)]
    members = [(m.seed, m.hparams["lr"]) for config in configs for m in config.members]
    assert members == [(seed, float(row["lr"])) for row in rows(whole) for seed in (0, 1)]


def test_test_episodes_are_never_seen(whole, lamp):
    data, selection = acf.Transitions.open(lamp), acf.Transitions.open(whole / "selection")
    train, test = RunDir(whole).split(data)
    held_out = set(test.episode[test.i])
    assert held_out
    assert held_out.isdisjoint(selection.episode)
    assert set(selection.episode) == set(train.episode[train.i])
    assert selection.source["domain"] == "lamp"
    _, validation = RunDir(whole).split(selection)
    assert 3 <= len(np.unique(validation.episode[validation.i])) < 10


def test_finished_sweep_is_left_alone(whole, lamp):
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*") if path.name != ".lock"}
    found = search(lamp, whole)
    assert found.was_finished
    assert before == {p: p.stat().st_mtime_ns for p in whole.rglob("*") if p.name != ".lock"}


def test_another_sweep_is_refused(whole, lamp):
    changes = {"samples": 7, "seed": 3, "ranges": {"lr": (1e-4, 1e-3)}}
    message = r"whole holds another sweep \(.*samples: 5 there, 7 asked; seed: 0 there, 3 asked\)"
    with pytest.raises(AcfError, match=message):
        search(lamp, whole, **changes)


def test_extended(whole, lamp, tmp_path, monkeypatch):
    """More samples are added to those that were tried; what comes out is as if all had been asked for at once."""
    extended, fresh = tmp_path / "whole", tmp_path / "fresh"
    shutil.copytree(whole, extended)
    before = {path: path.stat().st_mtime_ns for path in (extended / "populations").rglob("*")}
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(search_module, "write_results", Mock(side_effect=KeyboardInterrupt))
        search(lamp, extended, samples=8)
    assert len(rows(extended)) == 6
    assert (extended / "best.toml").read_text() == (whole / "best.toml").read_text()
    assert not search(lamp, extended, samples=8).was_finished
    search(lamp, fresh, samples=8)
    assert [int(row["sample"]) for row in rows(extended)] == list(range(9))
    assert_same_results(extended, fresh)
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert search(lamp, extended, samples=8).was_finished
    with pytest.raises(AcfError, match=r"another sweep \(samples: 8 there, 5 asked\)"):
        search(lamp, extended)


def test_killed_and_started_again(whole, lamp, tmp_path):
    """SIGKILL in the midst of the second population."""
    out = tmp_path / "whole"
    args = ("sweep", lamp, *ARGS, "--preset", "quick", "--samples", 5, "--population", 4, "--out", out)
    process = start(*args)
    wait_until(lambda: n_logged(out / "populations" / "0001") >= 1, process)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (out / "best.toml").exists()
    states = [trial[1] for trial in trials(out)]
    assert len(states) == 6
    assert "RUNNING" in states
    kept = (out / "populations" / "0000" / "objective.json").stat().st_mtime_ns
    finish(start(*args))
    assert (out / "populations" / "0000" / "objective.json").stat().st_mtime_ns == kept
    assert_same_sweep(out, whole)


@pytest.mark.parametrize(("name", "calls"), [("begin", 1), ("_report", 2), ("_report", 3)])
def test_stopped_while_the_study_is_written(whole, lamp, tmp_path, monkeypatch, name, calls):
    """After the trials were begun, and between two trials of one population that are ended."""
    out = tmp_path / "whole"
    before, count = getattr(Ledger, name), 0

    def stop(*args):
        nonlocal count
        count += 1
        done = before(*args)
        if count == calls:
            raise KeyboardInterrupt
        return done

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Ledger, name, stop)
        search(lamp, out)
    assert not (out / "best.toml").exists()
    search(lamp, out)
    assert_same_sweep(out, whole)


def test_a_study_that_was_lost_is_made_again(whole, lamp, tmp_path):
    """The populations hold what is needed."""
    url = f"sqlite:///{tmp_path}/study.db"
    before = trials(whole)
    search(lamp, whole, storage=url)
    assert trials(whole, url) == before


def test_tpe_goes_on_with_the_same_samples(lamp, tmp_path, monkeypatch):
    search(lamp, tmp_path / "a" / "tpe", sampler="tpe")
    out = tmp_path / "b" / "tpe"
    with stopped_in_the_fourth_trial(monkeypatch):
        search(lamp, out, sampler="tpe")
    search(lamp, out, sampler="tpe")
    assert_same_sweep(out, tmp_path / "a" / "tpe")


@pytest.fixture
def tiny(tmp_path):
    """A preset of eight epochs: a pruned search drops samples after two."""
    file = tmp_path / "tiny.toml"
    file.write_text('method = "toy"\nepochs = 8\nbatch_size = 32\n')
    return str(file)


def test_pruned(lamp, tmp_path, tiny):
    """Half of the samples is dropped after a quarter of the epochs; the others end as if none had been."""
    for name in ("pruned", "full"):
        search(lamp, tmp_path / name, preset=tiny, prune=name == "pruned")
    full, pruned = (rows(tmp_path / name) for name in ("full", "pruned"))
    kept = [row["sample"] for row in pruned if row["state"] == "complete"]
    assert 3 <= len(kept) <= 4
    assert "0" in kept
    assert [row["epochs"] for row in pruned if row["state"] == "pruned"] == ["2"] * (6 - len(kept))
    dropped = {row["sample"]: float(row["objective"]) for row in pruned if row["state"] == "pruned"}
    states = {trial[4]["sample"]: trial for trial in trials(tmp_path / "pruned")}
    for row in full:
        if row["sample"] in kept:
            assert next(found for found in pruned if found["sample"] == row["sample"]) == row
            assert states[int(row["sample"])][1] == "COMPLETE"
        else:
            assert states[int(row["sample"])][1] == "PRUNED"
            assert states[int(row["sample"])][5] == {2: dropped[row["sample"]]}
    alone = RunDir(tmp_path / "full" / "populations" / "0000")
    went_on = RunDir(tmp_path / "pruned" / "populations" / "0003")
    assert went_on.read_config().members[0] == alone.read_config().members[0]
    assert_same_tensors(model(went_on.path, 0), model(alone.path, 0))
    assert json.loads((tmp_path / "pruned" / "populations" / "0000" / "config.json").read_text())["epochs"] == 2
    assert search(lamp, tmp_path / "pruned", preset=tiny, prune=True).was_finished
    more = search(lamp, tmp_path / "pruned", preset=tiny, prune=True, samples=7)
    added = [one.state for one in more.tried if one.sample.number > 5]
    assert sorted(added) == ["complete", "pruned"]


def test_all_that_is_added_diverges(lamp, tmp_path, tiny):
    """Of a pruned round nothing goes on then; what was found before is still the best, and more can be added."""
    changes = {"preset": tiny, "prune": True, "ranges": {"nan_from": (1.0, 40.0)}, "with_preset": False}
    assert draw({"nan_from": Range(1.0, 40.0)}, 0, 2)["nan_from"] < 2  # NaN within the first quarter
    for samples, last in ((1, "complete"), (2, "diverged"), (3, "complete")):
        found = search(lamp, tmp_path / "sweep", samples=samples, **changes)
        assert found.tried[-1].state == last
        assert found.best is not None


def test_a_sample_whose_seed_diverges_cannot_win(lamp, tmp_path):
    """`nan_from` is the epoch from which on the toy's loss is NaN, of two epochs."""
    ranges = {"lr": (1e-4, 1e-2), "nan_from": (1.0, 4.0)}
    found = search(lamp, tmp_path / "sweep", ranges=ranges, population=64)
    gone = {one.sample.number: one.state == "diverged" for one in found.tried}
    assert gone == {one.sample.number: one.sample.hparams.get("nan_from", 9) < 2 for one in found.tried}
    assert 0 < sum(gone.values()) < 6
    assert found.best is not None
    assert not gone[found.best.sample.number]
    states = {trial[4]["sample"]: trial[1] for trial in trials(tmp_path / "sweep")}
    assert {number: state == "FAIL" for number, state in states.items()} == gone


def test_all_diverged(lamp, tmp_path):
    ranges = {"nan_from": (0.1, 0.2)}
    found = search(lamp, tmp_path / "sweep", ranges=ranges, with_preset=False)
    assert found.best is None
    assert not (tmp_path / "sweep" / "best.toml").exists()
    assert {one.state for one in found.tried} == {"diverged"}
    assert {trial[1] for trial in trials(tmp_path / "sweep")} == {"FAIL"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"samples": 0}, "expected --samples of at least 1, got 0"),
        ({"seeds": 0}, "expected --seeds of at least 1, got 0"),
        ({"seed": -1}, r"expected --seed from 0 to 2\^31 - 1, got -1"),
        ({"latents": 0}, "expected --latents of at least 1, got 0"),
        ({"population": 1}, "expected --population of at least the 2 seeds of one sample, got 1"),
        ({"seeds": 1}, "--objective udr is the agreement between seeds: expected --seeds of at least 2, got 1"),
        ({"objective": "loss"}, "--objective loss cannot compare samples with different noise"),
        ({"method": "moon"}, "unknown method 'moon'"),
        ({"preset": "huge"}, "unknown preset 'huge'"),
        ({"ranges": {"warp": (1, 2)}}, "range of 'warp': toy has no such hyperparameter"),
        ({"storage": "postgresql://me@127.0.0.1:9/db"}, "me@127.0.0.1:9/db cannot be used"),
        ({"ray": "127.0.0.1:9"}, r"there is no Ray cluster at 127.0.0.1:9 \(.*refused.*\): start one with"),
        ({"ray": "auto", "preset": None}, "with --ray, say which --preset"),
        ({"ray": "moon"}, "--ray: expected HOST:PORT or auto, got 'moon'"),
    ],
)
def test_errors_come_before_any_work(lamp, tmp_path, changes, message):
    with pytest.raises(AcfError, match=message):
        search(lamp, tmp_path / "out", **changes)
    assert not (tmp_path / "out").exists()


def test_data_that_is_too_little(lamp, tmp_path):
    preset = tmp_path / "large.toml"
    preset.write_text('method = "toy"\nbatch_size = 500\n')
    message = "samples are trained on has 490 transitions, less than one batch of 500: collect more"
    with pytest.raises(AcfError, match=message):
        search(lamp, tmp_path / "out", preset=str(preset))
    assert not (tmp_path / "out").exists()


def test_data_that_is_not_there(tmp_path):
    with pytest.raises(AcfError, match=r"'moon' is no domain \(lamp, .*\), and no data set lies there"):
        search(Path("moon"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_data_without_factors(lamp, tmp_path):
    data = acf.Transitions.open(lamp)
    replace(data, factors=None, factor_names=(), controllable=()).save(tmp_path / "plain")
    for changes, message in (
        ({"objective": "supervised", "latents": 2}, "no true factors to select by: choose --objective udr or loss"),
        ({}, "say how many latents to learn: --latents K"),
    ):
        with pytest.raises(AcfError, match=message):
            search(tmp_path / "plain", tmp_path / "out", **changes)
        assert not (tmp_path / "out").exists()
    found = search(tmp_path / "plain", tmp_path / "out", objective=None, latents=2, samples=1)
    assert found.plan.objective == "udr"


def test_without_the_extra(lamp, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(AcfError, match=r"acf sweep needs the package optuna: pip install 'acf-rl\[sweep\]'"):
        search(lamp, tmp_path / "out")
