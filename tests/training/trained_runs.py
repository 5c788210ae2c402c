"""Starting runs in a process of their own, and looking at what they left."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import safetensors
import safetensors.numpy

SMALL_ACF = str(Path(__file__).with_name("small_acf.py"))


def start(*args: object, program: tuple[str, ...] = (SMALL_ACF,), **env: str) -> subprocess.Popen[str]:
    """The small `acf` command as a process."""
    cache = {"JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir)}  # pyright: ignore[reportAttributeAccessIssue]
    cache["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.3"
    return subprocess.Popen(
        [sys.executable, *program, *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | cache | env,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """What a process wrote to stderr, once it has ended well."""
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    return stderr


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def tensors(file: Path) -> dict[str, np.ndarray]:
    return safetensors.numpy.load_file(file)


def about(file: Path) -> dict[str, Any]:
    with safetensors.safe_open(file, framework="np") as opened:
        return json.loads(opened.metadata()["acf"])


def model(run: Path, member: int) -> dict[str, np.ndarray]:
    return tensors(run / "members" / str(member) / "model.safetensors")


def state(run: Path) -> Path:
    return run / "state" / "state.safetensors"


def metrics(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def n_logged(run: Path) -> int:
    file = run / "metrics.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def assert_same_tensors(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], tolerance: float = 0.0) -> None:
    assert found.keys() == expected.keys()
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=tolerance, atol=tolerance, err_msg=name)


def assert_same_run(found: Path, expected: Path) -> None:
    """Bit-equal in all but the time it took."""
    files = sorted(path.relative_to(expected) for path in expected.glob("members/*/model.safetensors"))
    assert files
    for file in [*files, Path("state/state.safetensors")]:
        assert_same_tensors(tensors(found / file), tensors(expected / file))
        ours, theirs = about(found / file), about(expected / file)
        assert ours.pop("seconds") > 0
        assert theirs.pop("seconds") > 0
        assert ours == theirs
    assert (found / "metrics.jsonl").read_bytes() == (expected / "metrics.jsonl").read_bytes()
