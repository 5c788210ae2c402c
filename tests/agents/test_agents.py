"""Planner, agents and the command, in worlds whose answers can be had by hand."""

import json

import jax
import numpy as np
import pytest
from agents_worlds import Chain, Errand

from acf.agents.agent import Agent
from acf.agents.experiment import live, success
from acf.agents.model import FactoredModel
from acf.agents.plan import FAR, Ranges, Reachable, richest_way, steps_to
from acf.agents.tabular import QLearning, RMax
from acf.agents.world import DomainWorld, find_task
from acf.domains import DOMAINS, make
from acf.errors import AcfError


def learned(world, every):
    before = np.repeat(every, len(world.action_names), axis=0)
    actions = np.tile(np.arange(len(world.action_names)), len(every))
    model = FactoredModel.fit(before, actions, world.step(0, before, actions)[1], len(world.action_names))
    return Reachable(model, Ranges(every), every[:1])


def distance(world, start):
    """Breadth first through the world itself."""
    front, seen = [start], {tuple(start)}
    steps = 0
    while not any(world.reached(np.array([s]))[0] for s in front):
        steps += 1
        ahead = [world.step(0, np.array([s]), np.array([a]))[1][0] for s in front for a in range(5)]
        front = list({tuple(s): s for s in ahead if tuple(s) not in seen}.values())
        seen |= {tuple(s) for s in front}
    return steps


def test_planned_ways_are_as_long_as_those_of_a_search_in_the_world():
    world = Errand()
    space = learned(world, world.every_state())
    assert len(space.states) == 60  # 25 places and 5 with the parcel loaded, each with the lamp on and off
    steps = steps_to(world.reached(space.states), space.next)
    for start in ([0, 3, 0, 0], [4, 0, 0, 1], [2, 2, 1, 0], [0, 4, 0, 0]):
        assert steps[space.index(space.ranges.code(np.array([start])))[0]] == distance(world, np.array(start))


def test_what_is_out_of_the_ranges_is_no_state():
    space = learned(Chain(4), np.arange(4)[:, None])
    assert space.states.ravel().tolist() == [0, 1, 2, 3]
    assert space.next.tolist() == [[0, 0, 1], [1, 0, 2], [2, 1, 3], [3, 2, 3]]
    assert space.index(np.array([-1, 3])).tolist() == [4, 3]
    assert steps_to(np.zeros(4, bool), space.next).tolist() == [FAR] * 5


def test_the_richest_way_goes_by_gain_a_step():
    following = np.array([[1, 2], [3, 3], [3, 3], [3, 3]])
    worth = np.array([[0.0, 1.0], [0.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
    assert richest_way(0, following, worth) == [1, 1]
    assert richest_way(0, following, worth + np.array([[5, 0], [0, 0], [0, 0], [0, 0]])) == [0]


def test_rmax_tries_everything_once_in_a_chain_of_two():
    """Two states, three actions, right from 0 ends the episode: it never acts from 1, and needs at most three steps."""
    world = Chain(2)
    learner = RMax(3, seed=1)
    tried = set()
    for _ in range(3):
        action = learner.act(np.array([0]))
        tried.add(action)
        _, after, reached = world.step(0, np.array([[0]]), np.array([action]))
        learner.learn(np.array([0]), action, after[0], bool(reached[0]), bool(reached[0]))
        if reached[0]:
            break
    assert 2 in tried and len(tried) <= 3
    assert learner.policy()(np.array([[0]])).tolist() == [2]
    assert learner.act(np.array([0])) in {0, 1, 2} - tried | {2}


@pytest.mark.parametrize("make_agent", [lambda: RMax(3, seed=7), lambda: QLearning(3, seed=7)])
def test_tabular_agents_learn_a_chain(make_agent):
    life = live(Chain(8), make_agent(), 600, seed=7)
    assert life.solved_at is not None and life.again == 1


@pytest.mark.parametrize("goal", ["given", "learned"])
@pytest.mark.parametrize("seed", [7, 3])
def test_the_factored_agent_runs_the_errand(goal, seed):
    world = Errand()
    agent = Agent(4, 5, units=world.units, goal=world.reached if goal == "given" else None, seed=seed)
    life = live(world, agent, 400, seed)
    assert life.solved_at is not None and life.solved_at <= 300
    assert success(world, agent.policy()) == 1


def test_the_errand_without_units_and_the_same_seed_twice():
    world = Errand()
    curves = []
    for _ in range(2):
        curves.append(live(world, Agent(4, 5, goal=world.reached, seed=5), 300, 5).curve)
    assert curves[0] == curves[1] and curves[0][-1][1] == 1


def test_nothing_learned_is_no_success():
    assert success(Chain(5), Agent(1, 3, goal=Chain(5).reached).policy()) == 0


@pytest.mark.parametrize("name", DOMAINS)
def test_tasks_are_not_done_at_the_start_and_take_numpy_and_jax(name):
    domain = make(name)
    levels = jax.jit(jax.vmap(lambda key: domain.levels(domain.sample(key, "episode"))))(
        jax.random.split(jax.random.key(0), 200)
    )
    assert levels.shape == (200, len(domain.level_names))
    assert len(domain.units) in (0, len(domain.level_names))
    for task in domain.tasks.values():
        assert task.reached(levels).shape == (200,)
        assert not np.asarray(task.reached(np.asarray(levels))).any()


def test_taxi_delivers_by_hand():
    tasks = make("taxi").tasks
    at_goal = np.array([[0, 0, 4, 0, 0, 1], [4, 0, 4, 0, 1, 1], [0, 0, 3, 4, 0, 3], [0, 0, 3, 4, 0, 2]])
    assert tasks["deliver"].reached(at_goal).tolist() == [True, False, True, False]
    assert tasks["pickup"].reached(at_goal).tolist() == [False, True, False, False]


def test_doorkey_levels_hold_the_whole_state():
    domain = make("doorkey")

    @jax.jit
    def draw(keys):
        states = jax.vmap(domain.sample)(keys)
        return jax.vmap(domain.render)(states), jax.vmap(domain.levels)(states)

    frames, levels = map(np.asarray, draw(jax.random.split(jax.random.key(0), 500)))
    frames = frames.reshape(500, -1)
    assert len(np.unique(levels, axis=0)) == len(np.unique(frames, axis=0))


def test_frames_may_be_the_source_of_the_levels():
    def encode(frames):  # Taxi's picture is striped while the passenger is inside
        return np.stack([frames[:, 0].std(axis=(1, 2)) > 10, frames[:, 31, 31, 0] > 0], axis=1).astype(int)

    world = DomainWorld(make("taxi"), "pickup", encode)
    states, levels = world.start(0, 5)
    assert world.names == ("factor 0", "factor 1") and levels.shape == (5, 2) and world.units == ()
    _, after, reached = world.step(1, states, np.zeros(5, int))
    assert np.array_equal(after, levels) and not reached.any()


def test_a_task_that_is_not_there():
    with pytest.raises(AcfError, match="deliver, pickup, park; got 'fly'"):
        find_task(make("taxi"), "fly")
    with pytest.raises(AcfError, match="grid2d has no tasks"):
        find_task(make("grid2d"), "reach")


def test_the_command(command, tmp_path):
    out = tmp_path / "here" / "taxi.json"
    code, shown, err = command("agent", "taxi", "--task", "pickup", "--steps", 500, "--seeds", 2, "--out", out)
    assert code == 0, err
    assert "who depends on whom" in shown and "passenger_x" in shown
    result = json.loads(out.read_text())
    assert [life["seed"] for life in result["lives"]] == [0, 1]
    assert all(life["solved_at"] <= 500 for life in result["lives"])
    assert result["command"].startswith("acf agent taxi --task pickup")
    code, _, err = command("agent", "grid2d")
    assert code == 1 and "has no tasks" in err
