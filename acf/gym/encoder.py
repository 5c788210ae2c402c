"""A run's encoder as an agent needs it: from what an environment shows, the way its data was made, to latents."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from jaxtyping import Float32, UInt8

from acf.data.environments.pictures import Picture, picture_of
from acf.errors import AcfError
from acf.training.run_dir import RunDir, Trained, load

Frame = UInt8[np.ndarray, "H W C"]


class Encoder:
    """Its weights are loaded when they are first needed and never pickled: processes get the path of the run."""

    def __init__(self, run: str | Path, member: int):
        self.run, self.member = Path(run).resolve(), member  # another process may work elsewhere
        config = RunDir(self.run).read_finished()
        self.shape, self.latents = config.spec.frame_shape, config.spec.latents
        made = _collected(config.data.get("source") or {})
        self.stack, self.rendered = int(made.get("stack", 1)), bool(made.get("render", False))
        self._gray, self._size = bool(made.get("gray", False)), made.get("size")
        self._trained: Trained | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_trained": None}

    @property
    def space(self) -> gym.spaces.Box:
        return gym.spaces.Box(-np.inf, np.inf, (self.latents,), np.float32)

    def picture(self, space: gym.Space) -> Picture:
        """How frames were made of observations when the run's data was collected."""
        return Picture(self._gray, self._size) if self.rendered else picture_of(space, self._gray, self._size)

    def __call__(self, stacks: Sequence[Sequence[Frame]]) -> Float32[np.ndarray, "n K"]:
        """Latents of frames, each given as the pictures that are stacked in it."""
        frames = np.stack([np.concatenate(stack, axis=-1) for stack in stacks])
        if frames.shape[1:] != self.shape:
            raise AcfError(
                f"{self.run} was trained on frames of {self.shape}, the environment gives {frames.shape[1:]}; wrap it "
                "so that it gives those, or collect the run's data with acf.collect: its way of making them is repeated"
            )
        self._trained = self._trained or load(self.run, self.member)
        return np.asarray(self._trained.encode(frames), np.float32)


def _collected(source: dict[str, Any]) -> dict[str, Any]:
    """Of parts of data, the source of the whole."""
    while "of" in source:
        of = source["of"]
        source = of[0] if isinstance(of, list) else of
    return source
