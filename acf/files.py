"""Disk helpers: what appears under its final name is complete, or not there at all.

- `write_atomic`: one file, replaced in one step.
- `new_directory`: a directory filled under a temporary name and renamed when it is whole.
- `check_own`: nothing is made in a directory of something else.
- `exclusive_lock`: one process at a time in a directory.
"""

import errno
import fcntl
import glob
import os
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from acf.errors import AcfError


class Busy(AcfError):  # noqa: N818 (a state, not a fault)
    """Another process works in the directory."""


def write_atomic(path: str | Path, data: bytes | str) -> None:
    """Writes `data` (text as UTF-8) to `path`; after a failure the old file is still there, untouched."""
    path = Path(path)
    temporary = _temporary_name(path)
    try:
        with temporary.open("xb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync(path.parent)


@contextmanager
def new_directory(path: str | Path) -> Iterator[Path]:
    """Yields a temporary directory that becomes `path` if the block ends well, and is removed if it does not.

    Parents are created. An empty directory may stand at `path`; anything else raises FileExistsError, before
    the block and, if it appeared meanwhile, after it. What a process that was killed left of the same is removed.
    """
    target = Path(path).resolve()  # a link to an empty directory is filled, not replaced
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise _already_exists(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(target)
    with _claimed_directory(_temporary_name(target)) as temporary:
        yield temporary
        _sync_tree(temporary)
        try:
            temporary.rename(target)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise _already_exists(path) from None
            raise
    _sync(target.parent)


def check_own(path: Path, what: str, own: Collection[str]) -> None:
    """That a new `what` may be made in the directory `path`: it is not there, or holds nothing but `own` names."""
    if path.exists() and not path.is_dir():
        raise AcfError(f"{path} is a file, expected a directory for {what}. Choose another --out.")
    names = sorted(file.name for file in path.iterdir()) if path.exists() else []
    others = [name for name in names if name not in own and name[0] != "."]
    if others:
        raise AcfError(f"{path} is not for {what}: it holds {', '.join(others[:3])}. Choose another --out.")


@contextmanager
def exclusive_lock(path: str | Path) -> Iterator[None]:
    """Holds the directory `path` (created if missing) for this process; raises `Busy` if another has it.

    The lock is on `path/.lock`. The system drops it when the holder ends, however it ends, so the file that
    stays behind locks nobody out.
    """
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    with (path / ".lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise Busy(f"{path} is in use by another process (pid {holder}); wait for it or stop it") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _temporary_name(path: Path) -> Path:
    """A hidden sibling: the same file system, so that the rename is one step."""
    return path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")


@contextmanager
def _claimed_directory(path: Path) -> Iterator[Path]:
    """Held by a lock that the system drops when this process ends, however it ends. Removed after, unless renamed."""
    unclaimed = path.with_suffix(".new")  # `_remove_abandoned` must not see it before it is held
    unclaimed.mkdir()
    claim = os.open(unclaimed, os.O_RDONLY)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX)
        unclaimed.rename(path)
        yield path
    finally:
        os.close(claim)
        for left in (unclaimed, path):
            shutil.rmtree(left, ignore_errors=True)


def _remove_abandoned(target: Path) -> None:
    """Temporary directories of `target` that no process holds."""
    for directory in target.parent.glob(f".{glob.escape(target.name)}.*.tmp"):
        try:
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            continue  # a file, or another process was faster
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory, ignore_errors=True)
        except BlockingIOError:
            pass  # at work
        finally:
            os.close(descriptor)


def _already_exists(path: str | Path) -> FileExistsError:
    return FileExistsError(f"{path} already exists and is not an empty directory; remove it or choose another name")


def _sync_tree(root: Path) -> None:
    """Files before the directories that list them."""
    for directory, _, files in os.walk(root, topdown=False):
        for name in files:
            _sync(Path(directory, name))
        _sync(Path(directory))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
