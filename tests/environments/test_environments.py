"""Data from an environment whose every transition is known."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import acf
from acf.data import DataError, DataWarning, Transitions
from acf.errors import AcfError

gym = pytest.importorskip("gymnasium", reason="needs the extra gym")

from counting import LIMIT, Counting, always_up, check, state  # noqa: E402
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv  # noqa: E402

ARRAYS = ("frames", "i", "action", "j", "episode")
MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]


def same(a: Transitions, b: Transitions) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ARRAYS)


def test_every_transition_is_one_that_the_environment_makes():
    data = acf.collect(Counting(), 400, factors="info:state")
    check(data)
    assert (len(data), data.noop, data.action_names) == (400, 0, ("stay", "up", "down"))
    assert data.factor_names == ("count", "steps")
    np.testing.assert_array_equal(data.j, data.i + 1)
    resets = data.frames[:, 0, 2, 0]
    np.testing.assert_array_equal(data.episode, resets.astype(int) - 1)
    steps = data.frames[:, 0, 1, 0]
    assert steps.max() == LIMIT
    count = data.frames[:, 0, 0, 0]
    last = np.append(resets[1:] != resets[:-1], False)
    assert ((steps[last] == LIMIT) | (count[last] == 103)).all()  # episodes end where the environment's do
    assert (count[last] == 103).any()
    assert (count[last] != 103).any()


def test_the_environments_generator_is_seeded_and_so_are_the_actions():
    a, b, c = (acf.collect(Counting(), 100, seed=seed) for seed in (7, 7, 3))
    assert same(a, b)
    assert not same(a, c)
    assert len(np.unique(a.action)) == 3


@pytest.mark.parametrize("kind", ["dict", "first", "unit"])
def test_pictures_of_other_layouts_are_the_same_pictures(kind):
    plain, other = acf.collect(Counting(), 50), acf.collect(Counting(kind=kind), 50)
    assert same(plain, other)


def test_gray_pictures_get_their_channel():
    data = acf.collect(Counting(kind="gray"), 50)
    assert data.frame_shape == (16, 16, 1)
    check(data)


def test_numbering_of_actions_may_start_anywhere():
    assert same(acf.collect(Counting(start=5), 50), acf.collect(Counting(), 50))


def test_what_it_renders():
    plain = acf.collect(Counting(), 50)
    assert same(plain, acf.collect(Counting(render_mode="rgb_array", kind="vector"), 50, render=True))
    named = acf.collect("counting:Counting", 50, render=True)
    assert same(plain, named)
    with pytest.raises(AcfError, match=r'render_mode="rgb_array", found None; give that to gymnasium\.make'):
        acf.collect(Counting(), 50, render=True)


def test_frames_may_be_stacked_gray_and_of_another_size():
    data = acf.collect(Counting(), 60, gray=True, stack=3)
    assert data.frame_shape == (16, 16, 3)
    check(data, channel=2)  # the newest is the last
    single = acf.collect(Counting(), 60)
    for k in (1, 2):
        older = np.array(
            [max(m - k, np.flatnonzero(single.episode == single.episode[m])[0]) for m in range(len(single.frames))]
        )
        np.testing.assert_array_equal(data.frames[..., 2 - k], single.frames[older][..., 0])
    assert acf.collect(Counting(), 60, size=32).frame_shape == (32, 32, 3)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("vector", [SyncVectorEnv, partial(AsyncVectorEnv, context="forkserver")])  # JAX is no fork's
def test_a_vector_never_makes_a_transition_across_a_reset(mode, vector):
    envs = vector([Counting] * 3, autoreset_mode=mode)
    data = acf.collect(envs, 300, factors="info:state")
    envs.close()
    check(data)
    assert len(data) == 300
    assert (data.noop, data.source["domain"]) == (0, "counting:Counting")
    starts = np.flatnonzero(data.frames[data.i][:, 0, 1, 0] == 0)
    assert len(starts) == len(np.unique(data.episode))


def test_a_name_may_make_a_vector():
    data = acf.collect("counting:pair", 60, factors="info:state")
    check(data)
    assert (len(data), data.source["domain"]) == (60, "counting:pair")


def test_a_vector_of_dictionaries():
    plain, other = (SyncVectorEnv([partial(Counting, kind=kind)] * 2) for kind in ("rgb", "dict"))
    assert same(acf.collect(plain, 60), acf.collect(other, 60))


@pytest.mark.filterwarnings("ignore::acf.data.checks.DataWarning")
def test_a_vectors_parts_play_the_same_episodes_in_every_mode():
    found = []
    for mode in MODES:
        data = acf.collect(SyncVectorEnv([Counting] * 2, autoreset_mode=mode), 200, policy=always_up)
        whole = data.frames[:, 0, :3, 0].tolist()
        found.append({tuple(map(tuple, (np.array(whole)[data.episode == e]).tolist())) for e in range(20)})
    assert found[0] == found[1] == found[2]


def test_a_vector_that_does_not_say_when_it_resets_is_refused():
    envs = SyncVectorEnv([Counting] * 2)
    envs.metadata = {}
    with pytest.raises(AcfError, match=r"metadata\['autoreset_mode'\].*found None; set it to one of"):
        acf.collect(envs, 50)


def test_horizon_makes_episodes_of_an_environment_without_an_end():
    env = Counting()
    data = acf.collect(env, 90, horizon=3)
    assert np.bincount(data.episode[data.i]).max() == 3
    check(data)


@pytest.mark.parametrize("factors", ["info:state", "info:array", "counting:state", state])
def test_factors(factors):
    data = acf.collect(Counting(), 60, factors=factors)
    check(data)
    assert data.factor_names == (("array 0", "array 1") if factors == "info:array" else ("count", "steps"))


@pytest.mark.filterwarnings("ignore::acf.data.checks.DataWarning")
@pytest.mark.parametrize("policy", [always_up, "counting:always_up"])
def test_policies(policy):
    data = acf.collect(Counting(), 30, policy=policy)
    assert set(data.action.tolist()) == {1}


def test_a_trained_agent_acts(tmp_path):
    library = pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3")
    library.PPO("MlpPolicy", Counting(kind="vector"), n_steps=8, batch_size=8, device="cpu").save(
        tmp_path / "agent.zip"
    )
    env = Counting(kind="vector", render_mode="rgb_array")
    data = acf.collect(env, 30, policy=f"sb3:PPO:{tmp_path / 'agent.zip'}", render=True)
    check(data)


# On disk


def test_on_disk_equals_in_memory_and_is_reused(tmp_path, monkeypatch):
    told = []
    memory = acf.collect(Counting(), 200, factors="info:state")
    monkeypatch.setattr("acf.data.environments.tape.BLOCK_BYTES", 20 * 16 * 16 * 3)  # several blocks
    options = {"factors": "info:state", "out": tmp_path / "d"}
    disk = acf.collect(Counting(), 200, progress=lambda done, total: told.append((done, total)), **options)
    assert same(disk, memory)
    assert isinstance(disk.frames, np.memmap)
    assert told[-1] == (200, 200)
    assert acf.collect(Counting(), 200, **options).hash == disk.hash
    with pytest.raises(DataError, match="seed: 0 there, 1 asked"):
        acf.collect(Counting(), 200, seed=1, **options)


def test_an_interrupted_collection_leaves_nothing_and_the_same_command_starts_again(tmp_path):
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        acf.collect(Counting(), 200, out=tmp_path / "d", progress=interrupt)
    assert list(tmp_path.iterdir()) == []
    assert same(acf.collect(Counting(), 200, out=tmp_path / "d"), acf.collect(Counting(), 200))


def test_the_command(tmp_path, command, monkeypatch):
    monkeypatch.chdir(Path(__file__).parent)
    args = ["collect", "counting:Counting", "--transitions", 120, "--out", tmp_path / "d", "--factors", "info:state"]
    code, out, err = command(*args)
    assert (code, err) == (0, "")
    assert "120 transitions" in out
    data = Transitions.open(tmp_path / "d")
    check(data)
    assert data.source["domain"] == "counting:Counting"
    assert command(*args)[1].startswith("reused")
    code, out, _ = command("data", tmp_path / "d")
    assert code == 0
    assert "stay (no-op)" in out


def test_none_for_a_noop_is_said_and_kept(tmp_path, command, monkeypatch):
    monkeypatch.chdir(Path(__file__).parent)
    out = tmp_path / "d"
    code, _, err = command("collect", "counting:Counting", "--transitions", 120, "--noop", "none", "--out", out)
    assert (code, err) == (0, "")
    assert Transitions.open(out).noop is None
    code, text, _ = command("data", out)
    assert code == 0
    assert "(no-op)" not in text
    code, _, err = command("train", out, "--out", tmp_path / "r", "--latents", 2, "--preset", "quick", "--epochs", 1)
    assert code == 1
    assert "acf contrasts each action with one that does nothing, and the data says that it has none" in err
    assert "--method (lattice, gcl, dms, msa, factored_markov)" in err
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("noop", ["stay", "0", 0])
def test_noop_by_name_or_number(noop):
    assert acf.collect(Counting(), 60, noop=noop).noop == 0


def test_no_action_called_a_noop_is_a_warning(monkeypatch):
    monkeypatch.setattr(Counting, "actions", None)
    with pytest.warns(DataWarning, match=r"no action is called a no-op \(0, 1, 2\): .*--noop NAME"):
        assert acf.collect(Counting(), 60).noop is None


class Drifting(Counting):
    """Its first action is called `stay`, and goes up."""

    def step(self, action):
        return super().step(1 if action == 0 else action)


def test_a_noop_that_is_none_is_doubted_with_numbers():
    with pytest.warns(
        DataWarning, match=r"the no-op 'stay' \(0\) changes the picture by 0\.\d+ grey levels .*--noop none"
    ):
        acf.collect(Drifting(), 400)
    acf.collect(Drifting(), 400, noop=None)  # as the warning says


# What is refused, each with the way out


class Moves(Counting):
    def __init__(self, space):
        super().__init__()
        self.action_space = space


@pytest.mark.parametrize(
    ("env", "options", "message"),
    [
        (Counting(kind="vector"), {}, r"observation: expected a picture .*found Box.*: --render, render=True"),
        (Counting(kind="small"), {}, r"at least 16 x 16 pixels.*found Box.*: --render"),
        (Counting(kind="unbounded"), {}, r"from 0 to 1 or 255, found float32 from -inf to inf; give its space"),
        (Counting(kind="stacked"), {}, r"found a stack of them, \(4, 16, 16, 3\); .*--gray --stack N"),
        (Counting(kind="many"), {}, r"at most 4 channels, found 1 pictures of 12; make them gray"),
        (Counting(), {"stack": 2}, r"at most 4 channels, found 2 pictures of 3; make them gray \(--gray"),
        (
            Moves(gym.spaces.Box(-1, 1, (2,))),
            {},
            "actions: expected a Discrete space, found Box.*list a few and number",
        ),
        (Moves(gym.spaces.MultiDiscrete([2, 2])), {}, "found MultiDiscrete.*; actions are discrete, .*TransformAction"),
        (Counting(), {"noop": "rest"}, "noop: expected one of the actions stay, up, down, .*or none; found 'rest'"),
        (Counting(), {"noop": 3}, "a number from 0 to 2, or none; found 3"),
        (Counting(), {"factors": "info:other"}, r"factors: expected 'other' in info .*found 'state', 'array'; have"),
        (Counting(), {"factors": "here:nothing"}, "factors 'here:nothing': there is no module 'here'"),
        (Counting(), {"factors": lambda env: "text"}, "factors: expected numbers, .*found 'text'"),
        (Counting(), {"policy": "greedy"}, "policy: expected random, module:name .*found 'greedy'"),
        (Counting(), {"policy": lambda observation: 3}, r"policy: expected one action of Discrete\(3\), found 3"),
        (Counting(), {"start": "balanced"}, "start: expected none for an environment"),
        (Counting(), {"transitions": 0}, "transitions, stack and horizon of at least 1"),
        (Counting(), {"size": 8}, "a size of at least 16, got"),
        ("gym:Nowhere-v0", {}, "gym:Nowhere-v0: .*gym:MODULE:Nowhere-v0, or MODULE:CLASS"),
        ("gym:ALE/Nowhere-v5", {}, "gym:ALE/Nowhere-v5"),
        ("nowhere:Env", {}, "environment 'nowhere:Env': there is no module 'nowhere'"),
        ("counting:always_up", {}, "counting:always_up: expected what makes an environment without .*missing 1 req"),
        ("counting:LIMIT", {}, "counting:LIMIT: expected a Gymnasium environment, or what makes one, found int"),
        ("taxi", {"noop": 0}, "are for environments: a domain has its own"),
        ("CartPole-v1", {}, "unknown domain 'CartPole-v1': .*; or an environment: gym:ID, minari:ID"),
        (42, {}, "expected a domain, a Gymnasium environment or a name of one, found int; .*Transitions.from_arrays"),
    ],
)
def test_refused(env, options, message, tmp_path):
    with pytest.raises(AcfError, match=message):
        acf.collect(env, **{"transitions": 20, "out": tmp_path / "d"} | options)
    assert not (tmp_path / "d").exists()


def test_without_gymnasium(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(AcfError, match=r"Gymnasium is not installed: pip install 'acf-rl\[gym\]'"):
        acf.collect("gym:CartPole-v1", 20)


def test_a_name_whose_observation_is_no_picture_is_rendered():
    pytest.importorskip("pygame", reason="needs pygame")
    with pytest.warns(DataWarning):
        data = acf.collect("gym:CartPole-v1", 20, size=32)
    assert (data.frame_shape, data.source["render"]) == ((32, 32, 3), True)


@pytest.mark.filterwarnings("ignore::acf.data.checks.DataWarning")  # there is nothing to pick up
def test_minigrid():
    pytest.importorskip("minigrid", reason="needs minigrid")
    data = acf.collect("gym:MiniGrid-Empty-5x5-v0", 300, size=32, noop="done")
    assert data.action_names[:3] == ("left", "right", "forward")
    assert (data.noop, data.frame_shape) == (6, (32, 32, 3))


def test_atari():
    pytest.importorskip("ale_py", reason="needs ale-py")
    data = acf.collect("gym:ALE/Pong-v5", 60, size=84, gray=True, stack=2, noop="NOOP")
    assert data.action_names == ("NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE")
    assert data.frame_shape == (84, 84, 2)
    again = acf.collect("gym:ALE/Pong-v5", 60, size=84, gray=True, stack=2, noop="NOOP")
    assert same(data, again)
