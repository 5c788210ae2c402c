"""Training as a person sees it: a bar in a terminal, a line now and then elsewhere."""

import math
import statistics
import time
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from acf.terminal import errors
from acf.training.loggers import Terms

LINES = 10  # in a whole run, where there is no terminal


class View:
    def __init__(self, what: str, first: int, steps: int):
        columns = TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn()
        detail = TextColumn("{task.fields[detail]}"), TimeRemainingColumn()
        self._bar = Progress(*columns, *detail, console=errors, transient=True, disable=not errors.is_terminal)
        self._task = self._bar.add_task(what, completed=first, total=steps, detail="compiling")
        self._what, self._first, self._steps = what, first, steps
        self._next_line = first
        self._start: float | None = None  # after the first chunk: compilation is not a rate

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def update(self, step: int, terms: Terms) -> None:
        now = time.monotonic()
        if self._start is None:
            self._start, self._first = now, step
        rate = (step - self._first) / (now - self._start) if now > self._start else 0.0
        losses = "  ".join(f"{name} {_mean(values):.3f}" for name, values in terms.items() if name != "loss")
        detail = f"{losses}  {rate:.0f} steps/s" if rate else losses
        self._bar.update(self._task, completed=step, detail=detail)
        if not errors.is_terminal and (step >= self._next_line or step == self._steps):
            errors.print(f"{self._what}: step {step}/{self._steps}  {detail}", soft_wrap=True)
            self._next_line = step + self._steps // LINES

    def say(self, message: str) -> None:
        self._bar.console.print(f"[yellow]warning:[/] {message}", soft_wrap=True)


def _mean(values: list[float]) -> float:
    """Of the members that are finite: one that diverged does not hide the others."""
    return statistics.fmean([value for value in values if math.isfinite(value)] or [math.nan])
