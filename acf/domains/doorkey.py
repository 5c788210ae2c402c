"""DoorKey: fetch the key, open the door, in MiniGrid's 8x8 world at 4 px a cell.

The wall's column, the door's row and the key's place are drawn with the start state; the goal stays in the corner. The
key is used up by nothing and the door never closes, so there are three phases: key on the floor, key held before a
locked door, door open.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from acf.domains import minigrid
from acf.domains.base import Domain, Task, choose, paint, stack_factors, to_uint8
from acf.domains.minigrid import HEADINGS, OPEN, PICKUP, Agent, Canvas

SIZE = 8
GOAL = (6, 6)  # (row, column)
_OUTER = np.ones((SIZE, SIZE), bool)
_OUTER[1:-1, 1:-1] = False
_COLUMNS = np.arange(SIZE)[None, :]

_CANVAS = Canvas(SIZE, 4)
_RED, _YELLOW, _DIM_YELLOW = (255, 60, 60), (255, 220, 0), (110, 95, 0)
_AGENT = _CANVAS.tile(minigrid.rotations(np.array([[1, 0.5, 0, 0], [1, 1, 1, 0.5], [1, 1, 1, 0.5], [1, 0.5, 0, 0]])))
_KEY = _CANVAS.tile(np.array([[0, 1, 1, 0], [0, 1, 1, 0], [0, 1, 0, 0], [0, 1, 1, 0]], np.float32))
_DOOR_RIM = _CANVAS.tile(np.array([[1, 1, 1, 1], [1, 0, 0, 1], [1, 0, 0, 1], [1, 1, 1, 1]], np.float32))
_DOOR_POSTS = _CANVAS.tile(np.array([[1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]], np.float32))


class DoorKeyState(NamedTuple):
    agent: Agent
    key_row: Int[Array, ""]  # row and column are 0 while the key is held
    key_column: Int[Array, ""]
    key_held: Int[Array, ""]
    door_row: Int[Array, ""]
    door_column: Int[Array, ""]
    door_open: Int[Array, ""]


def _cell(row: Int[Array, ""], column: Int[Array, ""]) -> Bool[Array, "8 8"]:
    return (jnp.arange(SIZE) == row)[:, None] & (jnp.arange(SIZE) == column)[None, :]


def _walls(door_row: Int[Array, ""], door_column: Int[Array, ""]) -> Bool[Array, "8 8"]:
    return jnp.asarray(_OUTER) | ((_COLUMNS == door_column) & ~_cell(door_row, door_column))


def _facing(target: Bool[Array, "8 8"]) -> Bool[Array, "4 8 8"]:
    """By heading: the cells from which an agent looks at `target`."""
    return jnp.stack([jnp.roll(target, -d, axis=(0, 1)) for d in HEADINGS])


@dataclass(frozen=True)
class DoorKey(Domain):
    name = "doorkey"
    summary = "MiniGrid, 8x8, key and door"
    action_names = minigrid.ACTIONS
    factor_names = ("agent_x", "agent_y", "dir", "key_held", "door_open", "door_x", "door_y")
    controllable = (True, True, True, True, True, False, False)
    starts = ("episode", "balanced", "balanced+facing")
    hidden_names = ("key_x", "key_y")
    units = ("column", "row", "", "", "", "column", "row", "column", "row")
    tasks = MappingProxyType(
        {
            "key": Task("the key is held", lambda levels: levels[..., 3] == 1, 200),
            "open": Task("the door is open", lambda levels: levels[..., 4] == 1, 200),
            "goal": Task(
                "the agent stands on the goal",
                lambda levels: (levels[..., 1] == GOAL[0]) & (levels[..., 0] == GOAL[1]),
                200,
            ),
        }
    )

    def sample(self, key: PRNGKeyArray, start: str = "balanced") -> DoorKeyState:
        """`episode`: key on the floor, agent beside it in the left room. `balanced`: the three phases equally often.
        `balanced+facing`: the same, and half of the agents look at the key, or at the locked door."""
        self.check_start(start)
        keys = jax.random.split(key, 6)
        door_column = jax.random.randint(keys[0], (), 2, 6)
        door_row = jax.random.randint(keys[1], (), 1, 7)
        door, walls = _cell(door_row, door_column), _walls(door_row, door_column)
        left_room = ~walls & (_COLUMNS < door_column)
        key_cell = choose(keys[2], left_room)

        phase = jnp.int32(0) if start == "episode" else jax.random.randint(keys[3], (), 0, 3)
        room = jnp.select([phase == 0, phase == 1], [left_room & ~_cell(*key_cell), left_room], ~walls)
        places = jnp.broadcast_to(room, (4, SIZE, SIZE))
        if start == "balanced+facing":
            looks = jax.random.bernoulli(keys[4]) & (phase < 2)
            target = jnp.where(phase == 0, _cell(*key_cell), door)
            places = places & (~looks | _facing(target))
        heading, row, column = choose(keys[5], places)

        held = (phase > 0).astype(jnp.int32)
        key_row, key_column = (jnp.where(held == 1, 0, k) for k in key_cell)
        door_open = (phase == 2).astype(jnp.int32)
        return DoorKeyState(Agent(row, column, heading), key_row, key_column, held, door_row, door_column, door_open)

    def step(self, key: PRNGKeyArray, state: DoorKeyState, action: Int[Array, ""]) -> DoorKeyState:
        door = _cell(state.door_row, state.door_column)
        walkable = ~_walls(state.door_row, state.door_column)
        walkable &= ~(door & (state.door_open == 0))
        walkable &= ~(_cell(state.key_row, state.key_column) & (state.key_held == 0))

        ahead = _cell(*minigrid.front(state.agent))
        sees_key = ahead[state.key_row, state.key_column] & (state.key_held == 0)
        sees_door = ahead[state.door_row, state.door_column]
        held = (state.key_held == 1) | ((action == PICKUP) & sees_key)
        opened = (state.door_open == 1) | ((action == OPEN) & sees_door & (state.key_held == 1))
        return state._replace(
            agent=minigrid.act(state.agent, action, walkable),
            key_row=jnp.where(held, 0, state.key_row),
            key_column=jnp.where(held, 0, state.key_column),
            key_held=held.astype(jnp.int32),
            door_open=opened.astype(jnp.int32),
        )

    def render(self, state: DoorKeyState) -> UInt8[Array, "32 32 3"]:
        agent = state.agent
        door = _CANVAS.at(state.door_row, state.door_column)
        image = _CANVAS.ground(_walls(state.door_row, state.door_column))
        image = paint(image, _CANVAS.at(*map(jnp.int32, GOAL)), minigrid.GOAL)
        image = paint(image, door & (state.door_open == 0), _DIM_YELLOW)
        image = paint(image, door * jnp.where(state.door_open == 1, _DOOR_POSTS, _DOOR_RIM), _YELLOW)
        key_alpha = _KEY * _CANVAS.at(state.key_row, state.key_column) * (1 - state.key_held)
        image = paint(image, key_alpha, _YELLOW)
        return to_uint8(paint(image, _CANVAS.at(agent.row, agent.column) * jnp.asarray(_AGENT)[agent.heading], _RED))

    def factors(self, state: DoorKeyState) -> Float[Array, "7"]:
        row, column, heading = state.agent
        door = state.door_column, state.door_row
        return stack_factors(column, row, heading, state.key_held, state.door_open, *door)

    def levels(self, state: DoorKeyState) -> Int[Array, "9"]:
        return jnp.append(super().levels(state), jnp.stack([state.key_column, state.key_row]).astype(jnp.int32))
