"""A tiny environment of which every frame, action, episode and factor is known."""

from enum import IntEnum

import gymnasium as gym
import numpy as np
from gymnasium import spaces

LIMIT = 5  # steps at most; it also ends by itself where the count gets to 3


class Actions(IntEnum):
    stay = 0
    up = 1
    down = 2


EFFECT = np.array([0, 1, -1])


class Counting(gym.Env):
    """A picture holds, as bytes: the count (from 100), the steps since the reset, and how many resets there were."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012 (Gymnasium's)
    actions = Actions

    def __init__(self, render_mode=None, kind="rgb", start=0):
        self.render_mode, self.kind, self.resets = render_mode, kind, 0
        self.action_space, self.first = spaces.Discrete(3, start=start), start
        low, high, shape, dtype = KINDS[kind]
        self.picture = spaces.Box(low, high, shape, dtype)
        self.observation_space = spaces.Dict({"image": self.picture}) if kind == "dict" else self.picture

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count, self.steps = int(self.np_random.integers(-1, 2)), 0
        self.resets += 1
        return self._observe(), self._info()

    def step(self, action):
        self.count += int(EFFECT[action - self.first])
        self.steps += 1
        return self._observe(), 0.0, self.count == 3, self.steps == LIMIT, self._info()

    def render(self):
        picture = np.zeros((16, 16, 3), np.uint8)
        picture[0, :3] = [[self.count + 100], [self.steps], [self.resets]]
        return picture

    def _info(self):
        return {"state": {"count": self.count, "steps": self.steps}, "array": np.array([self.count, self.steps])}

    def _observe(self):
        picture = self.render()
        made = {
            "rgb": picture,
            "dict": {"image": picture},
            "gray": picture[..., 0],
            "first": np.moveaxis(picture, -1, 0),
            "unit": picture.astype(np.float32) / 255,
            "vector": np.array([self.count, self.steps], np.float32),
            "small": picture[:7, :7],
            "unbounded": picture.astype(np.float32),
            "stacked": np.stack([picture] * 4),
            "many": np.concatenate([picture] * 4, axis=-1),
        }
        return made[self.kind]


KINDS = {
    "rgb": (0, 255, (16, 16, 3), np.uint8),
    "dict": (0, 255, (16, 16, 3), np.uint8),
    "gray": (0, 255, (16, 16), np.uint8),
    "first": (0, 255, (3, 16, 16), np.uint8),
    "unit": (0, 1, (16, 16, 3), np.float32),
    "vector": (-9, 9, (2,), np.float32),
    "small": (0, 255, (7, 7, 3), np.uint8),
    "unbounded": (-np.inf, np.inf, (16, 16, 3), np.float32),
    "stacked": (0, 255, (4, 16, 16, 3), np.uint8),
    "many": (0, 255, (16, 16, 12), np.uint8),
}


def state(env):
    """Factors as a function of the environment."""
    return {"count": env.count, "steps": env.steps}


def pair():
    return gym.vector.SyncVectorEnv([Counting] * 2)


def always_up(observation):
    return 1


def check(data, channel=0):
    """That every transition is one that the environment makes."""
    count, steps, resets = (data.frames[:, 0, k, channel].astype(int) for k in range(3))
    i, j = data.i, data.j
    np.testing.assert_array_equal(count[j], count[i] + EFFECT[data.action])
    np.testing.assert_array_equal(steps[j], steps[i] + 1)
    np.testing.assert_array_equal(resets[j], resets[i])
    assert not (count[i] == 103).any()  # nothing follows the end of an episode
    assert not (steps[i] == LIMIT).any()
    assert set(i) | set(j) == set(range(len(data.frames)))
    if data.factors is not None:
        np.testing.assert_array_equal(data.factors, np.stack([count - 100, steps], 1))
