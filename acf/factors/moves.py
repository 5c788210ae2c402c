"""Transitions in latent space: all that levels, certificate and factors are found from. No true factor is among it."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int


class Moves(NamedTuple):
    """Transitions of whole episodes; latents of what an episode keeps are left out."""

    z: Float[np.ndarray, "T K"]
    z_next: Float[np.ndarray, "T K"]
    action: Int[np.ndarray, " T"]
    episode: Int[np.ndarray, " T"]
    changed: Bool[np.ndarray, " T"]
    """Whether the picture changed."""
    picture: Int[np.ndarray, " T"]
    """A number for each picture that transitions start from: equal pictures have the same one."""

    @property
    def change(self) -> Float[np.ndarray, "T K"]:
        return self.z_next - self.z

    def of_action(self, action: int) -> Bool[np.ndarray, " T"]:
        """Where this action changed the picture."""
        return self.changed & (self.action == action)

    def effective(self, least: int = 5) -> list[int]:
        """The actions that changed the picture, and not just by a chance or two."""
        return [int(a) for a in np.unique(self.action) if self.of_action(a).sum() >= least]

    def mean(self, values: np.ndarray) -> float:
        """Over the changes of each action, then over these actions: each counts alike, however rare."""
        each = [values[self.of_action(a)].mean() for a in self.effective()]
        return float(np.mean(each)) if each else float("nan")
