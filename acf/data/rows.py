"""Rows of a large array, or of a list that would double its memory as an array."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from acf.data.checks import DataError, check_array, describe_array


class Listed:
    """A list of frames that is indexed as an array: only the rows asked for are copied."""

    def __init__(self, field: str, frames: Sequence[Any]):
        self._frames = [np.asarray(frame) for frame in frames]
        self.dtype = self._frames[0].dtype
        self.shape = (len(frames), *self._frames[0].shape)
        for t, frame in enumerate(self._frames):
            if (frame.dtype, frame.shape) != (self.dtype, self.shape[1:]):
                expected, found = (describe_array(f.dtype, f.shape) for f in (self._frames[0], frame))
                raise DataError(f"{field}[{t}]: expected {expected} as in {field}[0], found {found}")

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, rows: slice | Int[np.ndarray, " n"]) -> np.ndarray:
        picked = self._frames[rows] if isinstance(rows, slice) else [self._frames[t] for t in rows]
        return np.stack(picked)


Rows = np.ndarray | Listed


def as_rows(field: str, frames: Any) -> Rows:
    """An array as it is, a list of frames without a copy of them all."""
    expected = np.uint8, ("T", "H", "W", "C")
    if not isinstance(frames, (list, tuple)) or not len(frames):
        array = np.asarray(frames)
        check_array(field, array, *expected)
        return array
    check_array(field, np.asarray(frames[0])[None], *expected)  # what is wrong with one is wrong with all
    return Listed(field, frames)
