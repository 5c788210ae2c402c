"""SIGINT, SIGTERM and a time limit as a wish to stop soon, not a crash."""

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from acf.errors import AcfError


class Interrupted(AcfError):  # noqa: N818 (a wish, not a fault)
    """The run was asked to stop, and saved first."""

    def __init__(self, message: str, signum: int | None):
        super().__init__(message)
        self.signum = signum
        """None where the time was up."""
        self.exit_code = 124 if signum is None else 128 + signum  # as `timeout` and a shell report it


class Wish:
    def __init__(self, until: float = math.inf):
        self.signum: int | None = None
        self._until = until

    def __bool__(self) -> bool:
        return self.signum is not None or time.monotonic() >= self._until


@contextmanager
def wish_to_stop(until: float = math.inf) -> Iterator[Wish]:
    """The wish becomes true with the first SIGINT or SIGTERM (a second one acts as it always does), or at the time
    `until` of `time.monotonic()`.
    """
    wish = Wish(until)
    if threading.current_thread() is not threading.main_thread():
        yield wish  # signals reach the main thread only
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(signum: int, frame: FrameType | None) -> None:
        wish.signum = signum
        # Not print, which may be at work itself.
        os.write(2, b"\nstopping as soon as what was begun is saved; once more to stop at once\n")
        signal.signal(signum, before[signal.Signals(signum)])

    for number in before:
        signal.signal(number, note)
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
