"""Where Pallas cannot be imported at all, everything but its kernels works."""

import subprocess
import sys

PROGRAM = """
import sys
sys.modules["jax.experimental.pallas"] = None

import acf
import acf.nn, acf.methods.acf, acf.study.bench
from acf.training import presets

data, run = sys.argv[1:]
presets.QUICK = {"transitions": 600, "depth": 2, "hidden": 8, "epochs": 1, "batch_size": 32}
acf.train(data, run, preset="quick")
print(acf.load(run).encode(acf.Transitions.open(data).frames[:3]).shape)
"""


def test_acf_trains_on_a_cpu(lamp, tmp_path):
    """In a process of its own: this one may have imported Pallas already."""
    command = [sys.executable, "-c", PROGRAM, str(lamp), str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[-2] == "(3, 4)"
