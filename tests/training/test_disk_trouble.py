"""A disk that is full or cannot be written: a clear error, the last good state kept, and the same command goes on."""

import errno

import pytest
from trained_runs import about, assert_same_run, state, tensors

import acf
from acf.errors import AcfError
from acf.training import checkpoint, loggers

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture
def train(lamp):
    def train(out):
        return acf.train(lamp, out, preset="quick", method="toy", seeds=[7, 3], epochs=5, save_every=0)

    return train


def full_after(n, function):
    """`function`, but the disk is full from its call number `n` (from 0) on."""
    calls = iter(range(10**6))

    def wrapped(*args):
        if next(calls) >= n:
            raise OSError(errno.ENOSPC, "No space left on device")
        return function(*args)

    return wrapped


PLACES = [
    (checkpoint, "write_atomic", 3),  # the fourth state
    (checkpoint, "write_atomic", 7),  # the last state and a model are written, the second model is not
    (loggers.JsonLines, "log", 3),
    (loggers.TensorBoard, "log", 3),
    (loggers.TensorBoard, "flush", 3),
]


@pytest.mark.parametrize(("owner", "name", "n"), PLACES, ids=lambda part: getattr(part, "__name__", None))
def test_full_disk(train, tmp_path, monkeypatch, owner, name, n):
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, full_after(n, getattr(owner, name)))
        with pytest.raises(AcfError) as caught:
            train(run)
    message = str(caught.value)
    assert message == (
        f"cannot work in {run} (No space left on device); the last good state is kept. "
        "Make room or mend the path or its permissions, then run the same command to go on."
    )
    assert about(state(run))["step"] > 0
    assert tensors(state(run))
    train(run)
    train(tmp_path / "whole")
    assert_same_run(run, tmp_path / "whole")


def test_full_before_the_first_state(train, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "write_atomic", full_after(0, checkpoint.write_atomic))
    with pytest.raises(AcfError, match=r"No space left on device\); there was no state to keep yet"):
        train(tmp_path)


def test_out_below_a_file(train, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(AcfError, match=r"cannot work in .*file/run \(Not a directory\)"):
        train(tmp_path / "file" / "run")


def test_out_is_a_file(train, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(AcfError, match=r"file is a file, expected a directory for a run. Choose another --out"):
        train(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"
