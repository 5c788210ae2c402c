"""Populations over several devices: the same numbers as on one, and nothing sent between devices."""

import re

import pytest
from trained_runs import assert_same_tensors, finish, model, start

import acf

pytestmark = pytest.mark.usefixtures("small")

# Compiled quickly: it is the splitting that is looked at.
DEVICES = "--xla_backend_optimization_level=0 --xla_force_host_platform_device_count="
COLLECTIVE = re.compile(r"all-gather|all-reduce|all-to-all|collective-permute|collective-broadcast|reduce-scatter")


def test_two_members_a_device(lamp, tmp_path):
    """The real method: what a member gives neither depends on its neighbour nor on its device."""
    run, dump = tmp_path / "run", tmp_path / "hlo"
    flags = f"{DEVICES}4 --xla_dump_to={dump} --xla_dump_hlo_as_text --xla_dump_hlo_module_re=all_members"
    finish(start("train", lamp, "--out", run, "--preset", "quick", "--seeds", 8, "--epochs", 1, XLA_FLAGS=flags))
    for seed in (4, 7):
        alone = acf.train(lamp, tmp_path / f"{seed}", preset="quick", seeds=[seed], epochs=1).path
        assert_same_tensors(model(run, seed), model(alone, 0), 1e-4)  # 16 steps in float32

    (file,) = dump.glob("*all_members*after_optimizations.txt")
    program = file.read_text()
    assert "num_partitions=4" in program
    assert not COLLECTIVE.search(program)


NEEDED = """
import sys, jax, acf
from acf.study import bench
from acf.training import program
from acf.training.config import make_hparams
from acf.training.population import Schedule, stack

case = bench.make_case("lamp", "quick", 4, data=acf.Transitions.open(sys.argv[1]))
given = jax.numpy.arange(4), stack([make_hparams(case.method, case.hparams)] * 4)
program.memory_of = lambda compiled: 0
program.compile_program = lambda *args: None
schedule, learner = Schedule(len(case.data), case.batch_size, 1), case.method.bind(case.spec)
fits = [program._compile(learner, schedule, case.data, given, 2, streamed) for streamed in (False, True)]
print([fit.mesh.size for fit in fits], [fit.needed for fit in fits])
"""


def test_memory_is_that_of_one_device(lamp):
    """Two members wait while two train: on two devices half of what it is on one, beside the program itself."""
    found = []
    for devices in (1, 2):
        process = start(lamp, program=("-c", NEEDED), XLA_FLAGS=f"{DEVICES}{devices}")
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert out.startswith(f"{[devices] * 2} ")
        found.append([int(number) for number in re.findall(r"\d{3,}", out)])
    (waiting, streaming), halves = found
    assert waiting < streaming
    assert halves == [waiting // 2, streaming // 2]


@pytest.mark.parametrize(("members", "devices", "used"), [(8, 8, 8), (3, 8, 3), (3, 2, 1)])
def test_members_on_many_devices(lamp, tmp_path, members, devices, used):
    """Where some are left idle that could have taken members, it says so."""
    args = ("train", lamp, "--out", tmp_path / "run", "--preset", "quick", "--method", "toy", "--seeds", members)
    said = finish(start(*args, XLA_FLAGS=f"{DEVICES}{devices}"))
    if used < min(members, devices):
        assert f"{members} members train on {used} of {devices} devices" in said
    else:
        assert "members train on" not in said
    here = acf.train(lamp, tmp_path / "here", preset="quick", method="toy", seeds=range(members)).path
    for n in range(members):
        assert_same_tensors(model(tmp_path / "run", n), model(here, n), 1e-4)
