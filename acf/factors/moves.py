"""Transitions in latent space: all that levels, certificate and factors are found from. No true factor is among it."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int


class Moves(NamedTuple):
    """Transitions of whole episodes in order of time; latents of what an episode keeps are left out."""

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

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.z).all() and np.isfinite(self.z_next).all())

    def of_action(self, action: int) -> Bool[np.ndarray, " T"]:
        """Where this action changed the picture."""
        return self.changed & (self.action == action)

    def effective(self, least: int = 5) -> list[int]:
        """The actions that changed the picture, and not just by a chance or two."""
        actions, times = np.unique(self.action[self.changed], return_counts=True)
        return actions[times >= least].tolist()

    def by_action(self, values: np.ndarray) -> tuple[list[int], Float[np.ndarray, " E"], Int[np.ndarray, " E"]]:
        """The actions that changed anything, the mean of `values` over each one's changes, and how many these are."""
        actions = self.effective(1)
        rows = [self.of_action(a) for a in actions]
        return actions, np.array([values[r].mean() for r in rows]), np.array([r.sum() for r in rows], np.int64)
