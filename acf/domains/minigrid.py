"""What DoorKey and FourRooms share: the ten actions, moves relative to the heading, and drawing on a grid of cells."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from acf.domains.base import paint

ACTIONS = (
    "noop",
    "rotate_cw",
    "rotate_ccw",
    "forward",
    "backward",
    "right",
    "left",
    "pickup",
    "open",
    "done",
)
PICKUP, OPEN = ACTIONS.index("pickup"), ACTIONS.index("open")
HEADINGS = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])  # (row, column) of east, south, west, north: clockwise
_TURN = np.array([0, 1, -1, 0, 0, 0, 0, 0, 0, 0])
_MOVES = np.array([0, 0, 0, 1, 1, 1, 1, 0, 0, 0])
_SIDE = np.array([0, 0, 0, 0, 2, 1, 3, 0, 0, 0])  # quarter turns from the heading to the way of the move

FLOOR, WALL, GOAL = (0, 0, 0), (110, 110, 110), (0, 160, 80)


class Agent(NamedTuple):
    row: Int[Array, ""]
    column: Int[Array, ""]
    heading: Int[Array, ""]


def front(agent: Agent) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """The cell the agent looks at."""
    d_row, d_column = jnp.asarray(HEADINGS, jnp.int32)[agent.heading]
    return agent.row + d_row, agent.column + d_column


def act(agent: Agent, action: Int[Array, ""], walkable: Bool[Array, "n n"]) -> Agent:
    """Turn, or move one cell if that cell is walkable."""
    side = (agent.heading + jnp.asarray(_SIDE)[action]) % 4
    d_row, d_column = jnp.asarray(HEADINGS, jnp.int32)[side] * jnp.asarray(_MOVES, jnp.int32)[action]
    row, column = agent.row + d_row, agent.column + d_column
    free = walkable[row, column]
    heading = (agent.heading + jnp.asarray(_TURN)[action]) % 4
    return Agent(
        jnp.where(free, row, agent.row),
        jnp.where(free, column, agent.column),
        heading.astype(jnp.int32),
    )


class Canvas:
    """Draws an n x n grid of cells as n*px x n*px pixels, each sprite laid over what was there."""

    def __init__(self, cells: int, px: int):
        self.px = px
        self._index = np.arange(cells * px) // px
        self._cells = cells

    def cells(self, mask: Bool[Array, "n n"]) -> Bool[Array, "H W"]:
        return jnp.repeat(jnp.repeat(mask, self.px, axis=0), self.px, axis=1)

    def at(self, row: Int[Array, ""], column: Int[Array, ""]) -> Bool[Array, "H W"]:
        return (self._index == row)[:, None] & (self._index == column)[None, :]

    def tile(self, sprite: np.ndarray) -> np.ndarray:
        """Repeat a [..., px, px] sprite in every cell; `at` then picks the cell it shows in."""
        reps = [1] * (sprite.ndim - 2) + [self._cells, self._cells]
        return np.tile(sprite, reps)

    def ground(self, walls: Bool[Array, "n n"]) -> Float[Array, "H W 3"]:
        image = jnp.broadcast_to(jnp.array(FLOOR, jnp.float32), (*self.cells(walls).shape, 3))
        return paint(image, self.cells(walls), WALL)


def rotations(sprite: np.ndarray) -> np.ndarray:
    """A sprite that looks east, turned to the four headings: [4, px, px]."""
    return np.stack([np.rot90(sprite, -heading) for heading in range(4)])
