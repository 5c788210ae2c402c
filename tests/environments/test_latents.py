"""Observations that are the latents of a run."""

import pickle
from collections import deque
from functools import partial

import numpy as np
import pytest

import acf
from acf.data import Transitions
from acf.errors import AcfError
from acf.training import presets

gym = pytest.importorskip("gymnasium", reason="needs the extra gym")

import small_acf  # noqa: E402
from counting import Counting  # noqa: E402
from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode, SyncVectorEnv  # noqa: E402

from acf.gym import LatentObservation, VectorLatentObservation  # noqa: E402
from acf.methods import METHODS  # noqa: E402

MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Trained on plain frames, on gray stacks of another size, and on what is rendered."""
    folder = tmp_path_factory.mktemp("runs")
    kinds = {
        "plain": acf.collect(Counting(), 200),
        "stacked": acf.collect(Counting(), 200, gray=True, stack=3, size=32),
        "rendered": acf.collect(Counting(kind="vector", render_mode="rgb_array"), 200, render=True),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(presets, "QUICK", small_acf.TINY | {"epochs": 1})
        patch.setitem(METHODS, "toy", "small_acf")
        for name, data in kinds.items():
            acf.train(data, folder / name, method="toy", preset="quick", latents=4, seeds=[7, 3])
        yield folder


class Forgetful(Counting):
    def reset(self, **options):
        self.resets = 0
        return super().reset(**options)


def latent_counting(run):
    """In a process of its own, which does not know the toy yet."""
    METHODS["toy"] = "small_acf"
    return LatentObservation(Counting(), run)


def expected(run, data: Transitions, member: int = 0):
    return acf.load(run, member).encode(np.asarray(data.frames))


def play(env, actions):
    observation, _ = env.reset(seed=5)
    found = [observation]
    for action in actions:
        observation, _, terminated, truncated, _ = env.step(action)
        found.append(observation)
        if terminated or truncated:
            found.append(env.reset()[0])
    return np.stack(found)


@pytest.mark.parametrize(("name", "options"), [("plain", {}), ("stacked", {"gray": True, "stack": 3, "size": 32})])
@pytest.mark.parametrize("member", [0, 1])
def test_they_are_the_latents_of_the_frames_that_are_collected(runs, name, options, member):
    """The same actions and seed give the same frames; those of the data encoded are those seen."""
    data = acf.collect(Counting(), 40, seed=5, **options)
    found = play(LatentObservation(Counting(), runs / name, member), data.action)
    assert (found.dtype, found.shape[1]) == (np.float32, 4)
    np.testing.assert_allclose(found[: len(data.frames)], expected(runs / name, data, member), rtol=1e-4, atol=1e-5)


def test_of_what_is_rendered(runs):
    env = Counting(kind="vector", render_mode="rgb_array")
    data = acf.collect(Counting(), 20, seed=5)
    found = play(LatentObservation(env, runs / "rendered"), data.action)
    np.testing.assert_allclose(found[: len(data.frames)], expected(runs / "rendered", data), rtol=1e-4, atol=1e-5)
    with pytest.raises(AcfError, match="is of what the environment renders: make it with render_mode"):
        LatentObservation(Counting(kind="vector"), runs / "rendered")
    with pytest.raises(AcfError, match="wrap each part in LatentObservation"):
        VectorLatentObservation(SyncVectorEnv([Counting]), runs / "rendered")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["plain", "stacked"])
def test_a_vector_sees_what_its_parts_would(runs, name, mode):
    """Each part beside the same environment alone, whichever way the vector resets."""
    seeds, steps = [5, 6], 23
    actions = np.random.default_rng(0).integers(3, size=(steps, 2))
    envs = VectorLatentObservation(SyncVectorEnv([Counting] * 2, autoreset_mode=mode), runs / name)
    assert envs.observation_space.shape == (2, 4)
    alone = [LatentObservation(Counting(), runs / name) for _ in seeds]
    owed = [deque([env.reset(seed=seed)[0]]) for env, seed in zip(alone, seeds, strict=True)]
    z, _ = envs.reset(seed=5)
    was = np.zeros(2, bool)
    for t in range(-1, steps):
        if t >= 0:
            z, _, terminated, truncated, info = envs.step(actions[t])
            ended = terminated | truncated
            for k, env in enumerate(alone):
                if mode == AutoresetMode.NEXT_STEP and was[k]:
                    owed[k].append(env.reset()[0])
                    continue
                owed[k].append(env.step(actions[t, k])[0])
                if mode == AutoresetMode.SAME_STEP and ended[k]:
                    np.testing.assert_allclose(info["final_obs"][k], owed[k].pop(), rtol=1e-4, atol=1e-5)
                    owed[k].append(env.reset()[0])
            was = ended
        np.testing.assert_allclose(z, [o[-1] for o in owed], rtol=1e-4, atol=1e-5)
        if mode == AutoresetMode.DISABLED and was.any():
            z, _ = envs.reset(options={"reset_mask": was})
            for k in np.flatnonzero(was):
                owed[k].append(alone[k].reset()[0])
            np.testing.assert_allclose(z, [o[-1] for o in owed], rtol=1e-4, atol=1e-5)
            was = np.zeros(2, bool)


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version:UserWarning")
@pytest.mark.filterwarnings("ignore:.*Box observation space m.*infinity:UserWarning")
def test_gymnasiums_checker(runs):
    check_env(LatentObservation(Forgetful(), runs / "plain"), skip_render_check=True)


def test_it_can_be_sent_to_other_processes(runs, monkeypatch, tmp_path):
    monkeypatch.chdir(runs)
    env = LatentObservation(Counting(), "plain")
    sent = pickle.dumps(env)
    first = env.reset(seed=1)[0]
    assert len(pickle.dumps(env)) < 20_000  # the weights stay where they are
    monkeypatch.chdir(tmp_path)  # the run is found from anywhere
    np.testing.assert_array_equal(pickle.loads(sent).reset(seed=1)[0], first)


def test_another_shape_is_refused(runs):
    with pytest.raises(
        AcfError, match=r"trained on frames of \(16, 16, 3\), the environment gives \(16, 16, 1\); wrap"
    ):
        LatentObservation(Counting(kind="gray"), runs / "plain").reset()


def test_a_run_that_is_none(tmp_path):
    with pytest.raises(AcfError, match="is not a run directory"):
        LatentObservation(Counting(), tmp_path)


def test_stable_baselines(runs):
    library = pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3")
    from stable_baselines3.common.env_checker import check_env as check
    from stable_baselines3.common.vec_env import SubprocVecEnv

    check(LatentObservation(Counting(), runs / "plain"))
    env = SubprocVecEnv([partial(latent_counting, runs / "plain")])
    try:
        agent = library.PPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1, device="cpu").learn(16)
        assert np.asarray(env.reset()).shape == (1, 4)
        assert agent.num_timesteps == 16
    finally:
        env.close()
