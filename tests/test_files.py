import errno
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from acf.files import Busy, exclusive_lock, new_directory, write_atomic


def names(path):
    return sorted(file.name for file in path.iterdir())


def _fail(error):
    def raises(*args):
        raise error

    return raises


FAILURES = [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]


@pytest.mark.parametrize("data", ["naïve\n", "naïve\n".encode()])
def test_write_atomic_replaces(tmp_path, data):
    file = tmp_path / "a.json"
    file.write_text("old")
    write_atomic(file, data)
    assert file.read_text(encoding="utf-8") == "naïve\n"
    assert names(tmp_path) == ["a.json"]


@pytest.mark.parametrize("error", FAILURES, ids=repr)
@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
def test_write_atomic_failure_keeps_the_old_file(tmp_path, monkeypatch, error, step):
    file = tmp_path / "a.json"
    file.write_text("old")
    monkeypatch.setattr(step, _fail(error))
    with pytest.raises(type(error)):
        write_atomic(file, "new")
    monkeypatch.undo()
    assert file.read_text() == "old"
    assert names(tmp_path) == ["a.json"]


def test_new_directory_appears_when_whole(tmp_path):
    path = tmp_path / "deep" / "er" / "data"
    with new_directory(path) as directory:
        (directory / "sub").mkdir()
        (directory / "sub" / "a.txt").write_text("a")
        assert not path.exists()
        assert directory.parent == path.parent
        assert directory.name.startswith(f".data.{os.getpid()}.")
    assert (path / "sub" / "a.txt").read_text() == "a"
    assert names(path.parent) == ["data"]


@pytest.mark.parametrize("error", FAILURES, ids=repr)
def test_new_directory_failure_leaves_nothing(tmp_path, error):
    with pytest.raises(type(error)), new_directory(tmp_path / "data") as directory:
        (directory / "a.txt").write_text("a")
        raise error
    assert names(tmp_path) == []


@pytest.mark.parametrize("error", FAILURES, ids=repr)
@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.rename"])
def test_new_directory_failure_at_the_end_leaves_nothing(tmp_path, monkeypatch, error, step):
    with pytest.raises(type(error)), new_directory(tmp_path / "data") as directory:
        (directory / "a.txt").write_text("a")
        monkeypatch.setattr(step, _fail(error))
    monkeypatch.undo()
    assert names(tmp_path) == []


def test_new_directory_refuses_what_is_there(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("old")
    (tmp_path / "file").write_text("old")
    for name in ("data", "data/a.txt", "file"):
        with pytest.raises(FileExistsError, match="already exists"), new_directory(tmp_path / name):
            pytest.fail("the block ran")
    assert (tmp_path / "data" / "a.txt").read_text() == "old"
    assert names(tmp_path) == ["data", "file"]


def test_new_directory_fills_an_empty_one(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    with new_directory(tmp_path / "link") as directory:
        (directory / "a.txt").write_text("a")
    assert (tmp_path / "data" / "a.txt").read_text() == "a"


@pytest.mark.parametrize("kind", ["directory", "file"])
def test_new_directory_loses_a_race(tmp_path, kind):
    path = tmp_path / "data"
    with pytest.raises(FileExistsError, match="already exists"), new_directory(path):
        if kind == "file":
            path.write_text("theirs")
        else:
            path.mkdir()
            (path / "a.txt").write_text("theirs")
    assert (path if kind == "file" else path / "a.txt").read_text() == "theirs"
    assert names(tmp_path) == ["data"]


FILL = """
import sys, time
from acf.files import new_directory
with new_directory(sys.argv[1]) as directory:
    (directory / "large").write_text("half of it")
    print("filling", flush=True)
    time.sleep(60)
"""


@contextmanager
def filling(path):
    """Another process in the middle of filling the directory; killed in the end."""
    with subprocess.Popen([sys.executable, "-c", FILL, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"filling\n"
        yield process.pid
        process.kill()


def test_what_a_killed_process_left_is_removed_and_what_another_fills_is_not(tmp_path):
    path = tmp_path / "a[b]"
    with filling(path) as other:
        with filling(path) as killed:
            pass
        assert [f".{killed}." in name for name in names(tmp_path)].count(True) == 1
        with new_directory(path):
            assert not any(f".{killed}." in name for name in names(tmp_path))
            assert any(f".{other}." in name for name in names(tmp_path))


def test_lock_names_directory_and_pid(tmp_path):
    run = tmp_path / "run"
    program = "import sys; from acf.files import exclusive_lock\nwith exclusive_lock(sys.argv[1]): pass"
    with exclusive_lock(run):
        with pytest.raises(Busy, match=rf"run is in use .*pid {os.getpid()}\b"), exclusive_lock(run):
            pytest.fail("the block ran")
        other = subprocess.run([sys.executable, "-c", program, str(run)], capture_output=True, text=True)
        assert "Busy" in other.stderr
        assert f"pid {os.getpid()}" in other.stderr
    assert subprocess.run([sys.executable, "-c", program, str(run)]).returncode == 0
    with exclusive_lock(run):
        assert (run / ".lock").read_text() == str(os.getpid())


def test_lock_ends_with_a_killed_holder(tmp_path):
    program = (
        "import os, signal, sys; from acf.files import exclusive_lock\n"
        "with exclusive_lock(sys.argv[1]): os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)])
    with exclusive_lock(tmp_path):
        pass
