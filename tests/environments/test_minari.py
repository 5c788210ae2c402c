"""Minari data sets, in and out."""

from dataclasses import replace

import numpy as np
import pytest

import acf
from acf.data import DataError, DataWarning, Transitions
from acf.errors import AcfError

pytest.importorskip("gymnasium", reason="needs the extra gym")
minari = pytest.importorskip("minari", reason="needs the extra gym")
pytest.importorskip("h5py", reason="needs the extra gym")

from counting import Counting, check  # noqa: E402
from gymnasium import spaces  # noqa: E402

ARRAYS = ("frames", "i", "action", "j", "episode", "factors")
NAMES = ("action_names", "noop", "factor_names", "controllable")


@pytest.fixture(autouse=True)
def datasets(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


@pytest.fixture
def data():
    return acf.collect(Counting(), 100, factors="info:state")


def assert_same(a: Transitions, b: Transitions) -> None:
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert all(getattr(a, name) == getattr(b, name) for name in NAMES)


@pytest.mark.parametrize("noop", [0, None])
def test_round_trip(data, noop):
    data = replace(data, noop=noop, controllable=(True, False))
    written = data.to_minari("counting/round-v0")
    assert written.total_steps == 100
    assert_same(Transitions.from_minari(minari.load_dataset("counting/round-v0")), data)


def test_round_trip_without_factors(data):
    data = replace(data, factors=None, factor_names=())
    assert_same(Transitions.from_minari(data.to_minari("counting/bare-v0")), data)


def test_only_what_follows_on_each_other_is_one_episode(data):
    """Every second transition: rows of one each, whose frames are nobody else's."""
    some = data.select(slice(0, None, 2))
    written = some.to_minari("counting/some-v0")
    assert [len(episode) for episode in written.iterate_episodes()] == [1] * 50
    back = Transitions.from_minari(written)
    check(back)
    np.testing.assert_array_equal(back.frames[back.i], some.frames[some.i])
    np.testing.assert_array_equal(back.action, some.action)


def test_a_vectors_episodes_come_one_after_the_other():
    from gymnasium.vector import SyncVectorEnv

    data = acf.collect(SyncVectorEnv([Counting] * 3), 120, factors="info:state")
    back = Transitions.from_minari(data.to_minari("counting/vector-v0"))
    check(back)
    order = np.argsort(data.episode[data.i], kind="stable")
    np.testing.assert_array_equal(back.frames[back.i], data.frames[data.i[order]])
    np.testing.assert_array_equal(back.frames[back.j], data.frames[data.j[order]])
    np.testing.assert_array_equal(back.action, data.action[order])


def test_the_command_and_its_pictures(data, tmp_path, command):
    data.to_minari("counting/command-v0")
    args = ["collect", "minari:counting/command-v0", "--transitions", 40, "--out", tmp_path / "d", "--gray"]
    code, _, err = command(*args, "--stack", 3)
    assert (code, err) == (0, "")
    back = Transitions.open(tmp_path / "d")
    check(back, channel=2)
    assert (len(back), back.frame_shape, back.factor_names) == (40, (16, 16, 3), ("count", "steps"))


def by_others(observation_space, action_space=None, observations=None, infos=None):
    """A data set of one episode of three steps that says nothing of names or no-ops."""
    made = np.zeros((4, *observation_space.shape), observation_space.dtype) if observations is None else observations
    space = action_space or spaces.Discrete(3, start=1)
    episode = minari.data_collector.EpisodeBuffer(
        observations=made,
        actions=np.array([space.sample() for _ in range(3)]) if action_space else np.array([1, 2, 3]),
        rewards=[0.0] * 3,
        terminations=[False, False, True],
        truncations=[False] * 3,
        infos=infos,
    )
    return minari.create_dataset_from_buffers(
        "others/test-v0",
        [episode],
        observation_space=observation_space,
        action_space=space,
        data_format="hdf5",
        jpeg_encoding=False,
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_of_others():
    pictures = np.arange(4, dtype=np.uint8)[:, None, None, None] * np.ones((1, 16, 16, 3), np.uint8)
    space = spaces.Dict({"image": spaces.Box(0, 255, (16, 16, 3), np.uint8)})
    made = by_others(space, observations={"image": pictures}, infos={"x": np.arange(4.0)})
    data = Transitions.from_minari(made, noop=0, factors="info:x")
    np.testing.assert_array_equal(data.frames, pictures)
    assert (data.action.tolist(), data.action_names, data.noop) == ([0, 1, 2], ("0", "1", "2"), 0)
    assert data.factors is not None
    assert data.factors.ravel().tolist() == [0, 1, 2, 3]
    with pytest.warns(DataWarning, match="no action is called a no-op"):
        assert Transitions.from_minari(made).noop is None


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_refused():
    with pytest.raises(AcfError, match="minari:a/b-v0 is not on this machine: minari download a/b-v0"):
        acf.collect("minari:a/b-v0", 10)
    with pytest.raises(AcfError, match="a Minari data set was collected before"):
        acf.collect("minari:a/b-v0", 10, render=True)
    with pytest.raises(DataError, match=r"expected pictures as observations, found Box.*: acf collect gym:ID --render"):
        Transitions.from_minari(by_others(spaces.Box(-1, 1, (2,))))
    minari.delete_dataset("others/test-v0")
    with pytest.raises(AcfError, match="actions: expected a Discrete space, found Box"):
        Transitions.from_minari(by_others(spaces.Box(0, 255, (16, 16, 3), np.uint8), spaces.Box(-1, 1, (2,))))
