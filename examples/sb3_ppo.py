"""PPO of Stable-Baselines3 on pixels and on latents: the same agent, task and number of steps.

uv run --extra gym --with stable-baselines3 python examples/sb3_ppo.py --steps 20000

The task: bring Grid2D's point to the upper right corner. The encoder was trained without it, on random steps; where
there is no run yet, it is trained first (about a minute on two CPU cores).
"""

from dataclasses import dataclass
from pathlib import Path

import gymnasium as gym
import numpy as np
import tyro
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

import acf
from acf.gym import LatentObservation

GOAL = np.array([0.9, 0.1])  # x to the right, y downwards


class Reach(gym.Wrapper):
    """The domains have no task of their own: this one costs 1 a step, until the point is near the goal."""

    def step(self, action):
        observation, _, terminated, truncated, info = self.env.step(action)
        place = np.array([info["factors"]["x"], info["factors"]["y"]])
        reached = bool(np.abs(place - GOAL).max() < 0.1)
        return observation, -1.0, terminated or reached, truncated, info


def pixels() -> gym.Env:
    return Reach(gym.make("acf/Grid2D-v0"))


@dataclass(frozen=True)
class Args:
    steps: int = 20_000
    """Of each agent."""
    seed: int = 0
    run: Path = Path("runs/grid2d-acf-quick")
    """Where `acf run grid2d` puts its run."""


def train_encoder(run: Path) -> None:
    acf.collect("grid2d", 40_000, out=run / "data")
    acf.train(run / "data", run, preset="quick")


def main(args: Args) -> None:
    if not args.run.exists():
        train_encoder(args.run)

    def latents() -> gym.Env:
        return LatentObservation(pixels(), args.run)

    check_env(latents())
    for name, make in (("pixels", pixels), ("latents", latents)):
        agent = PPO("MlpPolicy", make_vec_env(make, 8), n_steps=64, batch_size=128, seed=args.seed, device="cpu")
        agent.learn(args.steps)
        returns, lengths = evaluate_policy(agent, Monitor(make()), n_eval_episodes=20, return_episode_rewards=True)
        print(f"{name}: return {np.mean(returns):.1f}, {np.mean(lengths):.1f} steps to the goal (100 is never)")


if __name__ == "__main__":
    main(tyro.cli(Args))
