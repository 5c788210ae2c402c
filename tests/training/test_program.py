"""Populations larger than memory take turns, data larger than memory is streamed, and the numbers stay the same."""

import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trained_runs import assert_same_tensors, metrics, model

import acf
from acf.errors import AcfError
from acf.study import bench
from acf.training import program
from acf.training.config import make_hparams
from acf.training.population import Schedule, stack
from acf.training.stream import Stream

pytestmark = pytest.mark.usefixtures("small")

SEEDS = [7, 3, 5, 1]


@pytest.fixture
def train(lamp, tmp_path):
    def train(name, **options):
        return acf.train(lamp, tmp_path / name, **{"preset": "quick", "method": "toy", "seeds": SEEDS} | options).path

    return train


def stream_everything(patch):
    """As on a device with hardly any memory, where everything but the data needs none."""
    patch.setattr(program, "memory", lambda: 1000)
    patch.setattr(program, "memory_of", lambda compiled: 0)
    patch.setattr(program, "_bytes", lambda shapes: 0)


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
        patch.setattr(program, "memory", lambda: 1.5e15)
        patch.setattr(program, "memory_of", lambda compiled: next(needed) * 10**15)
        run = train("turns")
    assert "4 members do not fit in memory at once: they train 1 at a time" in capsys.readouterr().err
    whole = train("whole")
    for n in range(4):
        assert_same_tensors(model(run, n), model(whole, n), 1e-4)
        assert acf.load(run, n).seed == SEEDS[n]
    for row, expected in zip(metrics(run), metrics(whole), strict=True):
        np.testing.assert_allclose(row["mse"], expected["mse"], rtol=1e-3)


def test_data_is_streamed_where_no_member_fits_beside_it(train, monkeypatch, capsys):
    """It fills less than half of the memory; four, two and one member beside it more than the rest."""
    needed = iter([4, 3, 2, 0])
    with monkeypatch.context() as patch:
        patch.setattr(program, "memory", lambda: 10**15)
        patch.setattr(program, "memory_of", lambda compiled: next(needed) * 10**15)
        run = train("streamed")
    said = capsys.readouterr().err
    assert "it is streamed" in said
    assert "do not fit" not in said
    whole = train("whole")
    for n in range(4):
        assert_same_tensors(model(run, n), model(whole, n), 0)


@pytest.mark.parametrize(
    ("seeds", "needed", "message"),
    [
        # Four, two, one; then all again with the data streamed.
        (SEEDS, [9, 8, 7, 6, 5, 3], "4 members in turn need 3.0 GiB and the device has 1.0: use a smaller batch or "),
        ([7], [9, 3], "one member needs 3.0 GiB and the device has 1.0: use a smaller batch or network"),
    ],
)
def test_not_even_one_member_fits(train, monkeypatch, seeds, needed, message):
    left = iter(needed)
    monkeypatch.setattr(program, "memory", lambda: 2**30)
    monkeypatch.setattr(program, "memory_of", lambda compiled: next(left) * 2**30)
    with pytest.raises(AcfError, match=re.escape(message)):
        train("run", seeds=seeds)


def test_a_group_that_waits_holds_the_only_batches_that_wait(lamp, monkeypatch):
    """Streamed, every group's batches would lie on the device if all were started at once."""

    def slow(model, batch, key, hparams):
        small = 0.01 * jax.random.normal(key, (200, 200))
        takes_long = jnp.linalg.matrix_power(small, 200).sum()
        return (model.encode(batch.x) ** 2).mean() + takes_long, {}

    stream_everything(monkeypatch)
    monkeypatch.setattr(program, "_fit", one_at_a_time)
    data = acf.Transitions.open(lamp)
    case = bench.make_case("lamp", "quick", len(SEEDS), data=data, method="toy")
    case = replace(case, method=replace(case.method, loss=slow))
    running, schedule, _ = bench._make(case)
    for step in (0, schedule.chunk):
        *others, last = map(jax.tree.leaves, running.start(step)._outcomes)
        assert all(leaf.is_ready() for outcome in others for leaf in outcome)
        assert not any(leaf.is_ready() for leaf in last)
    running.close()


def one_at_a_time(learner, schedule, data, given, known):
    return program._compile(learner, schedule, data, given, size=1, streamed=True, known=known)


@pytest.mark.parametrize("size", [4, 2, 1])
@pytest.mark.parametrize("streamed", [False, True])
def test_what_lies_beside_a_program_counts(lamp, monkeypatch, size, streamed):
    """The states of groups that wait for their turn and, where the data is streamed, the batches of two chunks."""
    data, members = acf.Transitions.open(lamp), 4
    case = bench.make_case("lamp", "quick", members, data=data, method="toy")
    learner, schedule = case.method.bind(case.spec), Schedule(len(data), case.batch_size, 1)
    given = jnp.arange(members), stack([make_hparams(case.method, case.hparams)] * members)
    monkeypatch.setattr(program, "memory_of", lambda compiled: 0)
    fit = program._compile(learner, schedule, data, given, size, streamed)
    state = 4 * (3 * bench.parameters(case) + 2)  # weights and two moments, how many steps they had, diverged_at
    batches = schedule.chunk * case.batch_size * (2 * data.frames[0].nbytes + data.action.itemsize)
    assert fit.needed == (members - size) * state + (2 * size * batches if streamed else 0)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "1000"}, 1000),
        ({"proc/self/cgroup": "0::/job/7", "sys/fs/cgroup/job/memory.max": "2000"}, 2000),
        (
            {
                "proc/self/cgroup": "0::/job/7",
                "sys/fs/cgroup/job/memory.max": "2000",
                "sys/fs/cgroup/job/7/memory.max": "max",
            },
            2000,
        ),
        ({"proc/self/cgroup": "9:memory:/old"}, None),
    ],
)
def test_a_container_has_less_memory_than_its_machine(tmp_path, files, expected):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content + "\n")
    machine = program._host_memory(tmp_path / "none")
    assert machine > 2**28
    assert program._host_memory(tmp_path) == (expected or machine)


def test_memory_is_counted(lamp):
    """Two members need more than one, whose state is its weights and two moments, four bytes each."""
    data = acf.Transitions.open(lamp)
    cases = [bench.make_case("lamp", "quick", P, data=data, method="toy") for P in (1, 2)]
    one, two = (bench._make(case)[0].memory for case in cases)
    assert 12 * bench.parameters(cases[0]) < one < two
