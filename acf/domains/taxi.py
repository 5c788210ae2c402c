"""Taxi: a 5x5 town with four depots and one passenger (Dietterich 2000), seen from above.

The taxi is a hollow square and the passenger a disc in the colour of its goal; while the passenger is inside, the frame
of the picture is striped in that colour.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from acf.domains.base import Domain, Levels, Task, paint, stack_factors, to_uint8

SIZE = 5
DEPOTS = np.array([[0, 0], [0, 4], [4, 0], [4, 3]])  # (row, column)
GOAL_COLOURS = np.array([[220, 40, 40], [0, 150, 80], [225, 170, 0], [40, 90, 220]], np.float32)
# Walls on the right side of these cells, (row, column); the outer walls come on top.
INNER_WALLS = ((0, 1), (1, 1), (3, 0), (4, 0), (3, 2), (4, 2))
FLOOR, GAP, WALL, FRAME, TAXI = 245, 225, 60, 200, 90

INTERACT = 5
_STEPS = np.array([[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1], [0, 0]])  # (row, column) by action
_WALL_RIGHT = np.zeros((SIZE, SIZE), bool)
for _cell in INNER_WALLS:
    _WALL_RIGHT[_cell] = True

# 32 pixels = 1 frame + 5 cells of 6 (5 of content, 1 of gap where a wall may stand) + 1 frame.
_CELL = np.clip((np.arange(32) - 1) // 6, 0, SIZE - 1)
_OFFSET = np.where((np.arange(32) == 0) | (np.arange(32) >= 30), 5, (np.arange(32) - 1) % 6)
_CONTENT = _OFFSET < 5
_ON_FRAME = (np.arange(32) == 0) | (np.arange(32) >= 30)


def _tile(sprite: list[list[float]]) -> np.ndarray:
    """A 5x5 sprite repeated in the content of every cell; 0 on gaps and frame."""
    padded = np.zeros((6, 6), np.float32)
    padded[:5, :5] = sprite
    return padded[_OFFSET[:, None], _OFFSET[None, :]]


_TAXI = _tile([[1, 1, 1, 1, 1], [1, 0, 0, 0, 1], [1, 0, 0, 0, 1], [1, 0, 0, 0, 1], [1, 1, 1, 1, 1]])
_DISC = _tile([[0, 0, 0, 0, 0], [0, 0.75, 1, 0.75, 0], [0, 1, 1, 1, 0], [0, 0.75, 1, 0.75, 0], [0, 0, 0, 0, 0]])


def _background() -> np.ndarray:
    image = np.full((32, 32, 3), GAP, np.float32)
    image[_CONTENT[:, None] & _CONTENT[None, :]] = FLOOR
    for (row, column), colour in zip(DEPOTS, GOAL_COLOURS, strict=True):
        cell = ((_CELL == row) & _CONTENT)[:, None] & ((_CELL == column) & _CONTENT)[None, :]
        image[cell] = 0.75 * FLOOR + 0.25 * colour
    for row, column in INNER_WALLS:
        image[(_CELL == row)[:, None] & ((_CELL == column) & ~_CONTENT)[None, :]] = WALL
    image[_FRAME_MASK] = FRAME
    return image


_FRAME_MASK = _ON_FRAME[:, None] | _ON_FRAME[None, :]
_STRIPES = (_FRAME_MASK & ((np.add.outer(np.arange(32), np.arange(32)) // 2) % 2 == 0)).astype(np.float32)
_BACKGROUND = _background()


class TaxiState(NamedTuple):
    taxi_row: Int[Array, ""]
    taxi_column: Int[Array, ""]
    passenger_row: Int[Array, ""]
    passenger_column: Int[Array, ""]
    in_taxi: Int[Array, ""]
    goal: Int[Array, ""]


def _delivered(levels: Levels):
    at = [(levels[..., 5] == goal) & _parked(levels, column, row) for goal, (row, column) in enumerate(DEPOTS.tolist())]
    return at[0] | at[1] | at[2] | at[3]


def _parked(levels: Levels, column: int, row: int):
    return (levels[..., 2] == column) & (levels[..., 3] == row) & (levels[..., 4] == 0)


@dataclass(frozen=True)
class Taxi(Domain):
    depot_only: bool = False  # True: a passenger gets out at depots only, as in Gymnasium's Taxi

    name = "taxi"
    summary = "5x5, the passenger moves with the taxi"
    action_names = ("noop", "up", "down", "left", "right", "interact")
    factor_names = ("taxi_x", "taxi_y", "passenger_x", "passenger_y", "in_taxi", "goal")
    controllable = (True, True, True, True, True, False)
    units = ("column", "row", "column", "row", "", "")
    tasks = MappingProxyType(
        {
            "deliver": Task("the passenger stands on its goal's depot", _delivered, 100),
            "pickup": Task("the passenger is in the taxi", lambda levels: levels[..., 4] == 1, 100),
            "park": Task("the passenger stands in the middle of the town", lambda levels: _parked(levels, 2, 2), 100),
        }
    )

    def sample(self, key: PRNGKeyArray, start: str = "balanced") -> TaxiState:
        """`episode`: waiting at a depot that is not the goal. `balanced`: half anywhere, a quarter under the taxi,
        a quarter inside."""
        self.check_start(start)
        keys = jax.random.split(key, 4)
        taxi = jax.random.randint(keys[0], (2,), 0, SIZE)
        goal = jax.random.randint(keys[1], (), 0, len(DEPOTS))
        if start == "episode":
            depot = (goal + jax.random.randint(keys[2], (), 1, len(DEPOTS))) % len(DEPOTS)
            passenger, in_taxi = jnp.asarray(DEPOTS, jnp.int32)[depot], jnp.int32(0)
            return TaxiState(taxi[0], taxi[1], passenger[0], passenger[1], in_taxi, goal)
        kind = jax.random.randint(keys[2], (), 0, 4)  # 0, 1: anywhere; 2: under the taxi; 3: inside
        passenger = jnp.where(kind < 2, jax.random.randint(keys[3], (2,), 0, SIZE), taxi)
        return TaxiState(taxi[0], taxi[1], passenger[0], passenger[1], (kind == 3).astype(jnp.int32), goal)

    def step(self, key: PRNGKeyArray, state: TaxiState, action: Int[Array, ""]) -> TaxiState:
        row, column = state.taxi_row, state.taxi_column
        d_row, d_column = jnp.asarray(_STEPS, jnp.int32)[action]
        # The wall that a sideways step would cross stands right of the cell it leaves or of the one it enters.
        wall_column = jnp.where(d_column > 0, column, jnp.maximum(column - 1, 0))
        blocked = (d_column != 0) & jnp.asarray(_WALL_RIGHT)[row, wall_column]
        row = jnp.clip(row + d_row, 0, SIZE - 1)
        column = jnp.where(blocked, column, jnp.clip(column + d_column, 0, SIZE - 1))

        inside = state.in_taxi == 1
        together = (row == state.passenger_row) & (column == state.passenger_column)
        at_depot = jnp.any((jnp.asarray(DEPOTS) == jnp.stack([row, column])).all(-1))
        toggles = jnp.where(inside, at_depot | (not self.depot_only), together)
        in_taxi = inside ^ ((action == INTERACT) & toggles)
        return TaxiState(
            row,
            column,
            jnp.where(inside, row, state.passenger_row),
            jnp.where(inside, column, state.passenger_column),
            in_taxi.astype(jnp.int32),
            state.goal,
        )

    def render(self, state: TaxiState) -> UInt8[Array, "32 32 3"]:
        def at(row: Array, column: Array) -> Array:
            return (_CELL == row)[:, None] & (_CELL == column)[None, :]

        colour = jnp.asarray(GOAL_COLOURS)[state.goal]
        image = paint(jnp.asarray(_BACKGROUND), _DISC * at(state.passenger_row, state.passenger_column), colour)
        image = paint(image, _TAXI * at(state.taxi_row, state.taxi_column), (TAXI, TAXI, TAXI))
        return to_uint8(paint(image, _STRIPES * state.in_taxi, colour))

    def factors(self, state: TaxiState) -> Float[Array, "6"]:
        taxi = state.taxi_column, state.taxi_row
        passenger = state.passenger_column, state.passenger_row
        return stack_factors(*taxi, *passenger, state.in_taxi, state.goal)
