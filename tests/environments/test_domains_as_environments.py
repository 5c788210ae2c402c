"""The domains as Gymnasium environments."""

import pickle

import numpy as np
import pytest

import acf

gym = pytest.importorskip("gymnasium", reason="needs the extra gym")

from gymnasium.utils.env_checker import check_env  # noqa: E402

import acf.gym  # noqa: E402
from acf.domains import DOMAINS, make  # noqa: E402
from acf.gym.domains import IDS, STEPS, DomainEnv  # noqa: E402


def test_every_domain_is_registered():
    assert IDS.keys() == DOMAINS.keys()
    assert {f"acf/{title}-v0" for title in IDS.values()} <= gym.registry.keys()


@pytest.mark.parametrize("name", ["lamp", "taxi"])
def test_gymnasiums_checker(name):
    env = gym.make(f"acf/{IDS[name]}-v0", render_mode="rgb_array")
    check_env(env.unwrapped)
    assert env.unwrapped.get_action_meanings() == list(make(name).action_names)


def test_an_episode_is_the_domains_and_lasts_its_steps():
    env = gym.make("acf/Taxi-v0", render_mode="rgb_array")
    frame, info = env.reset(seed=3)
    taxi = make("taxi")
    assert tuple(info["factors"]) == taxi.factor_names
    for step in range(1, STEPS + 1):
        before = info["factors"]
        frame, reward, terminated, truncated, info = env.step(np.int64(2))  # down
        assert info["factors"]["taxi_y"] == min(before["taxi_y"] + 1, 4)
        assert (reward, terminated, truncated) == (0.0, False, step == STEPS)
    np.testing.assert_array_equal(env.render(), frame)


def test_seeds_and_pickle():
    def play(env, seed):
        frames = [env.reset(seed=seed)[0]]
        return np.stack(frames + [env.step(np.int64(k % 5))[0] for k in range(6)])

    env = DomainEnv("grid2d")
    first = play(env, 7)
    np.testing.assert_array_equal(play(env, 7), first)
    np.testing.assert_array_equal(play(pickle.loads(pickle.dumps(env)), 7), first)
    assert (play(env, 3) != first).any()


def test_it_is_collected_from_by_name():
    data = acf.collect("gym:acf/Grid2D-v0", 250, factors="info:factors")
    assert (data.noop, data.action_names) == (0, make("grid2d").action_names)
    assert data.factor_names == make("grid2d").factor_names
    assert len(np.unique(data.episode)) == 3
