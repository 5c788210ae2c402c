"""The terminal: one console, one kind of table, one kind of progress bar."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


def table(*columns: str, title: str | None = None) -> Table:
    made = Table(title=title, header_style="bold", title_justify="left")
    for column in columns:
        made.add_column(column)
    return made


def show_warnings_plainly() -> None:
    """One line a warning and never the same twice: a person at a terminal has no use for the place in our code."""
    said: set[str] = set()

    def show(message: Warning | str, *place: object, **more: object) -> None:
        if str(message) not in said:
            said.add(str(message))
            errors.print(f"[yellow]warning:[/] {escape(str(message))}", soft_wrap=True)

    warnings.showwarning = show


@contextmanager
def status(what: str) -> Iterator[None]:
    """A spinner for work without a count."""
    if not errors.is_terminal:
        yield
        return
    with errors.status(what):
        yield


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar for `done, total` callbacks; silent where there is no terminal."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
