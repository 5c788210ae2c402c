"""Record trajectories of navix 0.7.4 in our state fields, for `test_parity.py`.

navix pulls in 66 packages, so it lives in an environment of its own and only this recording is committed:

    uv venv .venv-navix --python 3.11
    uv pip install --python .venv-navix/bin/python navix==0.7.4 jax==0.10.2 flax==0.12.8 optax==0.2.8 jaxtyping
    uv pip install --python .venv-navix/bin/python --no-deps -e .
    .venv-navix/bin/python tests/domains/record_navix.py

Two things differ from navix as shipped. Its `right`, `backward` and `left` add to the heading without `% 4`, and the
`lax.switch` behind them clamps: six of the twelve moves go the wrong way. And its `step` resets by itself; we call
`_step`, which does not.

navix is imported inside the functions, because pytest imports every file here in search of doctests.
"""

import importlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from acf.domains import doorkey, fourrooms
from acf.domains.minigrid import HEADINGS

FILE = Path(__file__).parent / "navix_recording.npz"
STEPS = 64
EPISODES = {"doorkey": 768, "fourrooms": 256}
KEY_ID = 3  # of navix's yellow key: what the pocket holds and the locked door asks for

# Starts of a DoorKey episode, dealt out in turn. The later phases are rare under random actions, so they get their own;
# the last two come more than once, because many of their episodes wander off before the event.
KINDS = ("reset", "holds key", "door open", "right room", "beside goal", *2 * ("faces key",), *3 * ("faces door",))

Fields = dict[str, np.ndarray]  # int8 [episodes, STEPS + 1] by the name of the state's field; "action" has STEPS


def record(name: str, *, seed: int, episodes: int, steps: int = STEPS) -> Fields:
    """Random walks in navix's version of the domain `name`."""
    rng = np.random.default_rng(seed)
    env, timestep, read = {"doorkey": _doorkey, "fourrooms": _fourrooms}[name](rng, episodes)
    actions = _actions(rng, episodes, steps)

    def walk(timestep: Any, actions: jax.Array) -> Any:
        def step(timestep: Any, action: jax.Array) -> Any:
            # `info` and the weak types of a reset differ from those of a step; only the state carries over.
            after = env._step(timestep, action)
            state = jax.tree.map(lambda new, old: new.astype(old.dtype), after.state, timestep.state)
            return timestep.replace(state=state), state.entities

        return jax.lax.scan(step, timestep, actions)[1]

    first = timestep.state.entities
    after = jax.jit(jax.vmap(walk))(timestep, actions)
    entities = jax.tree.map(lambda a, b: np.concatenate([np.asarray(a)[:, None], np.asarray(b)], 1), first, after)
    fields = {**read(entities), "action": actions}
    return {field: values.astype(np.int8) for field, values in fields.items()}


def _actions(rng: np.random.Generator, episodes: int, steps: int) -> np.ndarray:
    """In our order of actions. Every other round of kinds is eager to go ahead, to pick up and to open."""
    plain = np.full(10, 0.1)
    eager = np.array([1, 2, 2, 4, 1, 1, 1, 8, 8, 1]) / 29
    drawn = [rng.choice(10, (episodes, steps), p=p) for p in (plain, eager)]
    return np.where(np.arange(episodes)[:, None] // len(KINDS) % 2 == 0, *drawn).astype(np.int32)


def _action_set() -> tuple:
    """navix's actions in our order, the three broken moves repaired."""
    actions = importlib.import_module("navix.actions")

    def move(quarter_turns: int):
        return lambda state: actions._move(state, (state.get_player(idx=0).direction + quarter_turns) % 4)

    return (
        actions.noop,
        actions.rotate_cw,
        actions.rotate_ccw,
        actions.forward,
        move(2),
        move(1),
        move(3),
        actions.pickup,
        actions.open,
        actions.done,
    )


def _make(cls: str, size: int, **options: Any) -> Any:
    navix = importlib.import_module("navix")
    env = getattr(navix.environments, cls)
    return env.create(
        height=size, width=size, observation_fn=navix.observations.none, action_set=_action_set(), **options
    )


def _reset(env: Any, rng: np.random.Generator, episodes: int) -> Any:
    keys = jax.random.split(jax.random.key(int(rng.integers(2**31))), episodes)
    return jax.jit(jax.vmap(env.reset))(keys)


# --- DoorKey


def _doorkey(rng: np.random.Generator, episodes: int) -> tuple:
    """Walls, door and key as navix's Random variant draws them; the goal in our corner; the agent where we want it."""
    env = _make("DoorKey", doorkey.SIZE, random_start=True)
    timestep = _reset(env, rng, episodes)
    found = jax.tree.map(np.asarray, timestep.state.entities)
    one = [jax.tree.map(lambda x, i=i: x[i], found) for i in range(episodes)]
    starts = [_doorkey_start(rng, KINDS[i % len(KINDS)], layout) for i, layout in enumerate(one)]
    row, column, heading, held, opened = np.array(starts, np.int32).T[..., None]

    entities = dict(timestep.state.entities)
    entities["player"] = entities["player"].replace(
        position=np.stack([row, column], -1), direction=heading, pocket=np.where(held, KEY_ID, -1)
    )
    key_at = np.where(held[..., None], (0, -1), found["key"].position)  # navix's place for things out of play
    entities["key"] = entities["key"].replace(position=key_at)
    entities["door"] = entities["door"].replace(open=opened == 1, requires=np.where(opened, -1, KEY_ID))
    entities["goal"] = entities["goal"].replace(position=np.broadcast_to(doorkey.GOAL, (episodes, 1, 2)))
    return env, _with_entities(timestep, entities), _read_doorkey


def _doorkey_start(rng: np.random.Generator, kind: str, found: Any) -> tuple:
    """One episode's (row, column, heading, key held, door open)."""
    key, door = found["key"].position[0], found["door"].position[0]
    inside = np.stack(np.meshgrid(*[np.arange(1, doorkey.SIZE - 1)] * 2, indexing="ij"), -1).reshape(-1, 2)
    left, right = inside[inside[:, 1] < door[1]], inside[inside[:, 1] > door[1]]

    if kind == "reset":
        return *found["player"].position[0], found["player"].direction[0], 0, 0
    if kind == "faces key":
        looks = [(*(key - step), turn) for turn, step in enumerate(HEADINGS) if _among(key - step, left)]
        return *looks[rng.integers(len(looks))], 0, 0
    if kind == "faces door":
        return *(door - (0, 1)), 0, 1, 0
    if kind == "holds key":
        return *rng.choice(left), rng.integers(4), 1, 0
    near_goal = right[np.abs(right - doorkey.GOAL).sum(1) <= 2]
    places = {"door open": np.vstack([left, door, right]), "right room": right, "beside goal": near_goal}
    return *rng.choice(places[kind]), rng.integers(4), 1, 1


def _among(cell: np.ndarray, cells: np.ndarray) -> bool:
    return bool((cells == cell).all(1).any())


def _read_doorkey(entities: Any) -> Fields:
    player, key, door = (entities[name] for name in ("player", "key", "door"))
    held = player.pocket[..., 0] == KEY_ID
    gone = (key.position[..., 0, :] == (0, -1)).all(-1)
    assert (held == gone).all(), "navix's key is in the pocket exactly when it is off the floor"
    return {
        **_read_agent(player),
        "key_row": np.where(held, 0, key.position[..., 0, 0]),
        "key_column": np.where(held, 0, key.position[..., 0, 1]),
        "key_held": held,
        "door_row": door.position[..., 0, 0],
        "door_column": door.position[..., 0, 1],
        "door_open": door.open[..., 0],
    }


# --- FourRooms


def _fourrooms(rng: np.random.Generator, episodes: int) -> tuple:
    """navix's inner walls are drawn anew each episode and stand at 9 whatever the size: ours take their place."""
    wall = importlib.import_module("navix.entities").Wall
    env = _make("FourRooms", fourrooms.SIZE)
    timestep = _reset(env, rng, episodes)
    inner = np.argwhere(fourrooms.WALLS[1:-1, 1:-1]) + 1
    free = np.argwhere(~fourrooms.WALLS)
    agent, goal = (free[rng.integers(len(free), size=episodes)][:, None] for _ in range(2))

    entities = dict(timestep.state.entities)
    entities["wall"] = wall.create(position=np.broadcast_to(inner, (episodes, *inner.shape)).astype(np.int32))
    entities["goal"] = entities["goal"].replace(position=goal.astype(np.int32))
    entities["player"] = entities["player"].replace(
        position=agent.astype(np.int32), direction=rng.integers(4, size=(episodes, 1), dtype=np.int32)
    )
    return env, _with_entities(timestep, entities), _read_fourrooms


def _read_fourrooms(entities: Any) -> Fields:
    goal = entities["goal"].position[..., 0, :]
    return {**_read_agent(entities["player"]), "goal_row": goal[..., 0], "goal_column": goal[..., 1]}


# --- both


def _with_entities(timestep: Any, entities: dict) -> Any:
    return timestep.replace(state=timestep.state.replace(entities=jax.tree.map(jnp.asarray, entities)))


def _read_agent(player: Any) -> Fields:
    return {
        "agent_row": player.position[..., 0, 0],
        "agent_column": player.position[..., 0, 1],
        "agent_heading": player.direction[..., 0],
    }


def main() -> None:
    arrays = {}
    for seed, (name, episodes) in enumerate(EPISODES.items()):
        for field, values in record(name, seed=seed, episodes=episodes).items():
            arrays[f"{name}_{field}"] = values
    np.savez_compressed(FILE, **arrays)
    print(f"{FILE}: {FILE.stat().st_size / 1e3:.0f} KB")


if __name__ == "__main__":
    main()
