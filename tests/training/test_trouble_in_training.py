"""Members that diverge or collapse: named, reported once, and no trouble to the others."""

import math
import re

import numpy as np
import pytest
from trained_runs import assert_same_tensors, metrics, model

import acf
from acf.errors import AcfError
from acf.methods.base import Spec
from acf.training.config import Config, Member
from acf.training.watch import Watch

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture
def train(lamp, tmp_path):
    def train(name, **options):
        return acf.train(lamp, tmp_path / name, **{"preset": "quick", "method": "toy", "epochs": 4} | options).path

    return train


def test_diverged_member(train, capsys):
    """The loss of the member in the middle is NaN from step 32 on, of the third from the start."""
    settings = [{}, {"nan_from": 2.0}, {"nan_from": 0.0}, {"lr": 1e-2}]
    run = train("run", seeds=[7, 3, 3, 1], hparams=settings)
    said = re.findall(r"warning: (.*)", capsys.readouterr().err)
    assert [line.split(":")[0] for line in said] == [
        "member 2 (seed 3) diverged at step 0",
        "member 1 (seed 3) diverged at step 32",
    ]
    assert all("the others go on" in line and "learning rate" in line for line in said)

    for n, seed in ((0, 7), (3, 1)):
        alone = train(f"alone-{n}", seeds=[seed], hparams=settings[n])
        assert_same_tensors(model(run, n), model(alone, 0), 1e-4)
    # Stopped with the weights it had.
    assert_same_tensors(model(run, 1), model(train("short", seeds=[3], epochs=2), 0), 1e-4)
    assert_same_tensors(model(run, 2), model(train("still", seeds=[3], hparams={"lr": 0.0}), 0), 1e-6)
    for n in range(4):
        assert all(np.isfinite(values).all() for values in model(run, n).values())
    assert [acf.load(run, n).diverged_at for n in range(4)] == [-1, 32, 0, -1]
    rows = metrics(run)
    assert [row["mse"][1] is None for row in rows] == [False, False, True, True]


def test_all_diverged(train, tmp_path):
    with pytest.raises(AcfError, match=r"every member diverged.*learning rate"):
        train("run", seeds=[7, 3], hparams=[{"nan_from": 1.0}, {"nan_from": 0.0}])
    with pytest.raises(AcfError, match="not finished"):
        acf.load(tmp_path / "run")


def config(members=2, batch_size=128):
    spec = Spec((32, 32, 3), 3, 0, 2)
    return Config("acf", spec, tuple(Member(seed, {}) for seed in (7, 3)[:members]), batch_size, 1, {})


LOG_N = math.log(128)


def test_collapse_is_said_once_a_member():
    """Patience is a tenth of the run: 1,000 steps."""
    watch = Watch(config(), 10_000)
    said = {}
    for step in range(100, 3001, 100):
        fwd = [LOG_N * 0.999, LOG_N if step > 500 else 1.0]
        said[step] = watch.look(step, {"fwd": fwd}, [-1, -1])
    assert [step for step, messages in said.items() if messages] == [1100, 1600]
    (first,), (second,) = said[1100], said[1600]
    assert first.startswith("member 0 (seed 7) has collapsed: L_fwd is at log N = 4.85 since step 100")
    assert second.startswith("member 1 (seed 3) has collapsed")
    assert "Try another seed, a lower learning rate or less latent noise." in first


@pytest.mark.parametrize(
    "fwd",
    [
        lambda step: LOG_N if step < 900 else 4.0,  # a slow start
        lambda step: LOG_N if step % 900 else 4.5,  # moves now and then
        lambda step: 0.98 * LOG_N,
    ],
)
def test_no_collapse(fwd):
    watch = Watch(config(1), 10_000)
    assert not [said for step in range(100, 5001, 100) for said in watch.look(step, {"fwd": [fwd(step)]}, [-1])]


def test_short_runs_are_given_200_steps():
    watch = Watch(config(1), 300)
    assert [bool(watch.look(step, {"fwd": [LOG_N]}, [-1])) for step in (10, 110, 209, 210, 300)] == [0, 0, 0, 1, 0]


def test_a_method_without_forward_loss_does_not_collapse():
    assert not [said for step in range(0, 5000, 100) for said in Watch(config(1), 100).look(step, {"mse": [9.0]}, [-1])]


def test_collapse_is_shown(train, capsys):
    log_n = math.log(32)
    train("run", seeds=[7, 3], epochs=16, hparams=[{"fwd": log_n}, {}])
    (said,) = re.findall(r"warning: (.*)", capsys.readouterr().err)
    assert said.startswith("member 0 (seed 7) has collapsed: L_fwd is at log N = 3.47 since step 16")
