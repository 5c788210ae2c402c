"""Transitions on disk: a directory of `.npy` files and a `meta.json` that says what must be in them.

- `Writer`: appends blocks to a new data set, which gets its name only when it is whole and valid.
- `read`: opens one, and trusts nothing that `meta.json` says without a look at the files.

`frames.npy`, `i.npy`, `action.npy`, `j.npy`, `episode.npy` and, where known, `factors.npy` hold the fields of
`Transitions`.
"""

import hashlib
import io
import json
import math
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int32, UInt8

from acf.data.checks import (
    NOT_SAID,
    DataError,
    check_actions,
    check_array,
    check_factor_names,
    check_frame_shape,
    check_source,
    describe_array,
)
from acf.data.transitions import Transitions
from acf.files import new_directory, write_atomic

FORMAT = 1
KIND = "acf-transitions"
META = "meta.json"


class _Column(NamedTuple):
    """What one `.npy` file holds."""

    dtype: np.dtype
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return describe_array(self.dtype, self.shape)


def _columns(n_frames: int, n_transitions: int, frame_shape: tuple[int, ...], K: int) -> dict[str, _Column]:
    index = np.dtype(np.int32)
    columns = {
        "frames.npy": _Column(np.dtype(np.uint8), (n_frames, *frame_shape)),
        "i.npy": _Column(index, (n_transitions,)),
        "action.npy": _Column(index, (n_transitions,)),
        "j.npy": _Column(index, (n_transitions,)),
        "episode.npy": _Column(index, (n_frames,)),
    }
    if K:
        columns["factors.npy"] = _Column(np.dtype(np.float32), (n_frames, K))
    return columns


def content_hash(meta: dict[str, Any]) -> str:
    """Of the files and of the names that give them meaning; where the data came from does not count."""
    names = [meta.get(key) for key in ("action_names", "noop", "factor_names", "controllable")]
    return hashlib.sha256(json.dumps([sorted(meta["sha256"].items()), *names]).encode()).hexdigest()


# Writing


class Writer:
    """Writes a data set block by block, in a context.

    How much will come need not be known. Leaving the context opens the result with every check but the hash of the
    frames, and only then gives the directory its name; after any failure nothing is left. The blocks go straight to
    the files: memory is the caller's own.
    """

    def __init__(
        self,
        path: str | Path,
        frame_shape: tuple[int, ...],
        *,
        action_names: tuple[str, ...],
        noop: int | None,
        factor_names: tuple[str, ...] = (),
        controllable: tuple[bool, ...] = (),
        source: dict[str, Any],
    ):
        # What can be known to be wrong is said before hours of collecting, not after.
        check_frame_shape(frame_shape)
        check_actions(action_names, noop)
        check_factor_names(factor_names, controllable)
        check_source(source)
        self.path = Path(path)
        self._columns = _columns(0, 0, frame_shape, len(factor_names))
        self._meta = {
            "format": FORMAT,
            "kind": KIND,
            "frame_shape": list(frame_shape),
            "action_names": list(action_names),
            "noop": noop if noop is None else int(noop),
            "factor_names": list(factor_names),
            "controllable": list(controllable),
            "source": source,
        }
        self._episodes: set[int] = set()

    def __enter__(self) -> "Writer":
        with ExitStack() as stack:
            self._directory = stack.enter_context(new_directory(self.path))
            stack.push(self._finish)  # after the files are closed, before the directory is renamed
            self._files = {
                name: stack.enter_context(_NpyFile(self._directory / name, column))
                for name, column in self._columns.items()
            }
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def append(
        self,
        frames: UInt8[np.ndarray, "m H W C"],
        i: Int32[np.ndarray, " t"],
        action: Int32[np.ndarray, " t"],
        j: Int32[np.ndarray, " t"],
        episode: Int32[np.ndarray, " m"],
        factors: Float32[np.ndarray, "m K"] | None = None,
    ) -> None:
        """A block of frames and a block of transitions; `i` and `j` index the whole data set's frames."""
        self.append_frames(frames, episode, factors)
        self.append_transitions(i, action, j)

    def append_frames(
        self,
        frames: UInt8[np.ndarray, "m H W C"],
        episode: Int32[np.ndarray, " m"],
        factors: Float32[np.ndarray, "m K"] | None = None,
    ) -> None:
        if (factors is None) != ("factors.npy" not in self._files):
            promised = self._meta["factor_names"]
            raise DataError(f"factors: expected values for factor_names {promised}, found {type(factors).__name__}")
        known = {} if factors is None else {"factors.npy": factors}
        self._append({"frames.npy": frames, "episode.npy": episode, **known})
        self._episodes.update(np.unique(episode).tolist())

    def append_transitions(
        self, i: Int32[np.ndarray, " t"], action: Int32[np.ndarray, " t"], j: Int32[np.ndarray, " t"]
    ) -> None:
        self._append({"i.npy": i, "action.npy": action, "j.npy": j})

    def _append(self, block: dict[str, np.ndarray]) -> None:
        """One block of columns of equal length; all are checked before any is written."""
        first = next(iter(block.values()))
        n: int | str = len(first) if isinstance(first, np.ndarray) and first.ndim else "n"
        for name, array in block.items():
            column = self._columns[name]
            check_array(name.removesuffix(".npy"), array, column.dtype, (n, *column.shape[1:]))
        for name, array in block.items():
            self._files[name].append(array)

    def _finish(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            return
        counts = {
            "frames": self._files["frames.npy"].rows,
            "transitions": self._files["i.npy"].rows,
            "episodes": len(self._episodes),
            "actions": len(self._meta["action_names"]),
        }
        if not counts["transitions"]:
            raise DataError("i: expected at least one transition, found none")
        sha256 = {name: _sha256(self._directory / name) for name in self._files}
        meta = self._meta | {"counts": counts, "sha256": sha256}
        meta["hash"] = content_hash(meta)
        write_atomic(self._directory / META, json.dumps(meta, indent=2) + "\n")
        try:
            _read(self._directory, verify=False)  # what could not be opened again is not written
        except DataError as wrong:
            raise DataError(f"{self.path}: {wrong}") from None


class _NpyFile:
    """An `.npy` file that grows row by row; how many there are is written into its header at the end."""

    def __init__(self, path: Path, column: _Column):
        self.path, self.column, self.rows = path, column, 0

    def __enter__(self) -> "_NpyFile":
        with ExitStack() as stack:
            self._file = stack.enter_context(self.path.open("xb"))
            self._write(self._header())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        with self._stack:
            if kind is None:
                self._file.seek(0)
                self._write(self._header())

    def _header(self) -> bytes:
        """As long for any number of rows: numpy leaves room for one to grow."""
        header = io.BytesIO()
        descr = np.lib.format.dtype_to_descr(self.column.dtype)
        shape = (self.rows, *map(int, self.column.shape[1:]))
        np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": shape})
        return header.getvalue()

    def append(self, rows: np.ndarray) -> None:
        if rows.size:
            self._write(np.ascontiguousarray(rows).data)
        self.rows += len(rows)

    def _write(self, data: bytes | memoryview) -> None:
        self._file.write(data)


# Reading


def read(path: str | Path, verify: bool = True, noop: int | None = None) -> Transitions:
    """Opens a data set directory, its frames memory-mapped.

    `verify=False` skips the hash of `frames.npy`, which takes a pass over the whole file, and nothing else. `noop` says
    which action is the no-op where `meta.json` does not know, or knows it wrongly.
    """
    path = Path(path)
    try:
        return _read(path, verify, noop)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read(path: Path, verify: bool, noop: int | None = None) -> Transitions:
    meta = _read_meta(path, noop)
    counts = meta["counts"]
    K = len(meta["factor_names"])
    columns = _columns(counts["frames"], counts["transitions"], tuple(meta["frame_shape"]), K)
    for name, column in columns.items():
        _check_npy(path / name, column)
    _check_hashes(path, meta, columns, verify)
    arrays = {
        name.removesuffix(".npy"): np.load(path / name, mmap_mode="r" if name == "frames.npy" else None)
        for name in columns
    }
    episodes = len(np.unique(arrays["episode"]))
    if episodes != counts["episodes"]:
        raise DataError(f"episode.npy: expected {counts['episodes']} episodes as in {META}, found {episodes}")
    return Transitions(
        **arrays,
        action_names=tuple(meta["action_names"]),
        noop=meta["noop"] if noop is None else noop,
        factor_names=tuple(meta["factor_names"]),
        controllable=tuple(meta["controllable"]),
        source=meta["source"],
        hash=meta["hash"],
    )


def _read_meta(path: Path, noop: int | None) -> dict[str, Any]:
    if not path.is_dir():
        found = "a file" if path.exists() else "nothing there"
        raise DataError(f"not a data set: expected a directory, found {found}")
    file = path / META
    if not file.is_file():
        raise DataError(f"not a data set directory: expected a {META} in it, found none")
    try:
        meta = json.loads(file.read_bytes())
    except ValueError as error:
        raise DataError(f"{META}: expected JSON, found something else: {error}") from None
    if not isinstance(meta, dict) or meta.get("kind") != KIND:
        found = meta.get("kind") if isinstance(meta, dict) else meta
        raise DataError(f"not a data set directory: expected kind {KIND!r} in {META}, found {found!r}")
    _check_format(meta.get("format"))
    _check_meta(meta, noop)
    return meta


def _check_format(version: Any) -> None:
    if type(version) is not int or version < 1:
        raise DataError(f"{META}: expected format to be a whole number from 1, found {version!r}")
    if version > FORMAT:
        raise DataError(
            f"{META}: format {version} was written by a newer acf-rl; this one reads up to {FORMAT}; upgrade"
        )


_META_TYPES = {
    "counts": dict,
    "frame_shape": list,
    "action_names": list,
    "factor_names": list,
    "controllable": list,
    "source": dict,
    "sha256": dict,
    "hash": str,
}


def _check_meta(meta: dict[str, Any], noop: int | None) -> None:
    """What `meta.json` says by itself; the files are not looked at yet."""
    for key, kind in _META_TYPES.items():
        if not isinstance(meta.get(key), kind):
            raise DataError(f"{META}: expected {key} to be a {kind.__name__}, found {meta.get(key)!r}")
    for key in ("frames", "transitions", "episodes", "actions"):
        _check_positive(f"counts.{key}", meta["counts"].get(key))
    for n in meta["frame_shape"]:
        _check_positive("frame_shape", n)
    check_frame_shape(tuple(meta["frame_shape"]))
    check_actions(tuple(meta["action_names"]), meta.get("noop", NOT_SAID) if noop is None else noop)
    check_factor_names(tuple(meta["factor_names"]), tuple(meta["controllable"]))
    named, counted = len(meta["action_names"]), meta["counts"]["actions"]
    if named != counted:
        raise DataError(f"{META}: expected {counted} action_names as in counts.actions, found {named}")


def _check_positive(field: str, value: Any) -> None:
    if type(value) is not int or value < 1:
        raise DataError(f"{META}: expected {field} to be a whole number from 1, found {value!r}")


def _check_npy(file: Path, column: _Column) -> None:
    if not file.is_file():
        raise DataError(f"{file.name}: expected {column}, found no such file")
    found, start = _read_header(file)
    if found != column:
        raise DataError(f"{file.name}: expected {column} as in {META}, found {found}")
    expected = start + math.prod(column.shape) * column.dtype.itemsize
    size = file.stat().st_size
    if size != expected:
        what = "truncated file" if size < expected else "bytes behind the data"
        raise DataError(f"{file.name}: {what}: expected {expected} bytes, found {size}")


def _read_header(file: Path) -> tuple[_Column, int]:
    """What an `.npy` file says it holds, and where in it that begins."""
    with file.open("rb") as stream:
        try:
            if np.lib.format.read_magic(stream) != (1, 0):
                raise ValueError("a version other than 1.0")
            shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(stream)
            if fortran_order and len(shape) > 1:
                raise ValueError("columns before rows (Fortran order)")
        except ValueError as error:
            raise DataError(f"{file.name}: expected a whole .npy file, version 1.0, found: {error}") from None
        return _Column(dtype, shape), stream.tell()


def _check_hashes(path: Path, meta: dict[str, Any], columns: dict[str, _Column], verify: bool) -> None:
    for name in columns:
        if name == "frames.npy" and not verify:
            continue
        found = _sha256(path / name)
        expected = meta["sha256"].get(name)
        if found != expected:
            raise DataError(f"{name}: content changed: expected sha256 {expected} as in {META}, found {found}")
    found = content_hash(meta)
    if found != meta["hash"]:
        raise DataError(f"{META}: content changed: expected hash {meta['hash']}, found {found}")
