"""Stopped in any way and started again, a run ends as if it had never been stopped."""

import os
import random
import re
import signal
import time

import pytest
from trained_runs import about, assert_same_run, finish, n_logged, start, state, wait_until

import acf
from acf.cli import main
from acf.errors import AcfError
from acf.files import exclusive_lock
from acf.training import checkpoint
from acf.training.interrupt import Interrupted
from acf.training.loggers import JsonLines

pytestmark = pytest.mark.usefixtures("small")

MODULE = ("-m", "acf")
STEPS = 16  # in an epoch, which is a chunk


def command(data, run, *more):
    return ("train", data, "--out", run, "--preset", "quick", "--seed", 3, "--save-every", 0.2, *more)


def start_training(args, run, chunks=0, **options):
    """A process that has just trained so many chunks, and one more."""
    process = start(*args, **options)
    assert process.stderr is not None
    first = process.stderr.readline()
    assert re.search(r"step \d+/\d+", first), first + process.communicate()[1]
    goal = n_logged(run) + chunks
    wait_until(lambda: n_logged(run) >= goal, process)
    return process


def kill_and_resume(args, run, kills, chunks, **options):
    """SIGKILL at random moments, then let it finish. Returns the steps that it had to go on from."""
    rng, left_at = random.Random(0), []
    for _ in range(kills):
        process = start_training(args, run, rng.randint(0, chunks), **options)
        time.sleep(rng.uniform(0, 0.2))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        left_at.append(about(state(run))["step"] if state(run).exists() else 0)
    finish(start(*args, **options))
    return left_at


def test_killed_again_and_again(lamp, tmp_path):
    run, epochs = tmp_path / "killed", 30
    left_at = kill_and_resume(command(lamp, run, "--epochs", epochs), run, 3, chunks=7)
    assert left_at == sorted(left_at)
    assert 0 < left_at[-1] < epochs * STEPS
    acf.train(lamp, tmp_path / "whole", preset="quick", seeds=[3], epochs=epochs)
    assert_same_run(run, tmp_path / "whole")


@pytest.mark.slow
def test_killed_again_and_again_in_full_size(lamp, tmp_path):
    """The command as it is, the network of the quick preset, two members."""
    args = [command(lamp, tmp_path / name, "--epochs", 60, "--seeds", 2) for name in ("killed", "whole")]
    left_at = kill_and_resume(args[0], tmp_path / "killed", 8, chunks=6, program=MODULE)
    assert 0 < left_at[-1] < 60 * 4
    finish(start(*args[1], program=MODULE))
    assert_same_run(tmp_path / "killed", tmp_path / "whole")


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop(lamp, tmp_path, signum):
    run, epochs = tmp_path / "run", 80
    args = command(lamp, run, "--method", "toy", "--epochs", epochs, "--seeds", 2)
    process = start_training(args, run, 5)
    process.send_signal(signum)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 128 + signum
    assert "Traceback" not in stderr
    assert "stopping as soon as what was begun is saved" in stderr
    stopped = re.search(rf"stopped at step (\d+) of {epochs * STEPS} and saved; the same command goes on", stderr)
    assert stopped, stderr
    step = int(stopped[1])
    assert 5 * STEPS < step < epochs * STEPS
    assert about(state(run))["step"] == step == STEPS * n_logged(run)

    with pytest.raises(AcfError, match="not finished"):
        acf.load(run)
    for out in (run, tmp_path / "whole"):
        acf.train(lamp, out, preset="quick", method="toy", seeds=[3, 4], epochs=epochs)
    assert_same_run(run, tmp_path / "whole")


def test_time_is_up(lamp, tmp_path):
    def train(name, **options):
        acf.train(lamp, tmp_path / name, preset="quick", method="toy", seeds=[3], **options)

    with pytest.raises(Interrupted, match=f"stopped at step {STEPS} of {2 * STEPS} and saved") as caught:
        train("run", until=time.monotonic())
    assert caught.value.signum is None
    assert caught.value.exit_code == 124
    train("run", until=time.monotonic() + 600)
    train("whole")
    assert_same_run(tmp_path / "run", tmp_path / "whole")


def test_time_is_up_after_the_last_step(lamp, tmp_path):
    """There is nothing to go on with: the models are written."""
    acf.train(lamp, tmp_path, preset="quick", method="toy", epochs=1, until=time.monotonic())
    assert acf.load(tmp_path).seed == 0


def test_asked_to_stop_in_the_last_step(lamp, tmp_path, monkeypatch):
    """Training is done, but what would come after it is not begun."""

    def ask(self, *args):
        os.kill(os.getpid(), signal.SIGTERM)
        return log(self, *args)

    log = JsonLines.log
    monkeypatch.setattr(JsonLines, "log", ask)
    with pytest.raises(Interrupted, match="stopped after the last step: the models are saved") as caught:
        acf.train(lamp, tmp_path, preset="quick", method="toy", epochs=1)
    assert caught.value.signum == signal.SIGTERM
    assert acf.load(tmp_path).seed == 0


def test_finished_run_is_left_alone(lamp, tmp_path, capsys):
    run = tmp_path / "run"
    args = [*map(str, command(lamp, run, "--method", "toy"))]
    main(args)
    assert "run is trained" in capsys.readouterr().out
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.name != ".lock"}
    main(args)
    assert "run was finished already: nothing to do" in capsys.readouterr().out
    assert before == {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.name != ".lock"}


def test_killed_while_the_models_are_written(lamp, tmp_path, monkeypatch):
    """The last state is saved, some models are there, some are not."""
    save = checkpoint.save

    def save_one_model(path, *rest):
        if path.parts[-2] == "1":
            raise KeyboardInterrupt
        save(path, *rest)

    def train(name):
        acf.train(lamp, tmp_path / name, preset="quick", method="toy", seeds=[3, 4])

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(checkpoint, "save", save_one_model)
        train("run")
    assert (tmp_path / "run/members/0/model.safetensors").exists()
    assert not (tmp_path / "run/members/1").exists()
    train("run")
    train("whole")
    assert_same_run(tmp_path / "run", tmp_path / "whole")


def test_left_over_temporary_files_are_removed(lamp, tmp_path):
    left_over = tmp_path / "state" / ".state.safetensors.1234.abcd.tmp"
    left_over.parent.mkdir()
    left_over.write_bytes(b"half a state")
    acf.train(lamp, tmp_path, preset="quick", method="toy")
    assert [path.name for path in left_over.parent.iterdir()] == ["state.safetensors"]


def test_second_process_is_turned_away(lamp, tmp_path):
    with exclusive_lock(tmp_path):
        process = start(*command(lamp, tmp_path, "--method", "toy"))
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 1
    assert stderr == f"error: {tmp_path} is in use by another process (pid {os.getpid()}); wait for it or stop it\n"
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
