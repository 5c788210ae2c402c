"""What a data set must satisfy. Each error says what was expected, what was found, and where.

- `check_transitions`: everything that holds for a `Transitions` object; touches no pixels.
- `check_*`: its parts, for those who build data piece by piece.
- `warn_about_actions`: actions that teach nothing, over a bounded sample.
- `blocks`, `rows_differ`: passes over many frames with little memory.
"""

import json
import math
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Int
from numpy.typing import DTypeLike

from acf.errors import AcfError

if TYPE_CHECKING:
    import acf.data.rows
    import acf.data.transitions

MIN_SIDE = 16  # pixels; the encoder halves the picture several times
MAX_CHANNELS = 4
BLOCK_BYTES = 4 << 20
ACTION_SAMPLE = 2_000  # transitions looked at per action before saying that it changes nothing
MOVEMENT_SAMPLE = 200  # transitions looked at per action to measure how much it changes
MOVEMENT_LEAST = 50  # fewer say too little to call a no-op none
DISCRETE = "actions are discrete, one number a step: of a continuous or many-part action list a few and number them"
NOT_SAID: Any = "nothing said"  # of the no-op: None says that there is none


class DataError(AcfError):
    """A data set that breaks its contract."""


class DataWarning(UserWarning):
    """A data set that is valid, but probably not what was meant."""


def check_transitions(data: "acf.data.transitions.Transitions") -> None:
    check_actions(data.action_names, data.noop)
    check_factor_names(data.factor_names, data.controllable)
    check_source(data.source)
    check_array("frames", data.frames, np.uint8, ("M", "H", "W", "C"))
    check_frame_shape(data.frames.shape[1:])
    M = len(data.frames)
    check_array("i", data.i, np.int32, ("T",))
    check_array("action", data.action, np.int32, data.i.shape)
    check_array("j", data.j, np.int32, data.i.shape)
    check_array("episode", data.episode, np.int32, (M,))
    check_factors(data.factors, M, data.factor_names)
    if len(data.i) == 0:
        raise DataError("i: expected at least one transition, found none")
    check_range("i", data.i, M, "a frame")
    check_range("j", data.j, M, "a frame")
    check_range("action", data.action, len(data.action_names), "an action")
    check_pairs(data)


def check_array(field: str, array: Any, dtype: DTypeLike, shape: tuple[int | str, ...]) -> None:
    """A letter in `shape` stands for any length."""
    expected = describe_array(dtype, shape)
    if not isinstance(array, np.ndarray):
        raise DataError(f"{field}: expected a numpy array {expected}, found {type(array).__name__}")
    fits = len(shape) == array.ndim and all(
        isinstance(n, str) or n == m for n, m in zip(shape, array.shape, strict=True)
    )
    if array.dtype != dtype or not fits:
        hint = _frame_hint(field, array) if shape[1:] == ("H", "W", "C") else ""
        raise DataError(f"{field}: expected {expected}, found {describe_array(array.dtype, array.shape)}{hint}")


def _frame_hint(field: str, array: np.ndarray) -> str:
    """How to make frames of what environments commonly give instead."""
    if array.dtype == object:
        return f"; of observations that are dictionaries take the picture: [o['image'] for o in {field}]"
    if array.ndim == 3:
        return f"; gray pictures have one channel, the last axis: {field}[..., None]"
    if array.ndim == 5:
        return "; a stack of pictures goes into the channels, at most 4: four gray ones, or one in colour"
    if array.dtype.kind == "f":
        return f"; of pictures from 0 to 1 make bytes: np.round(255 * {field}).astype(np.uint8)"
    return ""


def describe_array(dtype: DTypeLike, shape: tuple[int | str, ...]) -> str:
    """
    >>> describe_array(np.uint8, ("M", 32, 32, 3))
    'uint8[M, 32, 32, 3]'
    """
    return f"{np.dtype(dtype)}[{', '.join(map(str, shape))}]"


def check_frame_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 3:
        raise DataError(f"frames: expected frames of shape (H, W, C), found {shape}")
    H, W, C = shape
    if min(H, W) < MIN_SIDE:
        channels_first = min(W, C) >= MIN_SIDE
        hint = "; channels come last, (H, W, C): np.moveaxis(frames, 1, -1)" if channels_first else ""
        raise DataError(f"frames: expected height and width of at least {MIN_SIDE} pixels, found {H} x {W}{hint}")
    if not 1 <= C <= MAX_CHANNELS:
        raise DataError(
            f"frames: expected 1 to {MAX_CHANNELS} channels (the last axis), found {C}; "
            "of stacked pictures in colour make gray ones, or take one alone"
        )


def check_actions(action_names: tuple[str, ...], noop: Any) -> None:
    _check_names("action_names", action_names)
    n = len(action_names)
    if n < 2:
        raise DataError(f"action_names: expected at least two actions, found {n}: {action_names}")
    is_index = isinstance(noop, (int, np.integer)) and not isinstance(noop, bool)
    if noop is not None and (not is_index or not 0 <= noop < n):
        raise DataError(
            f"noop: expected the index of the action that does nothing, 0 to {n - 1}, found {noop!r}; set it with the "
            "argument `noop` (`--noop` on the command line), to None where no action does nothing; "
            f"the actions are {action_names}"
        )


def check_factor_names(factor_names: tuple[str, ...], controllable: tuple[bool, ...]) -> None:
    """`controllable` may be empty: not known."""
    _check_names("factor_names", factor_names)
    if not isinstance(controllable, tuple) or not all(isinstance(c, bool) for c in controllable):
        raise DataError(f"controllable: expected a tuple of bools, found {controllable!r}")
    if len(controllable) not in (0, len(factor_names)):
        raise DataError(
            f"controllable: expected one value for each of the {len(factor_names)} factors {factor_names} "
            f"or none at all, found {len(controllable)}"
        )


def _check_names(field: str, names: tuple[str, ...]) -> None:
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise DataError(f"{field}: expected a tuple of strings, found {names!r}")
    for k, name in enumerate(names):
        if name in names[:k]:
            raise DataError(f"{field}: expected distinct names, found {name!r} at {names.index(name)} and at {k}")


def check_source(source: dict[str, Any]) -> None:
    if not isinstance(source, dict):
        raise DataError(f"source: expected a dict, found {type(source).__name__}")
    try:
        json.dumps(source, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DataError(f"source: expected values that JSON can hold, found {source!r}: {error}") from None


def check_factors(factors: Any, M: int, factor_names: tuple[str, ...]) -> None:
    if factors is None:
        if factor_names:
            raise DataError(f"factors: expected values for the factors {factor_names}, found none")
        return
    check_array("factors", factors, np.float32, (M, "K"))
    if factors.shape[1] != len(factor_names) or not factor_names:
        raise DataError(
            f"factor_names: expected one name for each of the {factors.shape[1]} columns of factors, "
            f"found {len(factor_names)}: {factor_names}"
        )
    bad = ~np.isfinite(factors)
    if bad.any():
        frame, k = np.unravel_index(bad.argmax(), bad.shape)
        raise DataError(
            f"factors[{frame}, {k}]: expected finite numbers, "
            f"found {factors[frame, k]} for factor {factor_names[k]!r} of frame {frame}"
        )


def check_range(field: str, values: Int[np.ndarray, " T"], limit: int, what: str) -> None:
    bad = (values < 0) | (values >= limit)
    if bad.any():
        t = int(bad.argmax())
        raise DataError(f"{field}[{t}]: expected the index of {what}, 0 to {limit - 1}, found {values[t]}")


def check_pairs(data: "acf.data.transitions.Transitions") -> None:
    before, after = data.episode[data.i], data.episode[data.j]
    bad = before != after
    if bad.any():
        t = int(bad.argmax())
        raise DataError(
            f"transition {t}: expected both frames from one episode, found frame i={data.i[t]} "
            f"of episode {before[t]} and frame j={data.j[t]} of episode {after[t]}"
        )


def warn_about_actions(data: "acf.data.transitions.Transitions") -> None:
    """One `DataWarning` that names every action that never occurs or never changes the frame, and a no-op that is none.

    Doing nothing is the no-op's job, so there its absence counts, and that it moves the picture as the others do.
    """
    absent, idle = [], []
    for k, name in enumerate(data.action_names):
        rows = np.flatnonzero(data.action == k)
        if len(rows) == 0:
            absent.append(f"{name!r} ({k})")
        elif k != data.noop and not _ever_changes(data, rows):
            idle.append(f"{name!r} ({k})")
    found = [f"actions that never occur: {', '.join(absent)}"] if absent else []
    if idle:
        hint = " (is one of them the no-op? noop=NUMBER, `--noop NUMBER`)" if data.noop is None else ""
        found.append(f"actions that never change a frame: {', '.join(idle)}{hint}")
    found += [moving] if (moving := _moving_noop(data)) else []
    if found:
        warnings.warn("; ".join(found), DataWarning, stacklevel=3)  # whoever opened the data


def _ever_changes(data: "acf.data.transitions.Transitions", rows: Int[np.ndarray, " N"]) -> bool:
    # Spread over all occurrences: the first few may all come from one corner of one episode.
    sample = rows[np.linspace(0, len(rows) - 1, min(len(rows), ACTION_SAMPLE)).astype(np.intp)]
    # A few at a time: the first ones nearly always settle it, and each may pull in pages of a memory map.
    parts = (sample[start : start + 64] for start in range(0, len(sample), 64))
    return any(rows_differ(data.frames, data.i[p], data.frames, data.j[p]).any() for p in parts)


def _moving_noop(data: "acf.data.transitions.Transitions") -> str | None:
    """Says that the no-op changes the picture as much as the other actions do, where there is enough to tell."""
    rows = [np.flatnonzero(data.action == k) for k in range(len(data.action_names))]
    tried = [k for k, of_action in enumerate(rows) if len(of_action) >= MOVEMENT_LEAST]
    if data.noop not in tried or len(tried) < 2:
        return None
    own = _change(data, rows[data.noop])
    if own == 0:
        return None  # and the others need not be looked at
    others = {k: _change(data, rows[k]) for k in tried if k != data.noop}
    typical = float(np.mean([*others.values()]))
    if own < 0.9 * typical:
        return None
    named = ", ".join(f"{data.action_names[k]!r} {change:.2f}" for k, change in others.items())
    return (
        f"the no-op {data.action_names[data.noop]!r} ({data.noop}) changes the picture by {own:.2f} grey levels a "
        f"pixel, the other actions by {typical:.2f} ({named}): if it is no no-op, say so with noop=None (`--noop none`)"
    )


def _change(data: "acf.data.transitions.Transitions", rows: Int[np.ndarray, " N"]) -> float:
    """Mean absolute change of a pixel over a bounded sample of these transitions."""
    sample = rows[np.linspace(0, len(rows) - 1, min(len(rows), MOVEMENT_SAMPLE)).astype(np.intp)]
    parts = [sample[part] for part in blocks(len(sample), 4 * row_bytes(data.frames))]
    moved = [np.abs(data.frames[data.j[p]] - data.frames[data.i[p]].astype(np.int16)).sum() for p in parts]
    return float(sum(moved)) / (len(sample) * row_bytes(data.frames))


def rows_differ(
    a: "acf.data.rows.Rows", a_rows: Int[np.ndarray, " N"], b: "acf.data.rows.Rows", b_rows: Int[np.ndarray, " N"]
) -> Bool[np.ndarray, " N"]:
    """Whether `a[a_rows[n]]` and `b[b_rows[n]]` differ anywhere, with a few blocks' worth of memory.

    >>> x = np.array([[1, 2], [1, 2], [1, 3]])
    >>> rows_differ(x, np.array([0, 0]), x, np.array([1, 2])).tolist()
    [False, True]
    """
    out = np.empty(len(a_rows), bool)
    for part in blocks(len(a_rows), row_bytes(a)):
        differ = a[a_rows[part]] != b[b_rows[part]]
        out[part] = differ.reshape(len(differ), -1).any(axis=1)
    return out


def blocks(n: int, row_bytes: int) -> Iterator[slice]:
    """Slices that cover `n` rows, each of about `BLOCK_BYTES`.

    >>> list(blocks(3, BLOCK_BYTES // 2))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    step = max(1, BLOCK_BYTES // max(1, row_bytes))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def row_bytes(array: "acf.data.rows.Rows") -> int:
    return math.prod(array.shape[1:]) * array.dtype.itemsize
