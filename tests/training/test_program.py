"""Populations larger than memory take turns, data larger than memory is streamed, and the numbers stay the same."""

import numpy as np
import pytest
from trained_runs import assert_same_tensors, metrics, model

import acf
from acf.errors import AcfError
from acf.training import program
from acf.training.stream import Stream

pytestmark = pytest.mark.usefixtures("small")

SEEDS = [7, 3, 5, 1]


@pytest.fixture
def train(lamp, tmp_path):
    def train(name, **options):
        return acf.train(lamp, tmp_path / name, **{"preset": "quick", "method": "toy", "seeds": SEEDS} | options).path

    return train


def stream_everything(patch):
    """As on a device with hardly any memory, and programs that need none."""
    patch.setattr(program, "memory", lambda: 1000)
    patch.setattr(program, "memory_of", lambda compiled: 0)


def test_streamed_data_gives_the_same_numbers(train, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        stream_everything(patch)
        run = train("streamed")
    assert "it is streamed" in capsys.readouterr().err
    whole = train("whole")
    assert "it is streamed" not in capsys.readouterr().err
    for n in range(4):
        assert_same_tensors(model(run, n), model(whole, n), 0)
    assert metrics(run) == metrics(whole)


def test_a_streamed_run_goes_on_exactly(train, monkeypatch):
    stream_everything(monkeypatch)
    whole = train("whole")
    calls = iter(range(1))

    def stop(self):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return take(self)

    take = Stream.take
    monkeypatch.setattr(Stream, "take", stop)
    with pytest.raises(KeyboardInterrupt):
        train("stopped", save_every=0)
    monkeypatch.setattr(Stream, "take", take)
    run = train("stopped")
    for n in range(4):
        assert_same_tensors(model(run, n), model(whole, n), 0)


def test_groups_take_turns(train, monkeypatch, capsys):
    """Four do not fit, nor do two: one at a time."""
    needed = iter([4, 2, 1])
    with monkeypatch.context() as patch:
        patch.setattr(program, "memory", lambda: 10**15)
        patch.setattr(program, "memory_of", lambda compiled: next(needed) * 10**15)
        run = train("turns")
    assert "4 members do not fit in memory at once: they train 1 at a time" in capsys.readouterr().err
    whole = train("whole")
    for n in range(4):
        assert_same_tensors(model(run, n), model(whole, n), 1e-4)
        assert acf.load(run, n).seed == SEEDS[n]
    for row, expected in zip(metrics(run), metrics(whole), strict=True):
        np.testing.assert_allclose(row["mse"], expected["mse"], rtol=1e-3)


def test_one_member_too_large(train, monkeypatch):
    monkeypatch.setattr(program, "memory", lambda: 2**30)
    monkeypatch.setattr(program, "memory_of", lambda compiled: 3 * 2**30)
    with pytest.raises(AcfError, match=r"one member needs 3\.0 GiB and the device has 1\.0: use a smaller batch"):
        train("run")


def test_memory_is_counted(lamp):
    """More members need more, and a step needs more than the parameters alone."""
    from acf.study import bench

    data = acf.Transitions.open(lamp)
    cases = [bench.make_case("lamp", "quick", P, data=data) for P in (1, 2)]
    one, two = (bench._make(case)[0].memory for case in cases)
    assert 4 * bench.parameters(cases[0]) < one < two
