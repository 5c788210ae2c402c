import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import acf
from acf.data.checks import DataError
from acf.data.policies import skewed, uniform
from acf.domains import make
from acf.domains.taxi import Taxi, TaxiState


def taxi_state(factors: np.ndarray) -> TaxiState:
    x, y, px, py, inside, goal = factors.astype(np.int32).T
    return TaxiState(*map(jnp.asarray, (y, x, py, px, inside, goal)))


def test_every_transition_is_a_real_one():
    data = acf.collect("taxi", 500, seed=3, horizon=7)
    assert data.factors is not None
    taxi = Taxi()
    keys = jax.random.split(jax.random.key(0), len(data))  # Taxi is deterministic: any key will do
    stepped = jax.vmap(taxi.step)(keys, taxi_state(data.factors[data.i]), jnp.asarray(data.action))
    np.testing.assert_array_equal(jax.vmap(taxi.factors)(stepped), data.factors[data.j])


def test_frames_are_the_pictures_of_their_factors():
    data = acf.collect("taxi", 200)
    assert data.factors is not None
    np.testing.assert_array_equal(jax.vmap(Taxi().render)(taxi_state(data.factors)), data.frames)


@pytest.mark.parametrize("transitions, horizon", [(1, 10), (10, 10), (23, 10), (3000, 1), (2600, 9)])
def test_counts_and_episodes(transitions: int, horizon: int):
    data = acf.collect("lamp", transitions, horizon=horizon)
    episodes = -(-transitions // horizon)
    assert len(data) == transitions
    assert len(data.frames) == transitions + episodes
    assert len(np.unique(data.episode)) == episodes
    assert np.bincount(data.episode[data.i]).max() == min(horizon, transitions)
    np.testing.assert_array_equal(data.j, data.i + 1)


def test_the_block_size_does_not_show(monkeypatch: pytest.MonkeyPatch):
    whole = acf.collect("grid2d", 300, horizon=4)
    # The package's name `collect` is the function; the module behind it is asked for by name.
    monkeypatch.setattr(importlib.import_module("acf.data.collect"), "BLOCK", 16)
    pieces = acf.collect("grid2d", 300, horizon=4)
    np.testing.assert_array_equal(whole.frames, pieces.frames)
    np.testing.assert_array_equal(whole.action, pieces.action)


def test_seeds_differ_and_repeat():
    a, b, c = (acf.collect("taxi", 100, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(a.frames, b.frames)
    assert (a.action != c.action).any()


def test_on_disk_equals_in_memory_and_is_reused(tmp_path):
    told = []
    first = acf.collect("taxi", 300, out=tmp_path / "d", progress=lambda done, total: told.append((done, total)))
    memory = acf.collect("taxi", 300)
    assert isinstance(first.frames, np.memmap)
    assert told[-1] == (300, 300)
    for name in ("frames", "i", "action", "j", "episode", "factors"):
        np.testing.assert_array_equal(getattr(first, name), getattr(memory, name))
    before = (tmp_path / "d" / "meta.json").stat().st_mtime_ns
    again = acf.collect("taxi", 300, out=tmp_path / "d")
    assert again.hash == first.hash
    assert (tmp_path / "d" / "meta.json").stat().st_mtime_ns == before
    with pytest.raises(DataError, match="seed: 0 there, 1 asked"):
        acf.collect("taxi", 300, seed=1, out=tmp_path / "d")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"domain": "atari"}, "unknown domain 'atari': expected one of lamp"),
        ({"start": "facing"}, "start distributions episode, balanced"),
        ({"policy": "greedy"}, "unknown policy 'greedy': expected one of uniform, skewed"),
        ({"transitions": 0}, "at least one transition"),
        ({"horizon": 0}, "horizon of at least 1"),
    ],
)
def test_bad_arguments_are_found_before_any_work(change: dict, message: str, tmp_path):
    arguments = {"domain": "taxi", "transitions": 10, "out": tmp_path / "d"} | change
    with pytest.raises(ValueError, match=message):
        acf.collect(**arguments)
    assert not (tmp_path / "d").exists()


def test_interrupted_collecting_leaves_nothing(tmp_path):
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        acf.collect("lamp", 5000, out=tmp_path / "d", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_uniform_data_is_uniform():
    action = acf.collect("taxi", 12_000).action
    counts = np.bincount(action, minlength=6)
    assert abs(counts / 2000 - 1).max() < 0.1  # about 4.5 standard deviations


def test_skewed_data_follows_its_policy_in_each_state():
    """Observed action frequencies of one state against the policy's probabilities; far from uniform, none at zero."""
    data = acf.collect("lamp", 40_000, policy="skewed")
    assert data.factors is not None
    states, which = np.unique(data.factors[data.i], axis=0, return_inverse=True)
    largest = np.bincount(which).argmax()
    observed = np.bincount(data.action[which == largest], minlength=3) / (which == largest).sum()
    expected = np.asarray(jax.nn.softmax(skewed(jnp.asarray(states[largest]), 3)))
    np.testing.assert_allclose(observed, expected, atol=4.5 * 0.5 / np.sqrt((which == largest).sum()))
    every = np.asarray(jax.vmap(lambda s: jax.nn.softmax(skewed(s, 3)))(jnp.asarray(states)))
    assert every.min() > 0.01
    assert every.max(1).mean() > 0.5
    assert every.std(0).min() > 0.1  # it depends on the state
    assert (np.asarray(uniform(jnp.zeros(4), 3)) == 0).all()


def test_start_distribution_is_the_domains():
    data = acf.collect("doorkey", 3000, start="episode", horizon=1)
    assert data.factors is not None
    held = make("doorkey").factor_names.index("key_held")
    assert (data.factors[data.i][:, held] == 0).all()
