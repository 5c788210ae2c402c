"""Grid2D: a point in the unit square, seen as a soft blob, pushed up, down, left or right."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from acf.domains.base import Domain, stack_factors, to_uint8

BLOB = (120.0, 200.0, 255.0)
SIGMA = 1.5  # of the blob, in pixels: soft, so that a shift far below a pixel still shows
_MOVES = np.array([[0, 0], [0, -1], [0, 1], [-1, 0], [1, 0]], np.float32)  # (x, y) by action


class GridState(NamedTuple):
    x: Float[Array, ""]
    y: Float[Array, ""]


def _reflect(p: Float[Array, "2"]) -> Float[Array, "2"]:
    """Fold a position back into [0, 1]. Clipping would put probability atoms on the border."""
    p = jnp.abs(p)
    return 1 - jnp.abs(1 - p)


@dataclass(frozen=True)
class Grid2D(Domain):
    stride: float = 0.1
    noise: float = 0.02  # under every action, the no-op too: the theory needs densities

    name = "grid2d"
    continuous = True
    summary = "a point in the unit square"
    action_names = ("noop", "up", "down", "left", "right")
    factor_names = ("x", "y")
    controllable = (True, True)

    def sample(self, key: PRNGKeyArray, start: str = "balanced") -> GridState:
        self.check_start(start)  # an episode starts anywhere: the two distributions are one
        return GridState(*jax.random.uniform(key, (2,)))

    def step(self, key: PRNGKeyArray, state: GridState, action: Int[Array, ""]) -> GridState:
        p = jnp.stack(state) + self.stride * jnp.asarray(_MOVES)[action]
        return GridState(*_reflect(p + self.noise * jax.random.normal(key, (2,))))

    def render(self, state: GridState) -> UInt8[Array, "32 32 3"]:
        # The centre runs from 4 to 27, so the blob never leaves the frame.
        bump_x, bump_y = (jnp.exp(-0.5 * ((jnp.arange(32) - (4 + 23 * p)) / SIGMA) ** 2) for p in state)
        return to_uint8((bump_y[:, None] * bump_x[None, :])[..., None] * jnp.array(BLOB))

    def factors(self, state: GridState) -> Float[Array, "2"]:
        return stack_factors(*state)
