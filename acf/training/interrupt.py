"""SIGINT and SIGTERM as a wish to stop soon, not a crash."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from acf.errors import AcfError


class Interrupted(AcfError):  # noqa: N818 (a wish, not a fault)
    """The run was asked to stop, and saved first."""

    def __init__(self, message: str, signum: int):
        super().__init__(message)
        self.exit_code = 128 + signum  # as a shell reports it


class Wish:
    signum: int | None = None


@contextmanager
def wish_to_stop() -> Iterator[Wish]:
    """`wish.signum` is set by the first SIGINT or SIGTERM; a second one acts as it always does."""
    wish = Wish()
    if threading.current_thread() is not threading.main_thread():
        yield wish  # signals reach the main thread only
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(signum: int, frame: FrameType | None) -> None:
        wish.signum = signum
        signal.signal(signum, before[signal.Signals(signum)])

    for number in before:
        signal.signal(number, note)
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
