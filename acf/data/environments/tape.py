"""From moments in the order they come to blocks of frames and transitions."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import UInt8

from acf.data.blocks import Block
from acf.data.environments.stepping import Seen

BLOCK_BYTES = 16 << 20  # of frames; about all the memory that collecting needs on top of the environment's


@dataclass
class Tape:
    """Frames and transitions since the last block. Frames are numbered over the whole data set."""

    first: int = 0
    frames: list[np.ndarray] = field(default_factory=list)
    factors: list[Any] = field(default_factory=list)
    episode: list[int] = field(default_factory=list)
    transitions: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, frame: UInt8[np.ndarray, "H W C"], factors: Any, episode: int) -> int:
        self.frames.append(frame)
        self.factors.append(factors)
        self.episode.append(episode)
        return self.first + len(self.frames) - 1

    def is_full(self) -> bool:
        return bool(self.frames) and len(self.frames) * self.frames[0].nbytes >= BLOCK_BYTES

    def next(self) -> "Tape":
        return Tape(self.first + len(self.frames))

    def cut(self) -> Block:
        i, action, j = np.array(self.transitions, np.int32).reshape(-1, 3).T
        factors = None if self.factors[0] is None else np.stack(self.factors)
        return Block(np.stack(self.frames), i, action, j, np.array(self.episode, np.int32), factors)


class Track:
    """One environment's episode, its frames stacked."""

    def __init__(self, start: Seen, episode: int, stack: int):
        self.observation = start.observation
        self._episode = episode
        self._recent = deque([start.frame] * stack, maxlen=stack)
        self._start: Seen | None = start
        self._at = 0

    def follow(self, tape: Tape, action: int, after: Seen) -> None:
        if self._start is not None:  # which is kept when something follows from it
            self._at = tape.add(self._stacked(), self._start.factors, self._episode)
            self._start = None
        self._recent.append(after.frame)
        to = tape.add(self._stacked(), after.factors, self._episode)
        tape.transitions.append((self._at, action, to))
        self._at, self.observation = to, after.observation

    def _stacked(self) -> UInt8[np.ndarray, "H W C"]:
        return np.concatenate(self._recent, axis=-1)
