"""FourRooms: MiniGrid's rooms, 16x16 at 2 px a cell. The gaps are fixed: a layout would be a hidden variable."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from acf.domains import minigrid
from acf.domains.base import Domain, Task, choose, paint, stack_factors, to_uint8
from acf.domains.minigrid import Agent, Canvas

SIZE, MIDDLE = 16, 8
GAPS = ((4, 8), (11, 8), (8, 4), (8, 11))  # (row, column)


def _walls() -> np.ndarray:
    walls = np.zeros((SIZE, SIZE), bool)
    walls[[0, MIDDLE, -1], :] = True
    walls[:, [0, MIDDLE, -1]] = True
    for gap in GAPS:
        walls[gap] = False
    return walls


WALLS = _walls()
# At 2 px a cell the heading is the side of the red square that shines.
_BODY, _LAMP = (190, 20, 20), (255, 240, 170)
_CANVAS = Canvas(SIZE, 2)
_FRONT = _CANVAS.tile(minigrid.rotations(np.array([[0.0, 1.0], [0.0, 1.0]])))


class FourRoomsState(NamedTuple):
    agent: Agent
    goal_row: Int[Array, ""]
    goal_column: Int[Array, ""]


@dataclass(frozen=True)
class FourRooms(Domain):
    name = "fourrooms"
    summary = "MiniGrid, 16x16, moves by heading"
    action_names = minigrid.ACTIONS
    factor_names = ("agent_x", "agent_y", "dir", "goal_x", "goal_y")
    controllable = (True, True, True, False, False)
    units = ("column", "row", "", "column", "row")
    tasks = MappingProxyType(
        {
            "goal": Task(
                "the agent stands on the goal",
                lambda levels: (levels[..., 0] == levels[..., 3]) & (levels[..., 1] == levels[..., 4]),
                100,
            )
        }
    )

    def sample(self, key: PRNGKeyArray, start: str = "balanced") -> FourRoomsState:
        """`episode`: agent and goal in different cells. `balanced`: independent of each other."""
        self.check_start(start)
        keys = jax.random.split(key, 3)
        free = ~jnp.asarray(WALLS)
        goal_row, goal_column = choose(keys[0], free)
        if start == "episode":
            free = free.at[goal_row, goal_column].set(False)
        row, column = choose(keys[1], free)
        agent = Agent(row, column, jax.random.randint(keys[2], (), 0, 4))
        return FourRoomsState(agent, goal_row, goal_column)

    def step(self, key: PRNGKeyArray, state: FourRoomsState, action: Int[Array, ""]) -> FourRoomsState:
        return state._replace(agent=minigrid.act(state.agent, action, ~jnp.asarray(WALLS)))

    def render(self, state: FourRoomsState) -> UInt8[Array, "32 32 3"]:
        agent = state.agent
        here = _CANVAS.at(agent.row, agent.column)
        image = _CANVAS.ground(jnp.asarray(WALLS))
        image = paint(image, _CANVAS.at(state.goal_row, state.goal_column), minigrid.GOAL)
        image = paint(image, here, _BODY)
        return to_uint8(paint(image, here * jnp.asarray(_FRONT)[agent.heading], _LAMP))

    def factors(self, state: FourRoomsState) -> Float[Array, "5"]:
        row, column, heading = state.agent
        return stack_factors(column, row, heading, state.goal_column, state.goal_row)
