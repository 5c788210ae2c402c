"""Where the numbers of a run go: `metrics.jsonl`, TensorBoard, and Weights & Biases if asked."""

import json
import math
import os
import time
from pathlib import Path
from typing import Any, Protocol

from acf.errors import AcfError
from acf.files import write_atomic
from acf.training.config import Config

Terms = dict[str, list[float]]  # a loss term by name: one value a member, in the members' order


class Logger(Protocol):
    def log(self, step: int, epoch: float, terms: Terms) -> None: ...
    def flush(self) -> None: ...  # to the disk: called before a state is saved, so that what led to it is kept
    def close(self) -> None: ...


class JsonLines:
    """One line a chunk. Lines after `step` are of work that was lost with a killed process: they are dropped."""

    def __init__(self, path: Path, step: int):
        if path.exists():
            lines = path.read_text(errors="replace").splitlines(keepends=True)
            write_atomic(path, "".join(line for line in lines if _whole_up_to(step, line)))
        self._file = path.open("a")

    def log(self, step: int, epoch: float, terms: Terms) -> None:
        # NaN is not JSON: a diverged member's numbers are null.
        plain = {name: [v if math.isfinite(v) else None for v in values] for name, values in terms.items()}
        self._file.write(json.dumps({"step": step, "epoch": round(epoch, 4), **plain}) + "\n")
        self._file.flush()

    def flush(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def _whole_up_to(step: int, line: str) -> bool:
    try:
        return line.endswith("\n") and json.loads(line)["step"] <= step
    except (ValueError, KeyError, TypeError):  # torn by a full disk or a power cut
        return False


class TensorBoard:
    """Scalars as TensorBoard reads them; a viewer hides what was logged after `step`, where the run goes on.

    tensorboardX's own SummaryWriter writes in a thread: on a full disk that thread dies and the run then hangs.
    """

    def __init__(self, path: Path, step: int, config: Config):
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event, SessionLog  # pyright: ignore[reportAttributeAccessIssue]
        from tensorboardX.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]

        path.mkdir(parents=True, exist_ok=True)
        self._writer, self._event, self._summary = EventsWriter(str(path / "events"), f".{step}"), Event, Summary
        self._names = [f"member{n}-seed{member.seed}" for n, member in enumerate(config.members)]
        if step:
            self._writer.write_event(Event(step=step + 1, session_log=SessionLog(status=SessionLog.START)))

    def log(self, step: int, epoch: float, terms: Terms) -> None:
        values = [
            self._summary.Value(tag=f"{term}/{name}", simple_value=value)
            for term, values in terms.items()
            for name, value in zip(self._names, values, strict=True)
            if math.isfinite(value)
        ]
        self._writer.write_event(self._event(wall_time=time.time(), step=step, summary=self._summary(value=values)))

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class WandB:
    """The whole population as one W&B run; needs the `wandb` extra."""

    def __init__(self, project: str, directory: Path, config: Config):
        try:
            import wandb
        except ImportError:
            raise AcfError("--wandb needs the package wandb: pip install 'acf-rl[wandb]'") from None
        settings: dict[str, Any] = config.to_json()
        self._run = wandb.init(project=project, name=directory.name, dir=str(directory), config=settings)

    def log(self, step: int, epoch: float, terms: Terms) -> None:
        flat = {f"{term}/member{n}": value for term, values in terms.items() for n, value in enumerate(values)}
        self._run.log({"epoch": epoch, **flat}, step=step)

    def flush(self) -> None:
        pass  # wandb has a process of its own for that

    def close(self) -> None:
        self._run.finish()
