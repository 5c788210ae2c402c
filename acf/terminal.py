"""The terminal: one console, one kind of table, one kind of progress bar."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


def table(*columns: str, title: str | None = None) -> Table:
    made = Table(title=title, header_style="bold", title_justify="left")
    for column in columns:
        made.add_column(column)
    return made


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
