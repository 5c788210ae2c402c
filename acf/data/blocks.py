"""Data as it is made: a header that says what comes, and block after block."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int32, UInt8

from acf.data.checks import DataError
from acf.data.store import Writer, read
from acf.data.transitions import Transitions

Progress = Callable[[int, int], None]  # transitions done, transitions in all


class Header(NamedTuple):
    """What is known of data before the first transition."""

    frame_shape: tuple[int, ...]
    action_names: tuple[str, ...]
    noop: int | None
    factor_names: tuple[str, ...]
    controllable: tuple[bool, ...]
    source: dict[str, Any]


class Block(NamedTuple):
    """Some consecutive frames and transitions; `i` and `j` index the frames of the whole data set."""

    frames: UInt8[np.ndarray, "m H W C"]
    i: Int32[np.ndarray, " t"]
    action: Int32[np.ndarray, " t"]
    j: Int32[np.ndarray, " t"]
    episode: Int32[np.ndarray, " m"]
    factors: Float32[np.ndarray, "m K"] | None


def keep(header: Header, blocks: Iterator[Block], out: str | Path | None) -> Transitions:
    """In memory, or in the directory `out` and from there memory-mapped; the blocks are not held beside it."""
    if out is None:
        return _in_memory(header, blocks)
    about = header._asdict()
    with Writer(out, about.pop("frame_shape"), **about) as writer:
        for block in blocks:
            writer.append(*block)
    return read(out, verify=False)  # the writer has just checked it all


def there(out: str | Path | None, source: dict[str, Any]) -> Transitions | None:
    """The data in `out`, if there is some; an error if it was made otherwise."""
    if out is None or not Path(out).exists() or not any(Path(out).iterdir()):
        return None
    found = Transitions.open(out)
    if found.source != source:
        pairs = [(k, found.source.get(k), source.get(k)) for k in {**source, **found.source}]
        changed = "; ".join(f"{k}: {old!r} there, {new!r} asked" for k, old, new in pairs if old != new)
        raise DataError(f"{out} holds other data ({changed}). Choose another folder or remove this one.")
    return found


def _in_memory(header: Header, blocks: Iterator[Block]) -> Transitions:
    parts = [list(part) for part in zip(*blocks, strict=True)]
    frames, i, action, j, episode, factors = (None if part[0] is None else _joined(part) for part in parts)
    about = header._asdict()
    del about["frame_shape"]
    return Transitions(frames=frames, i=i, action=action, j=j, episode=episode, factors=factors, **about)  # pyright: ignore[reportArgumentType]


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """Each part is let go when it is copied: there are never two of them all."""
    out = np.empty((sum(map(len, parts)), *parts[0].shape[1:]), parts[0].dtype)
    parts.reverse()
    start = 0
    while parts:
        part = parts.pop()
        out[start : start + len(part)] = part
        start += len(part)
    return out
