"""From your own environment to its state variables: collect, train, report, encode.

uv run --extra gym python examples/own_environment.py

Two carts on two rails, 84x84 pixels, five buttons. Nobody tells the method that there are two things in the picture,
nor which button moves which; in the end each latent is the place of one cart.
"""

from pathlib import Path

import gymnasium as gym
import numpy as np

import acf
from acf.gym import LatentObservation

SIDE, CART = 84, 12
BUTTONS = ("noop", "red left", "red right", "blue left", "blue right")
MOVES = np.array([[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]]) * 0.1


class TwoCarts(gym.Env):
    """An environment as you may have it: an observation space, an action space, reset and step."""

    def __init__(self):
        self.observation_space = gym.spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8)
        self.action_space = gym.spaces.Discrete(len(BUTTONS))

    def get_action_meanings(self):
        return list(BUTTONS)  # so that the no-op is known, and the report can name the buttons

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.places, self.steps = self.np_random.uniform(size=2), 0
        return self.picture(), self.info()

    def step(self, action):
        self.places = np.clip(self.places + MOVES[action] + self.np_random.normal(0, 0.02, 2), 0, 1)
        self.steps += 1
        return self.picture(), 0.0, False, self.steps == 50, self.info()

    def picture(self):
        picture = np.full((SIDE, SIDE, 3), 30, np.uint8)
        for top, colour, place in zip((16, 56), ((230, 60, 50), (60, 110, 240)), self.places, strict=True):
            left = round(place * (SIDE - CART))
            picture[top : top + CART, left : left + CART] = colour
        return picture

    def info(self):
        return {"factors": {"red": self.places[0], "blue": self.places[1]}}  # for the scores alone; may be left out


def main(out: Path = Path("runs/two-carts"), transitions: int = 20_000, epochs: int = 40) -> None:
    # Frames of 32x32 train in minutes on a CPU, of 84x84 in an hour.
    data = acf.collect(TwoCarts(), transitions, size=32, factors="info:factors", out=out.with_name(f"{out.name}-data"))
    print(data)

    acf.train(out.with_name(f"{out.name}-data"), out, preset="quick", latents=2, epochs=epochs)

    (scores,) = acf.report_runs([out])
    member = scores["members"][0]
    print(
        f"R² of each latent with its cart: {member['diag']:.3f} (1 is best), with the other: {member['off_diag']:.3f}"
    )
    print(f"open {out / 'report.html'} in a browser")

    env = LatentObservation(TwoCarts(), out)  # sees frames as they were collected, gives latents
    z, info = env.reset(seed=0)
    for button in (0, 2, 2, 2, 3, 3, 3):
        z, _, _, _, info = env.step(button)
        print(f"{BUTTONS[button]:<10} latents {np.round(z, 2)}  places {np.round([*info['factors'].values()], 2)}")


if __name__ == "__main__":
    main()
