"""Populations over eight devices: the same numbers, and nothing sent between devices."""

import re

import pytest
from runs import assert_same_tensors, finish, model, start

import acf

pytestmark = pytest.mark.usefixtures("small")

# Compiled quickly: it is the splitting that is looked at.
EIGHT = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"
COLLECTIVE = re.compile(r"all-gather|all-reduce|all-to-all|collective-permute|collective-broadcast|reduce-scatter")


def test_eight_members_on_eight_devices(lamp, tmp_path):
    run, dump = tmp_path / "run", tmp_path / "hlo"
    flags = f"{EIGHT} --xla_dump_to={dump} --xla_dump_hlo_as_text --xla_dump_hlo_module_re=one_member"
    finish(start("train", lamp, "--out", run, "--preset", "quick", "--seeds", 8, XLA_FLAGS=flags))
    alone = acf.train(lamp, tmp_path / "alone", preset="quick", seeds=[5]).path
    assert_same_tensors(model(run, 5), model(alone, 0), 1e-4)  # 32 steps in float32

    (file,) = dump.glob("*one_member*after_optimizations.txt")
    program = file.read_text()
    assert "num_partitions=8" in program
    assert not COLLECTIVE.search(program)


def test_three_members_on_eight_devices(lamp, tmp_path):
    args = ("train", lamp, "--out", tmp_path / "run", "--preset", "quick", "--method", "toy", "--seeds", 3)
    finish(start(*args, XLA_FLAGS=EIGHT))
    here = acf.train(lamp, tmp_path / "here", preset="quick", method="toy", seeds=range(3)).path
    for n in range(3):
        assert_same_tensors(model(tmp_path / "run", n), model(here, n), 1e-4)
