"""The same search on a real Ray cluster of this machine, one of whose workers is killed."""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import pytest
from sweeps import ARGS, search, trials
from trained_runs import SMALL_ACF, finish, n_logged, start, wait_until

from acf.errors import AcfError

pytestmark = pytest.mark.usefixtures("small")

RAY = ("--num-cpus=2", "--node-ip-address=127.0.0.1", "--include-dashboard=false", "--disable-usage-stats")
RAY += ("--object-store-memory=100000000",)
# On Linux too, what the name does not say: Ray then takes 127.0.0.1 for what it is, and listens there alone.
LOCAL = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
LOCAL |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}  # and nobody else here may use it
WORKERS = Path(__file__).with_name("workers")


@pytest.fixture(scope="module")
def cluster():
    """A head with room for two tasks, on this machine's own address; its processes are a group that ends here."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cache = {"JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir)}  # pyright: ignore[reportAttributeAccessIssue]
    cache["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.3"
    folder = tempfile.mkdtemp(prefix="acf-ray-")  # short: a socket's path may have 107 characters
    options = (*RAY, f"--port={port}", f"--temp-dir={folder}")
    head = subprocess.Popen(
        [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | cache | LOCAL | {"PYTHONPATH": f"{WORKERS}:{Path(SMALL_ACF).parent}"},
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 60
        while not answers(port):
            assert head.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        for signum in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(head.pid, signum)
            with contextlib.suppress(subprocess.TimeoutExpired):
                head.wait(3)
        shutil.rmtree(folder, ignore_errors=True)


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_killed_worker(cluster, lamp, tmp_path, monkeypatch):
    for name, value in LOCAL.items():
        monkeypatch.setenv(name, value)
    preset = tmp_path / "tiny.toml"
    preset.write_text('method = "toy"\nbatch_size = 32\nepochs = 80\n')
    here, there = tmp_path / "here" / "sweep", tmp_path / "there" / "sweep"
    search(lamp, here, preset=str(preset), samples=3)

    args = (*ARGS, "--preset", preset, "--samples", 3, "--population", 4)
    process = start("sweep", lamp, *args, "--out", there, "--ray", cluster)
    victim = there / "populations" / "0001"
    wait_until(lambda: n_logged(victim) >= 2, process)
    pid = int((victim / ".lock").read_text())
    assert not (victim / "objective.json").exists()
    os.kill(pid, signal.SIGKILL)
    finish(process)

    assert int((victim / ".lock").read_text()) != pid  # another worker took over
    assert (there / "trials.csv").read_bytes() == (here / "trials.csv").read_bytes()
    assert [trial[1] for trial in trials(there)] == ["COMPLETE"] * 4
    by_sample = [sorted(trials(out), key=lambda trial: trial[4]["sample"]) for out in (there, here)]
    assert by_sample[0] == by_sample[1]


def test_a_cluster_that_has_died(lamp, tmp_path, monkeypatch):
    """Ray remembers its address."""
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with pytest.raises(AcfError, match=r"there is no Ray cluster at .*:9 \(.*refused.*\): start one with `ray start"):
        search(lamp, tmp_path / "out", ray="auto")
    assert not (tmp_path / "out").exists()


def test_without_the_extra(lamp, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(AcfError, match=r"--ray needs the package ray: pip install 'acf-rl\[sweep\]'"):
        search(lamp, tmp_path / "out", ray="127.0.0.1:9")
