"""The pictures, pixel by pixel: a change in how a domain looks must be meant.

Each PNG in `golden/` is a strip of eight states chosen by hand, listed below. To write them anew after a meant change:

    uv run python tests/domains/test_golden.py --write

then look at them (they are 32 x 256: enlarge them eightfold) and commit them with the change.
"""

# The states below are written with plain numbers, and turned into arrays by `states`.
# pyright: reportArgumentType=false

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from acf.domains import DOMAINS, make
from acf.domains.base import State
from acf.domains.doorkey import DoorKeyState
from acf.domains.fourrooms import FourRoomsState
from acf.domains.grid2d import GridState
from acf.domains.lamp import LampState
from acf.domains.minigrid import Agent
from acf.domains.taxi import TaxiState

FOLDER = Path(__file__).parent / "golden"


def states(name: str) -> list[State]:
    """Eight of each, from left to right."""
    return [jax.tree.map(jnp.asarray, state) for state in _STATES[name]]


_STATES: dict[str, list[State]] = {
    "lamp": [
        LampState(power=1, colour=0, position=0, shape=0),  # warm disc at the left edge
        LampState(power=1, colour=1, position=1, shape=0),  # cold
        LampState(power=0, colour=0, position=2, shape=0),  # off: dim, the colour still shows
        LampState(power=0, colour=1, position=3, shape=0),
        LampState(power=1, colour=0, position=4, shape=1),  # square at the right edge
        LampState(power=0, colour=0, position=2, shape=1),
        LampState(power=1, colour=1, position=2, shape=2),  # diamond
        LampState(power=0, colour=1, position=0, shape=2),
    ],
    "grid2d": [
        GridState(0.0, 0.0),  # the corners: top left, top right, bottom left, bottom right
        GridState(1.0, 0.0),
        GridState(0.0, 1.0),
        GridState(1.0, 1.0),
        GridState(0.5, 0.5),
        GridState(0.51, 0.5),  # a quarter of a pixel to the right
        GridState(0.25, 0.75),
        GridState(0.9, 0.3),
    ],
    "taxi": [
        TaxiState(2, 2, 0, 0, in_taxi=0, goal=1),  # waiting at the red depot, for the green one
        TaxiState(0, 0, 0, 0, in_taxi=0, goal=3),  # under the taxi, not inside
        TaxiState(0, 0, 0, 0, in_taxi=1, goal=3),  # inside: striped frame
        TaxiState(4, 3, 4, 3, in_taxi=1, goal=0),
        TaxiState(1, 4, 3, 1, in_taxi=0, goal=2),  # set down in the middle of nowhere
        TaxiState(3, 2, 3, 2, in_taxi=1, goal=2),
        TaxiState(4, 4, 0, 4, in_taxi=0, goal=1),  # waiting at its goal
        TaxiState(2, 0, 2, 0, in_taxi=1, goal=1),
    ],
    "fourrooms": [
        FourRoomsState(Agent(1, 1, 0), 14, 14),  # east, south, west, north in the four corners
        FourRoomsState(Agent(1, 14, 1), 14, 1),
        FourRoomsState(Agent(14, 14, 2), 1, 1),
        FourRoomsState(Agent(14, 1, 3), 1, 14),
        FourRoomsState(Agent(4, 8, 0), 5, 5),  # in a gap
        FourRoomsState(Agent(8, 11, 1), 7, 11),  # in a gap, the goal behind it
        FourRoomsState(Agent(10, 10, 2), 10, 9),  # looking at the goal
        FourRoomsState(Agent(6, 3, 3), 6, 3),  # on the goal
    ],
    "doorkey": [
        # agent, key, held, door, open
        DoorKeyState(Agent(1, 1, 0), 3, 2, 0, 3, 4, 0),  # key on the floor, door locked
        DoorKeyState(Agent(2, 2, 1), 3, 2, 0, 3, 4, 0),  # looking at the key
        DoorKeyState(Agent(2, 2, 1), 0, 0, 1, 3, 4, 0),  # key held
        DoorKeyState(Agent(3, 3, 0), 0, 0, 1, 3, 4, 0),  # before the locked door
        DoorKeyState(Agent(3, 3, 0), 0, 0, 1, 3, 4, 1),  # before the open door
        DoorKeyState(Agent(3, 4, 3), 0, 0, 1, 3, 4, 1),  # in the doorway
        DoorKeyState(Agent(6, 6, 2), 0, 0, 1, 6, 5, 1),  # on the goal, beside a door in the last column
        DoorKeyState(Agent(5, 1, 2), 6, 1, 0, 1, 2, 0),  # the narrowest left room
    ],
}


def strip(name: str) -> np.ndarray:
    domain = make(name)
    return np.concatenate([np.asarray(domain.render(state)) for state in states(name)], axis=1)


@pytest.mark.parametrize("name", DOMAINS)
def test_golden(name: str):
    golden = np.asarray(Image.open(FOLDER / f"{name}.png"))
    np.testing.assert_array_equal(strip(name), golden, err_msg=f"{name} looks different: see {__file__}")


@pytest.mark.parametrize("name", DOMAINS)
def test_compiled_pictures_are_the_same(name: str):
    """A data set is rendered in batches under `jit`; fusion must not change a pixel."""
    batch = jax.tree.map(lambda *fields: jnp.stack(fields), *states(name))
    images = np.asarray(jax.jit(jax.vmap(make(name).render))(batch))
    np.testing.assert_array_equal(np.concatenate(list(images), axis=1), strip(name))


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python tests/domains/test_golden.py --write")
    FOLDER.mkdir(exist_ok=True)
    for name in DOMAINS:
        Image.fromarray(strip(name)).save(FOLDER / f"{name}.png", optimize=True)
