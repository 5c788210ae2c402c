"""A study in a real PostgreSQL server: private, on a socket in a folder of its own, reached by no network."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from sweeps import search, stopped_in_the_fourth_trial, trials

from acf.errors import AcfError
from acf.study.sweep.ledger import open_storage

pytestmark = pytest.mark.usefixtures("small")


def program(name):
    """On the PATH, or where Debian keeps it."""
    found = shutil.which(name) or max(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")), default=None)
    if found is None:
        pytest.skip(f"no PostgreSQL server is installed: {name} was found neither on the PATH nor where Debian has it")
    return found


@pytest.fixture(scope="module")
def server():
    """The URL of a running server, and a way to stop it."""
    initdb, pg_ctl = program("initdb"), program("pg_ctl")
    user = None
    if os.geteuid() == 0:  # which PostgreSQL refuses to run as
        if "postgres" not in {entry.pw_name for entry in pwd.getpwall()}:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        user = "postgres"
    folder = Path(tempfile.mkdtemp(prefix="acf-pg-"))  # short: a socket's path may have 107 characters
    if user:
        shutil.chown(folder, user)
    data, options = str(folder / "data"), f"-c listen_addresses='' -k {folder}"

    def run(*args):
        done = subprocess.run([*args], user=user, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert done.returncode == 0, args

    try:
        run(initdb, "-D", data, "-U", "acf", "-A", "trust", "--no-sync")
        run(pg_ctl, "-D", data, "-o", options, "-w", "-l", str(folder / "log"), "start")
        try:
            yield f"postgresql://acf@/postgres?host={folder}", lambda: run(pg_ctl, "-D", data, "-m", "fast", "stop")
        finally:
            subprocess.run([pg_ctl, "-D", data, "-m", "fast", "stop"], user=user, cwd="/", capture_output=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_study_in_postgresql(server, lamp, tmp_path, monkeypatch):
    """Stopped between two trials and started again, it holds what the file would."""
    url, stop_server = server
    out = tmp_path / "a" / "sweep"
    with stopped_in_the_fourth_trial(monkeypatch):
        search(lamp, out, storage=url)
    assert [trial[1] for trial in trials(out, open_storage(url))] == ["COMPLETE"] * 3 + ["RUNNING"] * 3
    search(lamp, out, storage=url)
    assert not (out / "study.journal").exists()
    search(lamp, tmp_path / "b" / "sweep")
    assert trials(out, open_storage(url)) == trials(tmp_path / "b" / "sweep")

    stop_server()
    with pytest.raises(AcfError, match=r"--storage postgresql\+psycopg://.* cannot be used .*: check the URL"):
        search(lamp, tmp_path / "c", storage=url)
    assert not (tmp_path / "c").exists()
