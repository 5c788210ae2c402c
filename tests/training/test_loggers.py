import json
import math
import struct
import sys
from types import SimpleNamespace

import pytest
from tensorboardX.proto.event_pb2 import Event, SessionLog  # pyright: ignore[reportAttributeAccessIssue]
from tensorboardX.record_writer import masked_crc32c
from trained_runs import metrics, state

import acf
from acf.errors import AcfError
from acf.methods.base import Spec
from acf.training.config import Config, Member
from acf.training.loggers import JsonLines, TensorBoard, WandB

CONFIG = Config("acf", Spec((32, 32, 3), 3, 0, 2), (Member(7, {"lr": 1.0}), Member(3, {"lr": 2.0})), 128, 1, {})


def events(directory):
    """Every event of every file, in order, its checksums checked."""
    found = []
    for file in sorted(directory.iterdir(), key=lambda file: int(file.suffix[1:])):
        data = file.read_bytes()
        while data:
            head, (size, head_crc) = data[:8], struct.unpack("<QI", data[:12])
            body, (body_crc,) = data[12 : 12 + size], struct.unpack("<I", data[12 + size : 16 + size])
            assert (masked_crc32c(head), masked_crc32c(body)) == (head_crc, body_crc)
            found.append(Event.FromString(body))
            data = data[16 + size :]
    return found


def scalars(directory):
    return [(e.step, v.tag, v.simple_value) for e in events(directory) for v in e.summary.value]


def test_lines(tmp_path):
    log = JsonLines(tmp_path / "metrics.jsonl", 0)
    log.log(8, 0.25, {"loss": [1.5, math.nan], "fwd": [math.inf, -math.inf]})
    # There before the file is closed: a person may look while it runs.
    assert metrics(tmp_path) == [{"step": 8, "epoch": 0.25, "loss": [1.5, None], "fwd": [None, None]}]
    assert "NaN" not in (tmp_path / "metrics.jsonl").read_text()
    log.flush()
    log.close()


LINES = [json.dumps({"step": step, "epoch": step / 10, "loss": [0.5]}) + "\n" for step in (8, 16, 24, 32)]


@pytest.mark.parametrize(
    "lost",
    ["", LINES[2], LINES[2] + LINES[3], LINES[2][:9], '{"step"', "\0\0\0", "\0\0\n", "[]\n", "{}\n", "\udcff\n"],
)
def test_lines_of_lost_work_are_dropped(tmp_path, lost):
    """After the saved step 16: whole lines, a torn one, what a power cut leaves."""
    file = tmp_path / "metrics.jsonl"
    file.write_bytes(("".join(LINES[:2]) + lost).encode(errors="surrogateescape"))
    log = JsonLines(file, 16)
    log.log(24, 2.4, {"loss": [0.5]})
    log.close()
    assert file.read_text() == "".join(LINES[:3])


def test_everything_is_dropped_without_a_state(tmp_path):
    file = tmp_path / "metrics.jsonl"
    file.write_text("".join(LINES))
    JsonLines(file, 0).close()
    assert file.read_text() == ""


def test_tensorboard(tmp_path):
    log = TensorBoard(tmp_path, 0, CONFIG)
    log.log(8, 1.0, {"loss": [1.5, 2.5], "fwd": [0.5, math.nan]})
    log.log(16, 2.0, {"loss": [1.25, 2.25]})
    log.flush()
    expected = [
        (8, "loss/member0-seed7", 1.5),
        (8, "loss/member1-seed3", 2.5),
        (8, "fwd/member0-seed7", 0.5),
        (16, "loss/member0-seed7", 1.25),
        (16, "loss/member1-seed3", 2.25),
    ]
    assert scalars(tmp_path) == expected
    log.close()

    log = TensorBoard(tmp_path, 8, CONFIG)  # the work after step 8 was lost
    log.log(16, 2.0, {"loss": [1.0, 2.0]})
    log.close()
    assert len(list(tmp_path.iterdir())) == 2
    assert scalars(tmp_path)[len(expected) :] == [(16, "loss/member0-seed7", 1.0), (16, "loss/member1-seed3", 2.0)]
    restarts = [event.step for event in events(tmp_path) if event.session_log.status == SessionLog.START]
    assert restarts == [9]


def test_wandb(tmp_path, monkeypatch):
    calls = []
    run = SimpleNamespace(
        log=lambda *args, **options: calls.append((args, options)), finish=lambda: calls.append("end")
    )
    stub = SimpleNamespace(init=lambda **options: calls.append(options) or run)
    monkeypatch.setitem(sys.modules, "wandb", stub)
    log = WandB("project", tmp_path / "run", CONFIG)
    log.log(8, 0.5, {"loss": [1.5, 2.5]})
    log.flush()
    log.close()
    about, logged, end = calls
    assert (about["project"], about["name"], about["dir"]) == ("project", "run", str(tmp_path / "run"))
    assert [member["seed"] for member in about["config"]["members"]] == [7, 3]
    assert logged == (({"epoch": 0.5, "loss/member0": 1.5, "loss/member1": 2.5},), {"step": 8})
    assert end == "end"


@pytest.mark.usefixtures("small")
def test_wandb_is_missing(lamp, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(AcfError, match=r"--wandb needs the package wandb: pip install 'acf-rl\[wandb\]'"):
        acf.train(lamp, tmp_path, preset="quick", method="toy", wandb="project")
    assert not state(tmp_path).exists()
    acf.train(lamp, tmp_path, preset="quick", method="toy")


@pytest.mark.usefixtures("small")
def test_a_run_logs_to_all(lamp, tmp_path, monkeypatch):
    logged = []
    run = SimpleNamespace(log=lambda terms, step: logged.append((step, terms)), finish=lambda: logged.append("end"))
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=lambda **options: run))
    acf.train(lamp, tmp_path, preset="quick", method="toy", seeds=[7, 3], wandb="project")
    rows = metrics(tmp_path)
    assert [(row["step"], row["epoch"]) for row in rows] == [(16, 1.0), (32, 2.0)]
    assert all(row.keys() == {"step", "epoch", "loss", "mse", "fwd"} for row in rows)
    assert logged == [
        *(
            (
                r["step"],
                {"epoch": r["epoch"]} | {f"{t}/member{n}": r[t][n] for t in ("loss", "mse", "fwd") for n in (0, 1)},
            )
            for r in rows
        ),
        "end",
    ]
    found = {(step, tag): value for step, tag, value in scalars(tmp_path / "tensorboard")}
    assert found == {
        (row["step"], f"{term}/member{n}-seed{seed}"): pytest.approx(row[term][n], rel=1e-6)
        for row in rows
        for term in ("loss", "mse", "fwd")
        for n, seed in enumerate((7, 3))
    }
