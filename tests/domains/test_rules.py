"""What each domain promises: who may change what, which states exist, what can be seen, where episodes start."""

import functools
import hashlib
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acf.domains import DOMAINS, make
from acf.domains.base import Domain, State
from acf.domains.doorkey import GOAL, DoorKey, DoorKeyState
from acf.domains.fourrooms import WALLS, FourRooms, FourRoomsState
from acf.domains.grid2d import Grid2D, GridState
from acf.domains.lamp import POSITIONS, Lamp, LampState
from acf.domains.minigrid import ACTIONS, HEADINGS, Agent
from acf.domains.taxi import DEPOTS, Taxi, TaxiState

DETERMINISTIC = ("taxi", "fourrooms", "doorkey")
DRAWS = 40_000  # of most tests that draw; the bounds below scale with it
RADIX = 32  # more than any field of a state counts to: a state's fields are the digits of its code

# The factors an action may change, by hand. `done` is MiniGrid's announcement and changes nothing.
_MINIGRID: dict[str, set[str]] = {
    "noop": set(),
    "rotate_cw": {"dir"},
    "rotate_ccw": {"dir"},
    **{move: {"agent_x", "agent_y"} for move in ("forward", "backward", "right", "left")},
    "pickup": set(),
    "open": set(),
    "done": set(),
}
ALLOWED: dict[str, dict[str, set[str]]] = {
    # The lamp's switches also flip by themselves and Grid2D's point trembles, so these are the changes on top of that.
    "lamp": {"noop": set(), "switch_power": {"power"}, "switch_colour": {"colour"}},
    "grid2d": {"noop": set(), "up": {"y"}, "down": {"y"}, "left": {"x"}, "right": {"x"}},
    "taxi": {
        "noop": set(),
        "up": {"taxi_y", "passenger_y"},
        "down": {"taxi_y", "passenger_y"},
        "left": {"taxi_x", "passenger_x"},
        "right": {"taxi_x", "passenger_x"},
        "interact": {"in_taxi"},
    },
    "fourrooms": _MINIGRID,
    "doorkey": _MINIGRID | {"pickup": {"key_held"}, "open": {"door_open"}},
}


def quiet(name: str) -> Domain:
    """The domain without what happens by itself, so that a change is the action's."""
    return {"lamp": Lamp(flip=0.0), "grid2d": Grid2D(noise=0.0)}.get(name) or make(name)


@functools.cache
def vectorised(domain: Domain) -> tuple[Callable, Callable, Callable]:
    """`step`, `render` and `factors` over a batch of states; `step` takes one action for all."""
    step = jax.jit(jax.vmap(domain.step, in_axes=(0, 0, None)))
    return step, jax.jit(jax.vmap(domain.render)), jax.jit(jax.vmap(domain.factors))


@functools.cache
def sampler(domain: Domain, n: int, start: str) -> Callable[[int], State]:
    """`n` start states from a seed."""
    return jax.jit(
        lambda seed: jax.vmap(lambda key: domain.sample(key, start))(jax.random.split(jax.random.key(seed), n))
    )


def draw(domain: Domain, n: int, start: str, seed: int = 0) -> State:
    return sampler(domain, n, start)(seed)


def step_all(domain: Domain, states: State, action: int, seed: int = 0) -> State:
    n = len(jax.tree.leaves(states)[0])
    return vectorised(domain)[0](jax.random.split(jax.random.key(seed), n), states, jnp.int32(action))


# --- sets of states, as sorted arrays of codes


def encode(states: State) -> np.ndarray:
    """One int64 a state: its fields as digits."""
    code = np.int64(0)
    for field in jax.tree.leaves(states):
        digit = np.asarray(field)
        assert digit.min() >= 0 and digit.max() < RADIX
        code = code * RADIX + digit.astype(np.int64)
    return np.asarray(code)


def decode(codes: np.ndarray, like: State) -> State:
    leaves, tree = jax.tree.flatten(like)
    digits = [jnp.asarray(codes // RADIX**place % RADIX, jnp.int32) for place in reversed(range(len(leaves)))]
    return jax.tree.unflatten(tree, digits)


def closure(domain: Domain, states: State) -> np.ndarray:
    """All states that some sequence of actions reaches: breadth-first search, a whole frontier at a time."""
    known = frontier = np.unique(encode(states))
    while len(frontier):
        # Few sizes, so that XLA does not compile for every frontier.
        size = next(size for size in (1 << 10, 1 << 14, 1 << 17) if size >= len(frontier))
        padded = decode(np.resize(frontier, size), states)
        reached = [encode(step_all(domain, padded, action)) for action in range(domain.n_actions)]
        frontier = np.setdiff1d(np.concatenate(reached), known)
        known = np.union1d(known, frontier)
    return known


def product(*sizes: int) -> np.ndarray:
    """All combinations, one a column."""
    return np.indices(sizes).reshape(len(sizes), -1)


def fields(*columns: Any) -> tuple[jax.Array, ...]:
    return tuple(jnp.asarray(column, jnp.int32) for column in columns)


@functools.cache
def every_state(name: str) -> np.ndarray:
    """The states the rules allow, by construction."""
    return np.unique(encode(_CONSTRUCT[name]()))


def _lamp_states() -> LampState:
    return LampState(*fields(*product(2, 2, POSITIONS, 3)))


def _taxi_states() -> TaxiState:
    row, column, seat, goal = product(5, 5, 26, 4)
    inside = seat == 25
    passenger = np.where(inside, row, seat // 5), np.where(inside, column, seat % 5)
    return TaxiState(*fields(row, column, *passenger, inside, goal))


def _fourrooms_states() -> FourRoomsState:
    free = np.argwhere(~WALLS)
    agent, goal, heading = product(len(free), len(free), 4)
    return FourRoomsState(Agent(*fields(*free[agent].T, heading)), *fields(*free[goal].T))


def _doorkey_states(phases: tuple[int, ...] = (0, 1, 2)) -> DoorKeyState:
    """In phase 0 the agent and the key share the left room; in phase 1 the agent has it to itself; in phase 2 it may
    stand in either room or in the doorway."""
    rows = []
    inside = list(itertools.product(range(1, 7), range(1, 7)))
    for door in itertools.product(range(1, 7), range(2, 6)):
        left = [cell for cell in inside if cell[1] < door[1]]
        open_floor = [cell for cell in inside if cell[1] != door[1] or cell == door]
        by_phase = (
            [(*agent, 0, *key, 0, *door, 0) for agent in left for key in left if agent != key],
            [(*agent, 0, 0, 0, 1, *door, 0) for agent in left],
            [(*agent, 0, 0, 0, 1, *door, 1) for agent in open_floor],
        )
        rows += [row for phase in phases for row in by_phase[phase]]
    columns = np.repeat(np.array(rows), 4, axis=0).T
    columns[2] = np.arange(columns.shape[1]) % 4  # the heading
    return DoorKeyState(Agent(*fields(*columns[:3])), *fields(*columns[3:]))


_CONSTRUCT: dict[str, Callable[[], State]] = {
    "lamp": _lamp_states,
    "taxi": _taxi_states,
    "fourrooms": _fourrooms_states,
    "doorkey": _doorkey_states,
}
COUNTS = {"lamp": 60, "taxi": 2_600, "fourrooms": 173 * 173 * 4, "doorkey": 28_896}


def test_number_of_states():
    assert {name: len(every_state(name)) for name in _CONSTRUCT} == COUNTS
    phases = [len(np.unique(encode(_doorkey_states((phase,))))) for phase in range(3)]
    assert phases == [24_480, 1_440, 2_976]


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_episodes_reach_exactly_these_states(name: str):
    """20,000 starts hold every layout: DoorKey's rarest corner (door at the left, the key shutting the agent off in a
    cell of its own) has 1 chance in 720, FourRooms' rarest goal 1 in 173."""
    domain = make(name)
    assert np.array_equal(closure(domain, draw(domain, 20_000, "episode")), every_state(name))


def test_taxi_with_depots_only_has_gymnasiums_500_states():
    domain = Taxi(depot_only=True)
    assert len(closure(domain, draw(domain, 2_000, "episode"))) == 500


# --- what changes


@functools.cache
def samples(name: str) -> State:
    """Every state where there are not too many, else a good number of them."""
    return _CONSTRUCT[name]() if name in ("lamp", "taxi", "doorkey") else draw(make(name), 2_048, "balanced")


def changed(name: str, action: int) -> np.ndarray:
    """Which factors differ after the action, [states, factors]."""
    domain, states = quiet(name), samples(name)
    factors = vectorised(domain)[2]
    # Grid2D folds positions back into the square with 1 - |1 - |p||, which may cost the last bit.
    return np.abs(factors(states) - factors(step_all(domain, states, action))) > 1e-6


@pytest.mark.parametrize("name", DOMAINS)
def test_actions_change_only_what_they_may(name: str):
    domain = make(name)
    assert tuple(ALLOWED[name]) == domain.action_names
    ever = set()
    for action, (action_name, allowed) in enumerate(ALLOWED[name].items()):
        moved = changed(name, action)
        touched = {domain.factor_names[k] for k in np.flatnonzero(moved.any(0))}
        assert touched == allowed, action_name  # no more, and no less: a rule that never acts is a bug too
        assert name == "taxi" or moved.sum(1).max() <= 1, action_name
        ever |= touched
    assert ever == {f for f, can in zip(domain.factor_names, domain.controllable, strict=True) if can}


def test_taxi_moves_the_passenger_only_inside():
    states = samples("taxi")
    for action in range(1, 5):
        moved = changed("taxi", action)
        taxi, passenger = moved[:, 0:2].any(1), moved[:, 2:4].any(1)
        assert np.array_equal(passenger, taxi & (np.asarray(states.in_taxi) == 1))


def test_doorkey_key_leaves_the_floor_only_by_pickup():
    domain, states = DoorKey(), samples("doorkey")
    for action, name in enumerate(ACTIONS):
        after = step_all(domain, states, action)
        stays = np.asarray((after.key_row == states.key_row) & (after.key_column == states.key_column))
        assert np.array_equal(~stays, np.asarray(after.key_held != states.key_held))
        assert stays.all() == (name != "pickup")


@pytest.mark.parametrize("name", DOMAINS)
def test_noop_changes_nothing(name: str):
    domain, states = quiet(name), samples(name)
    assert domain.action_names[domain.noop] == "noop"
    after = step_all(domain, states, domain.noop)
    atol = 1e-6 if name == "grid2d" else 0
    for before, later in zip(jax.tree.leaves(states), jax.tree.leaves(after), strict=True):
        np.testing.assert_allclose(before, later, rtol=0, atol=atol)


@pytest.mark.parametrize("action", range(5))
def test_grid2d_trembles_under_every_action(action: int):
    domain, n = Grid2D(), 100_000
    centre = GridState(*(jnp.full(n, 0.5) for _ in range(2)))
    shift = np.stack(step_all(domain, centre, action, seed=1), 1) - 0.5
    stride = 0.1 * np.array([(0, 0), (0, -1), (0, 1), (-1, 0), (1, 0)])[action]
    # Six standard errors: of the mean 0.02/√n, of the deviation 0.02/√(2n), of the correlation 1/√n.
    np.testing.assert_allclose(shift.mean(0), stride, atol=6 * 0.02 / n**0.5)
    np.testing.assert_allclose(shift.std(0), 0.02, atol=6 * 0.02 / (2 * n) ** 0.5)
    assert abs(np.asarray(np.corrcoef(shift.T))[0, 1]) < 6 / n**0.5


@pytest.mark.parametrize("action", range(3))
def test_lamp_flips_by_itself(action: int):
    domain, n = Lamp(), 100_000
    before = draw(domain, n, "balanced")
    after = step_all(domain, before, action, seed=1)
    flips = np.stack([before.power != after.power, before.colour != after.colour], 1)
    expected = np.where(np.arange(2) == action - 1, 0.95, 0.05)
    error = 6 * (0.05 * 0.95 / n) ** 0.5
    np.testing.assert_allclose(flips.mean(0), expected, atol=error)
    assert abs(np.asarray(np.corrcoef(flips.T))[0, 1]) < 6 / n**0.5
    assert np.array_equal(before.position, after.position) and np.array_equal(before.shape, after.shape)


def test_grid2d_stays_in_the_square():
    """Reflected, not clipped: no atoms on the border."""
    domain = Grid2D()
    corners = GridState(*(jnp.tile(jnp.array(c), 5_000) for c in ((0.0, 1.0, 0.0, 1.0), (0.0, 0.0, 1.0, 1.0))))
    for action in range(domain.n_actions):
        after = np.stack(step_all(domain, corners, action))
        assert after.min() >= 0 and after.max() <= 1
        assert ((after == 0) | (after == 1)).mean() < 1e-3


# --- what is seen


def digests(domain: Domain, codes: np.ndarray, like: State) -> set[bytes]:
    """A hash of each state's picture; rendered in batches, because FourRooms has 370 MB of them."""
    batch, seen = 8_192, set()
    render = vectorised(domain)[1]
    for first in range(0, len(codes), batch):
        part = codes[first : first + batch]
        images = np.asarray(render(decode(np.resize(part, batch), like)))[: len(part)]
        seen |= {hashlib.blake2b(image, digest_size=16).digest() for image in images}
    return seen


@pytest.mark.parametrize("name", _CONSTRUCT)
def test_render_tells_all_states_apart(name: str):
    domain = make(name)
    assert len(digests(domain, every_state(name), draw(domain, 1, "balanced"))) == COUNTS[name]


@pytest.mark.parametrize("name", DOMAINS)
def test_render_and_factors_have_their_types(name: str):
    domain = make(name)
    state = domain.sample(jax.random.key(0))
    image, factors = domain.render(state), domain.factors(state)
    assert (image.shape, image.dtype) == ((32, 32, 3), jnp.uint8)
    assert (factors.shape, factors.dtype) == ((len(domain.factor_names),), jnp.float32)
    assert len(domain.controllable) == len(domain.factor_names)
    # A state keeps its shapes and types over a step, or `lax.scan` would refuse it.
    after = domain.step(jax.random.key(1), state, jnp.int32(1))
    assert jax.tree.map(lambda x: (x.shape, x.dtype), state) == jax.tree.map(lambda x: (x.shape, x.dtype), after)


@pytest.mark.parametrize("name", ("fourrooms", "doorkey"))
def test_heading_is_plain(name: str):
    """In the same place, any two headings differ by 150 grey levels of 255 or more in at least two pixels."""
    domain = make(name)
    # DoorKey's hard backgrounds are the doorway and the goal, so it shows every state of its last phase.
    states = _doorkey_states((2,)) if name == "doorkey" else samples(name)
    agents = [states.agent._replace(heading=jnp.full_like(states.agent.heading, heading)) for heading in range(4)]
    turned = [states._replace(agent=agent) for agent in agents]
    images = [np.asarray(vectorised(domain)[1](view), np.int16) for view in turned]
    for one, other in itertools.combinations(images, 2):
        contrast = np.abs(one - other).max(-1)
        assert ((contrast >= 150).sum((1, 2)) >= 2).all()


def test_grid2d_is_read_off_its_blob():
    domain = Grid2D()
    states = draw(domain, 2_048, "balanced")
    light = np.asarray(vectorised(domain)[1](states), np.float64).sum(-1)
    total = light.sum((1, 2))
    for axis, true in ((1, states.x), (0, states.y)):
        centre = (light.sum(2 - axis) * np.arange(32)).sum(1) / total
        found, true = (centre - 4) / 23, np.asarray(true, np.float64)
        r2 = 1 - ((found - true) ** 2).sum() / ((true - true.mean()) ** 2).sum()
        assert r2 > 0.9999


def test_grid2d_shows_small_shifts():
    """A hundredth of the square is a quarter of a pixel; it moves some 440 grey levels."""
    domain = Grid2D()
    states = draw(domain, 2_048, "balanced")
    states = GridState(states.x * 0.9, states.y * 0.9)
    render = vectorised(domain)[1]
    for moved in (states._replace(x=states.x + 0.01), states._replace(y=states.y + 0.01)):
        difference = np.abs(np.asarray(render(states), np.int32) - np.asarray(render(moved), np.int32))
        assert difference.sum((1, 2, 3)).min() > 300


# --- where it starts

# Draws until the last of N states has come, all but surely: the rarest has probability p, so it stays out with
# exp(-np), and any of N with at most N exp(-np).
ENOUGH = {
    "lamp": 2_000,  # p = 1/60: 60 exp(-33)
    "taxi": 120_000,  # p = 1/2 · 1/25 · 1/25 · 1/4 = 1/5,000: 2,600 exp(-24)
    "doorkey": 2_400_000,  # p = 1/3 · 1/24 · 1/24 · 1/92 = 1/158,976, for 13,248 of them: 13,248 exp(-15.1) = 0.004
}


def draw_codes(domain: Domain, n: int, start: str, batch: int = DRAWS) -> np.ndarray:
    """The states among `n` draws."""
    found = [np.unique(encode(draw(domain, batch, start, seed))) for seed in range(-(-n // batch))]
    return np.unique(np.concatenate(found))


@pytest.mark.parametrize("name", ENOUGH)
def test_balanced_starts_reach_every_state(name: str):
    assert np.array_equal(draw_codes(make(name), ENOUGH[name], "balanced"), every_state(name))


def test_fourrooms_balanced_starts_reach_every_place():
    """Agent (173 · 4) and goal (173) are drawn apart, so each is followed alone: p = 1/692, 692 exp(-58)."""
    states = draw(FourRooms(), DRAWS, "balanced")
    assert len(np.unique(encode(states.agent))) == 692
    assert len(np.unique(encode((states.goal_row, states.goal_column)))) == 173
    together = (states.agent.row == states.goal_row) & (states.agent.column == states.goal_column)
    assert_frequency(together, 1 / 173)


@pytest.mark.parametrize(("name", "start"), [(name, start) for name in _CONSTRUCT for start in make(name).starts])
def test_starts_are_reachable(name: str, start: str):
    assert np.isin(draw_codes(make(name), DRAWS, start), every_state(name)).all()


def assert_frequency(happened: Any, p: float) -> None:
    """`happened` is a sample of a coin with chance `p`, to six standard errors."""
    happened = np.asarray(happened)
    assert abs(happened.mean() - p) < 6 * (p * (1 - p) / happened.size) ** 0.5


def test_taxi_starts():
    domain = Taxi()
    states = jax.tree.map(np.asarray, draw(domain, DRAWS, "episode"))
    place = np.stack([states.passenger_row, states.passenger_column], 1)
    at_depot = (place[:, None] == DEPOTS).all(-1)
    assert at_depot.any(1).all() and not states.in_taxi.any()
    assert (at_depot.argmax(1) != states.goal).all()

    states = jax.tree.map(np.asarray, draw(domain, DRAWS, "balanced"))
    together = (states.taxi_row == states.passenger_row) & (states.taxi_column == states.passenger_column)
    assert_frequency(states.in_taxi, 1 / 4)
    assert_frequency(together & (states.in_taxi == 0), 1 / 4 + 1 / 2 / 25)


def test_fourrooms_episodes_start_off_the_goal():
    states = draw(FourRooms(), DRAWS, "episode")
    assert not ((states.agent.row == states.goal_row) & (states.agent.column == states.goal_column)).any()


def doorkey_phase(states: DoorKeyState) -> np.ndarray:
    return np.asarray(states.key_held + states.door_open)


def doorkey_looks(states: DoorKeyState) -> np.ndarray:
    """The agent faces the key (phase 0) or the door (phase 1)."""
    target_row = jnp.where(states.key_held == 0, states.key_row, states.door_row)
    target_column = jnp.where(states.key_held == 0, states.key_column, states.door_column)
    ahead = HEADINGS[np.asarray(states.agent.heading)]
    row, column = np.asarray(states.agent.row) + ahead[:, 0], np.asarray(states.agent.column) + ahead[:, 1]
    return (row == np.asarray(target_row)) & (column == np.asarray(target_column))


def test_doorkey_episodes_start_left_of_a_locked_door():
    states = draw(DoorKey(), DRAWS, "episode")
    assert (doorkey_phase(states) == 0).all()
    assert (states.agent.column < states.door_column).all()
    for column in range(2, 6):
        assert_frequency(states.door_column == column, 1 / 4)
    for row in range(1, 7):
        assert_frequency(states.door_row == row, 1 / 6)
    for heading in range(4):
        assert_frequency(states.agent.heading == heading, 1 / 4)


@pytest.mark.parametrize("start", ("balanced", "balanced+facing"))
def test_doorkey_phases_come_equally_often(start: str):
    states = draw(DoorKey(), DRAWS, start)
    for phase in range(3):
        assert_frequency(doorkey_phase(states) == phase, 1 / 3)
    on_goal = (states.agent.row == GOAL[0]) & (states.agent.column == GOAL[1])
    assert_frequency(on_goal, 1 / 3 / 31)


@pytest.mark.parametrize("phase", (0, 1))
def test_doorkey_facing_starts(phase: int):
    """Half of the agents are made to look at the key, or the door; some of the others do so by chance."""
    by_chance, facing = (
        doorkey_looks(states)[doorkey_phase(states) == phase]
        for states in (draw(DoorKey(), DRAWS, start) for start in ("balanced", "balanced+facing"))
    )
    assert by_chance.mean() < 0.12
    assert abs(facing.mean() - (0.5 + 0.5 * by_chance.mean())) < 0.02


# --- what is refused


@pytest.mark.parametrize("name", DOMAINS)
def test_unknown_start_is_refused_with_the_choices(name: str):
    domain = make(name)
    with pytest.raises(ValueError) as caught:
        domain.sample(jax.random.key(0), "nowhere")
    assert all(word in str(caught.value) for word in ("nowhere", name, *domain.starts))


def test_unknown_domain_is_refused_with_the_choices():
    with pytest.raises(ValueError) as caught:
        make("atlantis")
    assert all(word in str(caught.value) for word in ("atlantis", *DOMAINS))


@pytest.mark.parametrize("name", DOMAINS)
def test_domains_are_static_arguments(name: str):
    assert make(name) == make(name) and hash(make(name)) == hash(make(name))
