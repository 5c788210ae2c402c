"""`Transitions`: frames stored once, and the (i, action, j) triples that point into them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float32, Int, Int32, UInt8

from acf.data.checks import (
    DISCRETE,
    NOT_SAID,
    DataError,
    blocks,
    check_array,
    check_frame_shape,
    check_transitions,
    describe_array,
    row_bytes,
    rows_differ,
    warn_about_actions,
)
from acf.data.rows import Rows, as_rows


@dataclass(frozen=True, eq=False, repr=False)
class Transitions:
    """Transition t leads from `frames[i[t]]` by `action[t]` to `frames[j[t]]`.

    Construction checks everything but the pixels, and the arrays are kept as read-only views: an invalid object
    does not exist.

    Args:
        episode: the episode of each *frame*; both frames of a transition are of one episode.
        noop: index of the action that does nothing; None where there is none.
        factors: the true state variables of each frame, where they are known.
        controllable: which factors the actions can change; empty where not known.
        source: how the data was made, in JSON terms.
        hash: of the content, where the data was opened from disk.
    """

    frames: UInt8[np.ndarray, "M H W C"]
    i: Int32[np.ndarray, " T"]
    action: Int32[np.ndarray, " T"]
    j: Int32[np.ndarray, " T"]
    episode: Int32[np.ndarray, " M"]
    action_names: tuple[str, ...]
    noop: int | None
    factors: Float32[np.ndarray, "M K"] | None = None
    factor_names: tuple[str, ...] = ()
    controllable: tuple[bool, ...] = ()
    source: dict[str, Any] = field(default_factory=dict)
    hash: str | None = None

    def __post_init__(self) -> None:
        check_transitions(self)
        for name in ("frames", "i", "action", "j", "episode", "factors"):
            array = getattr(self, name)
            if array is not None:
                view = array.view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)
        # As it will come back from disk (tuples are lists), and nobody else's dict.
        object.__setattr__(self, "source", json.loads(json.dumps(self.source)))

    def __len__(self) -> int:
        return len(self.i)

    def __repr__(self) -> str:
        H, W, C = self.frame_shape
        counts = f"{len(self)} transitions, {len(self.frames)} frames of {H}x{W}x{C}, {self.n_actions} actions"
        return f"Transitions({counts}, {len(self.factor_names)} factors)"

    @property
    def n_actions(self) -> int:
        return len(self.action_names)

    @property
    def frame_shape(self) -> tuple[int, int, int]:
        H, W, C = self.frames.shape[1:]
        return H, W, C

    def select(self, indices: Int[np.ndarray, " N"] | Bool[np.ndarray, " T"] | Sequence[int] | slice) -> "Transitions":
        """The transitions at `indices` (or under a mask), in that order. Frames are shared, not copied."""
        return self._subset(indices, {"by": "select", "of": self.source})

    def split(self, test: float = 0.1, seed: int = 0) -> tuple["Transitions", "Transitions"]:
        """(train, test), with about a `test` share of the episodes on the test side and none on both."""
        if not 0 < test < 1:
            raise DataError(f"split: expected test between 0 and 1, found {test}")
        of_transition = self.episode[self.i]
        episodes = np.unique(of_transition)
        if len(episodes) < 2:
            raise DataError(f"split: expected at least two episodes, found one (episode {episodes[0]})")
        n_test = min(max(round(test * len(episodes)), 1), len(episodes) - 1)
        held_out = np.random.default_rng(seed).permutation(episodes)[:n_test]
        in_test = np.isin(of_transition, held_out)
        how = {"by": "split", "test": test, "seed": seed, "of": self.source}
        return self._subset(~in_test, {**how, "part": "train"}), self._subset(in_test, {**how, "part": "test"})

    def _subset(self, indices: Any, source: dict[str, Any]) -> "Transitions":
        picked = {name: getattr(self, name)[indices] for name in ("i", "action", "j")}
        return replace(self, **picked, source=source, hash=None)

    @classmethod
    def concatenate(cls, parts: Sequence["Transitions"]) -> "Transitions":
        """All transitions of all parts; the frames they use are copied, the episodes renumbered from 0."""
        if not parts:
            raise DataError("concatenate: expected at least one part, found none")
        for k, part in enumerate(parts):
            _check_alike(parts[0], part, k)
        used = [used_frames(part) for part in parts]
        starts = np.cumsum([0, *map(len, used)])
        frames = np.empty((starts[-1], *parts[0].frame_shape), np.uint8)
        i, j, episode, n_episodes = [], [], [], 0
        for part, rows, start in zip(parts, used, starts[:-1], strict=True):
            _copy_rows(part.frames, rows, frames[start : start + len(rows)])
            i.append(start + np.searchsorted(rows, part.i))
            j.append(start + np.searchsorted(rows, part.j))
            ids, renumbered = np.unique(part.episode[rows], return_inverse=True)
            episode.append(n_episodes + renumbered)
            n_episodes += len(ids)
        factors = [p.factors[rows] for p, rows in zip(parts, used, strict=True) if p.factors is not None]
        return replace(
            parts[0],
            frames=frames,
            i=np.concatenate(i).astype(np.int32),
            action=np.concatenate([part.action for part in parts]),
            j=np.concatenate(j).astype(np.int32),
            episode=np.concatenate(episode).astype(np.int32),
            factors=np.concatenate(factors) if factors else None,
            source={"by": "concatenate", "of": [part.source for part in parts]},
            hash=None,
        )

    @classmethod
    def from_arrays(
        cls,
        x: UInt8[np.ndarray, "T H W C"] | Sequence[UInt8[np.ndarray, "H W C"]],
        a: Int[np.ndarray, " T"] | Sequence[int],
        x_next: UInt8[np.ndarray, "T H W C"] | Sequence[UInt8[np.ndarray, "H W C"]],
        *,
        noop: int | None = NOT_SAID,
        action_names: Sequence[str] | None = None,
        episode: Int[np.ndarray, " T"] | Sequence[int] | None = None,
        factors: Float[np.ndarray, "T K"] | None = None,
        next_factors: Float[np.ndarray, "T K"] | None = None,
        factor_names: Sequence[str] | None = None,
        controllable: Sequence[bool] | None = None,
    ) -> "Transitions":
        """From one row per transition. Where row t+1 goes on from row t, the frame between them is stored once.

        `noop` has to be said: the index of the action that does nothing, or None where there is none. Without `episode`
        every row is an episode of its own. Without names, actions and factors are numbered; the actions then reach up
        to the highest one that occurs. Lists of frames are not made arrays of: the frames kept are the only copy.
        """
        before, after = as_rows("x", x), as_rows("x_next", x_next)
        check_frame_shape(before.shape[1:])
        if after.shape != before.shape:
            expected, found = (describe_array(np.uint8, rows.shape) for rows in (before, after))
            raise DataError(f"x_next: expected {expected}, found {found}")
        T = len(before)
        action = _as_int32("a", a, T)
        of_row = _as_int32("episode", np.arange(T) if episode is None else episode, T)
        s, s_next = _paired_factors(factors, next_factors, T)
        if action_names is None:
            action_names = [str(k) for k in range(action.max(initial=-1) + 1)]
        if factor_names is None:
            factor_names = [] if s is None else [f"factor {k}" for k in range(s.shape[1])]

        goes_on = _goes_on(before, after, of_row, s, s_next)
        i = np.arange(T) + np.cumsum(~goes_on) - ~goes_on  # one place per row, one more per frame that ends there
        data = cls(
            frames=_interleave(before, after, i, goes_on),
            i=i.astype(np.int32),
            action=action,
            j=(i + 1).astype(np.int32),
            episode=_interleave(of_row, of_row, i, goes_on),
            action_names=tuple(action_names),
            noop=noop,
            factors=None if s is None or s_next is None else _interleave(s, s_next, i, goes_on),
            factor_names=tuple(factor_names),
            controllable=tuple(map(bool, controllable or ())),
            source={"by": "from_arrays"},
        )
        warn_about_actions(data)
        return data

    def save(self, path: str | Path) -> None:
        """Writes a data set directory with the frames that some transition uses, block by block."""
        from acf.data.store import Writer  # the store builds Transitions

        used = used_frames(self)
        with Writer(
            path,
            self.frame_shape,
            action_names=self.action_names,
            noop=self.noop,
            factor_names=self.factor_names,
            controllable=self.controllable,
            source=self.source,
        ) as writer:
            i, j = (np.searchsorted(used, rows).astype(np.int32) for rows in (self.i, self.j))
            writer.append_transitions(i, self.action, j)
            for part in blocks(len(used), self.frames[:1].nbytes):
                rows = used[part]
                factors = None if self.factors is None else self.factors[rows]
                writer.append_frames(self.frames[rows], self.episode[rows], factors)

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = True, noop: int | None = None) -> "Transitions":
        """Opens a data set directory, its frames memory-mapped. `verify=False` skips the hash of the frames.

        `noop` stands in for what the data set says of its no-op."""
        from acf.data.store import read

        data = read(path, verify=verify, noop=noop)
        warn_about_actions(data)
        return data

    @classmethod
    def from_minari(cls, dataset: Any, *, noop: int | str | None = "auto", factors: str | None = None) -> "Transitions":
        """From a Minari data set of pictures, episode by episode; `acf.collect("minari:ID")` can change their size.

        `noop` is the action that does nothing, None where there is none; `factors` is `info:KEY` of the true state
        variables. Data that `to_minari` wrote knows both.
        """
        from acf.data.minari import from_minari

        return from_minari(dataset, noop, factors)

    def to_minari(self, name: str) -> Any:
        """Writes a local Minari data set of this name, without loss; rewards are 0, for there are none here.

        A Minari episode is a row of transitions that follow on each other, in the order of the episodes here.
        """
        from acf.data.minari import to_minari

        return to_minari(self, name)


def used_frames(data: Transitions) -> Int[np.ndarray, " M2"]:
    """The indices, ascending, of the frames that some transition starts from or leads to."""
    used = np.zeros(len(data.frames), bool)
    used[data.i] = True
    used[data.j] = True
    return np.flatnonzero(used)


def mean_picture(data: Transitions, most: int = 4096) -> Float32[np.ndarray, "H W C"]:
    """Of the frames that transitions start from, evenly over them where they are many."""
    rows = data.i[np.linspace(0, len(data) - 1, min(len(data), most)).astype(int)]
    return data.frames[rows].mean(0, dtype=np.float32)


def _check_alike(first: Transitions, part: Transitions, k: int) -> None:
    for name in ("frame_shape", "action_names", "noop", "factor_names", "controllable"):
        expected, found = getattr(first, name), getattr(part, name)
        if expected != found:
            raise DataError(f"concatenate: expected {name} {expected} as in part 0, found {found} in part {k}")


def _copy_rows(array: np.ndarray, rows: Int[np.ndarray, " N"], out: np.ndarray) -> None:
    for part in blocks(len(rows), array[:1].nbytes):
        out[part] = array[rows[part]]


def _as_int32(field: str, values: Any, T: int) -> Int32[np.ndarray, " T"]:
    values = np.asarray(values)
    if values.dtype.kind not in "iu" or values.shape != (T,):
        hint = f"; {DISCRETE}" if field == "a" and (values.ndim == 2 or values.dtype.kind == "f") else ""
        raise DataError(f"{field}: expected integers of shape ({T},), found {values.dtype} of {values.shape}{hint}")
    narrow = values.astype(np.int32)
    if (narrow != values).any():
        t = int((narrow != values).argmax())
        raise DataError(f"{field}[{t}]: expected a number that int32 can hold, found {values[t]}")
    return narrow


def _paired_factors(
    factors: Any, next_factors: Any, T: int
) -> tuple[Float32[np.ndarray, "T K"], Float32[np.ndarray, "T K"]] | tuple[None, None]:
    if factors is None and next_factors is None:
        return None, None
    if factors is None or next_factors is None:
        given, missing = ("next_factors", "factors") if factors is None else ("factors", "next_factors")
        raise DataError(f"{missing}: expected with {given}, found None")
    s, s_next = np.asarray(factors, np.float32), np.asarray(next_factors, np.float32)
    check_array("factors", s, np.float32, (T, "K"))
    check_array("next_factors", s_next, np.float32, s.shape)
    return s, s_next


def _goes_on(
    x: Rows,
    x_next: Rows,
    episode: Int32[np.ndarray, " T"],
    s: np.ndarray | None,
    s_next: np.ndarray | None,
) -> Bool[np.ndarray, " T"]:
    """Whether row t leads to the very frame that row t+1 starts from."""
    goes_on = np.zeros(len(x), bool)
    goes_on[:-1] = episode[:-1] == episode[1:]
    t = np.flatnonzero(goes_on)
    goes_on[t] = ~rows_differ(x_next, t, x, t + 1)
    if s is not None and s_next is not None:
        goes_on[t] &= ~rows_differ(s_next, t, s, t + 1)
    return goes_on


def _interleave(rows: Rows, next_rows: Rows, i: Int[np.ndarray, " T"], goes_on: Bool[np.ndarray, " T"]) -> np.ndarray:
    """Row t at place i[t]; its next row behind it, unless that is row t+1."""
    ends = ~goes_on
    out = np.empty((len(rows) + ends.sum(), *rows.shape[1:]), rows.dtype)
    for part in blocks(len(rows), row_bytes(rows)):
        out[i[part]] = rows[part]
        out[i[part][ends[part]] + 1] = next_rows[part][ends[part]]
    return out
