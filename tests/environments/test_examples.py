"""What the examples are made of; they are too long to be run here."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import acf

pytest.importorskip("gymnasium", reason="needs the extra gym")

from gymnasium.utils.env_checker import check_env

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_two_carts():
    own = example("own_environment")
    check_env(own.TwoCarts(), skip_render_check=True)
    data = acf.collect(own.TwoCarts(), 300, factors="info:factors")
    assert (data.noop, data.action_names, data.factor_names) == (0, own.BUTTONS, ("red", "blue"))
    assert data.factors is not None
    for k, row in enumerate((20, 60)):
        left = (data.frames[:, row] != 30).any(-1).argmax(1)  # where a cart begins
        np.testing.assert_allclose(left / (own.SIDE - own.CART), data.factors[:, k], atol=0.5 / (own.SIDE - own.CART))
    moved = data.factors[data.j] - data.factors[data.i]
    inside = ((data.factors[data.i] > 0.2) & (data.factors[data.i] < 0.8)).all(1)
    np.testing.assert_allclose(moved[inside], own.MOVES[data.action[inside]], atol=0.1)  # five standard deviations


def test_the_task_of_ppo():
    pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3")
    task = example("sb3_ppo")
    env = task.pixels()
    _, info = env.reset(seed=0)
    terminated = False
    while not terminated:  # within a few steps
        action = 4 if info["factors"]["x"] < task.GOAL[0] - 0.05 else 1  # right, then up
        _, reward, terminated, _, info = env.step(np.int64(action))
        assert reward == -1
    assert abs(info["factors"]["y"] - task.GOAL[1]) < 0.1
