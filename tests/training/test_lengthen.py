"""A run is made longer by asking for more epochs: it ends as if they had been asked for from the start."""

import json
import sys
import time

import pytest
from trained_runs import about, assert_same_run, metrics, state

import acf
from acf.cli import main
from acf.errors import AcfError
from acf.training import RunDir, checkpoint
from acf.training.interrupt import Interrupted

pytestmark = pytest.mark.usefixtures("small")
STEPS = 16  # in an epoch, which is a chunk


@pytest.fixture
def train(lamp, tmp_path):
    def train(name, epochs, **options):
        return acf.train(
            lamp, tmp_path / name, **{"preset": "quick", "method": "toy", "seeds": [7, 3], "epochs": epochs} | options
        )

    return train


def test_it_ends_as_if_asked_for_at_once(train):
    first = train("run", 2)
    before = [*metrics(first.path)]
    made = json.loads(first.config.read_text())
    longer = train("run", 5)
    assert [line["step"] for line in metrics(longer.path)] == [STEPS * n for n in range(1, 6)]
    assert metrics(longer.path)[:2] == before  # not trained again
    assert json.loads(longer.config.read_text()) == made | {"epochs": 5}
    assert_same_run(longer.path, train("whole", 5).path)


def test_results_of_the_shorter_one_are_gone(train):
    run = train("run", 1)
    for file in (run.scores, run.report, run.report_figures / "figures.json", run.extras(0)):
        file.parent.mkdir(exist_ok=True)
        file.write_text("old")
    train("run", 2)
    assert not [file for file in (run.scores, run.report, run.report_figures, run.extras(0)) if file.exists()]
    assert about(run.model(1))["step"] == 2 * STEPS


def test_stopped_on_the_way(train):
    run = train("run", 1)
    with pytest.raises(Interrupted, match=f"stopped at step {2 * STEPS} of {4 * STEPS}"):
        train("run", 4, until=time.monotonic())
    with pytest.raises(AcfError, match="not finished"):
        acf.load(run.path)
    assert_same_run(train("run", 4).path, train("whole", 4).path)


def test_killed_before_it_goes_on(train, monkeypatch):
    """Neither the longer run's epochs with the shorter one's models, nor a run that cannot go on."""

    def killed(*args):
        raise KeyboardInterrupt

    run = train("run", 1)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(sys.modules["acf.training.train"], "write_atomic", killed)  # `acf.training.train` is a function
        train("run", 3)
    assert not run.looks_finished()
    assert_same_run(train("run", 3).path, train("whole", 3).path)


def test_one_that_is_not_finished(train):
    with pytest.raises(Interrupted):
        train("run", 3, until=time.monotonic())
    assert_same_run(train("run", 4).path, train("whole", 4).path)


def test_shorter_is_refused(train):
    run = train("run", 3)
    before = run.config.read_bytes()
    with pytest.raises(AcfError, match=r"was trained for 3 epochs, 2 asked: a run can be made longer, not shorter"):
        train("run", 2)
    with pytest.raises(AcfError, match=r"holds another run .*epochs: 3 there, 5 asked; .*lr: "):
        train("run", 5, hparams={"lr": 0.5})
    assert run.config.read_bytes() == before
    assert run.looks_finished()


def test_without_its_state(train):
    run = train("run", 1)
    run.state.unlink()
    with pytest.raises(AcfError, match=r"cannot go on: expected the state it ended in as .*state.safetensors"):
        train("run", 2)
    assert run.looks_finished()
    assert acf.load(run.path).seed == 7


def test_the_state_is_kept_at_the_end(train):
    run = train("run", 2)
    assert about(state(run.path))["step"] == 2 * STEPS
    assert checkpoint.about(run.model(0))["step"] == 2 * STEPS


def test_command(lamp, tmp_path, capsys):
    run = tmp_path / "run"
    for epochs, done in ((1, "is trained"), (2, "is trained"), (2, "was finished already: nothing to do")):
        args = ("train", lamp, "--out", run, "--preset", "quick", "--method", "toy", "--epochs", epochs)
        main([*map(str, args)])
        assert capsys.readouterr().out.startswith(f"{run} {done}\n")
    assert RunDir(run).read_config().epochs == 2
