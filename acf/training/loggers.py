"""Where the numbers of a run go: `metrics.jsonl`, TensorBoard, and Weights & Biases if asked."""

import json
import math
from pathlib import Path
from typing import Any, Protocol

from acf.errors import AcfError
from acf.files import write_atomic
from acf.training.config import Config

Terms = dict[str, list[float]]  # a loss term by name: one value a member, in the members' order


class Logger(Protocol):
    def log(self, step: int, epoch: float, terms: Terms) -> None: ...
    def close(self) -> None: ...


class JsonLines:
    """One line a chunk. Lines after `step` are of work that was lost with a killed process: they are dropped."""

    def __init__(self, path: Path, step: int):
        if path.exists():
            lines = path.read_text().splitlines(keepends=True)
            kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
            write_atomic(path, "".join(kept))
        self._file = path.open("a")

    def log(self, step: int, epoch: float, terms: Terms) -> None:
        # NaN is not JSON: a diverged member's numbers are null.
        plain = {name: [v if math.isfinite(v) else None for v in values] for name, values in terms.items()}
        self._file.write(json.dumps({"step": step, "epoch": round(epoch, 4), **plain}) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class TensorBoard:
    def __init__(self, path: Path, step: int, config: Config):
        from tensorboardX import SummaryWriter

        self._writer = SummaryWriter(str(path), purge_step=step + 1 if step else None)
        self._names = [f"member{n}-seed{member.seed}" for n, member in enumerate(config.members)]

    def log(self, step: int, epoch: float, terms: Terms) -> None:
        for term, values in terms.items():
            for name, value in zip(self._names, values, strict=True):
                self._writer.add_scalar(f"{term}/{name}", value, step)

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

    def close(self) -> None:
        self._run.finish()
