"""Our rules against those of navix (DoorKey, FourRooms) and of Gymnasium (Taxi), state by state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import record_navix
from record_navix import EPISODES, STEPS, Fields

from acf.domains import make, minigrid
from acf.domains.base import Domain, State
from acf.domains.doorkey import GOAL, DoorKeyState
from acf.domains.fourrooms import FourRoomsState
from acf.domains.minigrid import Agent
from acf.domains.taxi import DEPOTS, INTERACT, Taxi, TaxiState

STATES = {"doorkey": DoorKeyState, "fourrooms": FourRoomsState}


def recording(name: str) -> Fields:
    with np.load(record_navix.FILE, allow_pickle=False) as file:
        prefix = f"{name}_"
        return {key.removeprefix(prefix): file[key] for key in file.files if key.startswith(prefix)}


def start_of(name: str, fields: Fields) -> State:
    first = {key: jnp.asarray(values[:, 0], jnp.int32) for key, values in fields.items() if key != "action"}
    agent = Agent(*(first.pop(f"agent_{field}") for field in Agent._fields))
    return STATES[name](agent=agent, **first)


def walk(domain: Domain, start: State, actions: np.ndarray) -> State:
    """Every state after the first, [episodes, steps]."""

    def one(state: State, actions: jax.Array) -> State:
        def step(state: State, action: jax.Array) -> tuple[State, State]:
            after = domain.step(jax.random.key(0), state, action)  # both domains are deterministic
            return after, after

        return jax.lax.scan(step, state, actions)[1]

    return jax.jit(jax.vmap(one))(start, jnp.asarray(actions, jnp.int32))


def assert_same_walk(name: str, fields: Fields) -> None:
    ours = walk(make(name), start_of(name, fields), fields["action"])
    flat = {f"agent_{key}": values for key, values in ours.agent._asdict().items()}
    flat |= {key: values for key, values in ours._asdict().items() if key != "agent"}
    assert flat.keys() == fields.keys() - {"action"}
    for key, values in flat.items():
        np.testing.assert_array_equal(np.asarray(values), fields[key][:, 1:], err_msg=f"{name}: {key}")


@pytest.mark.parametrize("name", STATES)
def test_recorded_navix(name: str):
    fields = recording(name)
    assert fields["action"].shape == (EPISODES[name], STEPS)
    assert_same_walk(name, fields)


@pytest.mark.slow
@pytest.mark.parametrize("name", STATES)
def test_live_navix(name: str):
    pytest.importorskip("navix")
    # Seeds that the recording did not use.
    assert_same_walk(name, record_navix.record(name, seed=1_000, episodes=1_024, steps=128))


def test_recording_covers_doorkey():
    """A parity test says nothing about what its walks never did."""
    fields = recording("doorkey")
    picked = np.diff(fields["key_held"]) == 1
    opened = np.diff(fields["door_open"]) == 1
    row, column = fields["agent_row"], fields["agent_column"]
    beyond = column > fields["door_column"]
    in_doorway = column == fields["door_column"]
    on_goal = (row == GOAL[0]) & (column == GOAL[1])
    assert picked.sum() > 100 and opened.sum() > 100
    assert beyond.mean() > 0.2 and in_doorway.sum() > 200 and on_goal.sum() > 500
    # The agent also leaves the goal again: nothing ends there.
    assert (on_goal[:, :-1] & ~on_goal[:, 1:]).sum() > 50
    layouts = {(int(r), int(c)) for r, c in zip(fields["door_row"][:, 0], fields["door_column"][:, 0], strict=True)}
    assert len(layouts) == 24
    # Requests that must be refused: pick up and open without the thing in front, open without the key.
    assert ((fields["action"] == minigrid.PICKUP) & ~picked).sum() > 500
    assert ((fields["action"] == minigrid.OPEN) & ~opened & (fields["key_held"][:, :-1] == 0)).sum() > 500


def test_recording_covers_fourrooms():
    fields = recording("fourrooms")
    places = set(zip(fields["agent_row"].ravel().tolist(), fields["agent_column"].ravel().tolist(), strict=True))
    assert len(places) == 173


@pytest.mark.parametrize("name", STATES)
def test_recording_covers_every_move(name: str):
    """Each move under each heading, both taken and blocked: navix as shipped has six of them wrong."""
    fields = recording(name)
    heading = fields["agent_heading"][:, :-1]
    moved = (np.diff(fields["agent_row"]) != 0) | (np.diff(fields["agent_column"]) != 0)
    for action in map(minigrid.ACTIONS.index, ("forward", "backward", "right", "left")):
        for turn in range(4):
            tried = (fields["action"] == action) & (heading == turn)
            assert (tried & moved).sum() > 20, (action, turn)
            assert (tried & ~moved).sum() > 20, (action, turn)


def test_taxi_has_gymnasiums_table():
    """Every state and action of Gymnasium's Taxi, read from its transition table."""
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("Taxi-v4").unwrapped
    # Gymnasium's names of our actions; `interact` picks up, or drops off once the passenger is inside.
    south, north, east, west, pickup, dropoff = range(6)
    moves = {1: north, 2: south, 3: west, 4: east}

    codes = np.arange(500)
    taxi_row, taxi_column, passenger, goal = np.array([list(env.decode(code)) for code in codes]).T
    inside = passenger == len(DEPOTS)
    seat = np.stack([taxi_row, taxi_column], 1)
    place = np.where(inside[:, None], seat, np.vstack([DEPOTS, [[0, 0]]])[passenger])
    ours = TaxiState(*(jnp.asarray(field, jnp.int32) for field in (taxi_row, taxi_column, *place.T, inside, goal)))

    step = jax.jit(jax.vmap(Taxi(depot_only=True).step, in_axes=(None, 0, None)))
    depot_of = {tuple(cell): i for i, cell in enumerate(DEPOTS.tolist())}
    compared = 0
    for action in (*moves, INTERACT):
        after = jax.tree.map(lambda x: np.asarray(x).tolist(), step(jax.random.key(0), ours, jnp.int32(action)))
        for code in codes.tolist():
            theirs = moves.get(action, dropoff if inside[code] else pickup)
            ((probability, expected, _, _),) = env.P[code][theirs]
            row, column, *cell, in_taxi, target = (field[code] for field in after)
            seated = len(DEPOTS) if in_taxi else depot_of[tuple(cell)]
            assert probability == 1
            assert env.encode(row, column, seated, target) == expected, (code, action)
            compared += 1
    assert compared == 2_500
