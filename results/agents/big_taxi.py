"""Taxi on 10x10 cells, for agents on true levels: no picture. The walls are the small town's, stretched.

Run from this folder: `acf agent big_taxi:BigTaxi --task deliver --steps 10000`.
"""

from dataclasses import dataclass
from types import MappingProxyType

import jax
import jax.numpy as jnp
import numpy as np

from acf.domains.base import Domain, Task, stack_factors
from acf.domains.taxi import _STEPS, INTERACT, Taxi, TaxiState

SIZE = 10
DEPOTS = np.array([[0, 0], [0, 9], [9, 0], [9, 8]])  # (row, column)
_WALL_RIGHT = np.zeros((SIZE, SIZE), bool)
_WALL_RIGHT[:4, 2] = True
_WALL_RIGHT[6:, [0, 4]] = True


def _delivered(levels):
    at = [
        (levels[..., 5] == goal) & (levels[..., 2] == column) & (levels[..., 3] == row) & (levels[..., 4] == 0)
        for goal, (row, column) in enumerate(DEPOTS.tolist())
    ]
    return at[0] | at[1] | at[2] | at[3]


@dataclass(frozen=True)
class BigTaxi(Domain):
    name = "taxi10"
    summary = "10x10, the passenger moves with the taxi"
    action_names = Taxi.action_names
    factor_names = Taxi.factor_names
    controllable = Taxi.controllable
    units = Taxi.units
    starts = ("episode",)
    tasks = MappingProxyType({"deliver": Task("the passenger stands on its goal's depot", _delivered, 200)})

    def sample(self, key, start="episode"):
        self.check_start(start)
        keys = jax.random.split(key, 3)
        taxi = jax.random.randint(keys[0], (2,), 0, SIZE)
        goal = jax.random.randint(keys[1], (), 0, len(DEPOTS))
        depot = (goal + jax.random.randint(keys[2], (), 1, len(DEPOTS))) % len(DEPOTS)
        passenger = jnp.asarray(DEPOTS, jnp.int32)[depot]
        return TaxiState(taxi[0], taxi[1], passenger[0], passenger[1], jnp.int32(0), goal)

    def step(self, key, state, action):
        d_row, d_column = jnp.asarray(_STEPS, jnp.int32)[action]
        column = state.taxi_column
        wall_column = jnp.where(d_column > 0, column, jnp.maximum(column - 1, 0))
        blocked = (d_column != 0) & jnp.asarray(_WALL_RIGHT)[state.taxi_row, wall_column]
        row = jnp.clip(state.taxi_row + d_row, 0, SIZE - 1)
        column = jnp.where(blocked, column, jnp.clip(column + d_column, 0, SIZE - 1))
        inside = state.in_taxi == 1
        together = (row == state.passenger_row) & (column == state.passenger_column)
        in_taxi = inside ^ ((action == INTERACT) & (inside | together))
        return TaxiState(
            row,
            column,
            jnp.where(inside, row, state.passenger_row),
            jnp.where(inside, column, state.passenger_column),
            in_taxi.astype(jnp.int32),
            state.goal,
        )

    def render(self, state):
        raise NotImplementedError("this town has no picture")

    def factors(self, state):
        taxi = state.taxi_column, state.taxi_row
        passenger = state.passenger_column, state.passenger_row
        return stack_factors(*taxi, *passenger, state.in_taxi, state.goal)
