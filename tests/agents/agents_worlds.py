"""Worlds of a few states, made by hand: `World`s of NumPy alone."""

import numpy as np


class Chain:
    """One place on a line, steps left and right; the goal is its right end, the start its left one."""

    names: tuple[str, ...] = ("place",)
    action_names: tuple[str, ...] = ("noop", "left", "right")
    noop, limit = 0, 20
    units: tuple[str, ...] = ("cell",)

    def __init__(self, length: int):
        self.length = length

    def start(self, seed: int, n: int):
        levels = np.zeros((n, 1), np.int64)
        return levels, levels

    def step(self, seed: int, states: np.ndarray, actions: np.ndarray):
        after = np.clip(states + np.array([0, -1, 1])[actions][:, None], 0, self.length - 1)
        return after, after, self.reached(after)

    def reached(self, levels: np.ndarray) -> np.ndarray:
        return levels[:, 0] == self.length - 1


class Errand:
    """A cart on a line of five, a parcel that moves with it once loaded, and a lamp without use.

    `load` toggles whether the parcel is on the cart, if the cart is at the parcel. The goal: the parcel unloaded at 4.
    """

    names: tuple[str, ...] = ("cart", "parcel", "loaded", "lamp")
    action_names: tuple[str, ...] = ("noop", "left", "right", "load", "switch")
    noop, limit = 0, 30
    units: tuple[str, ...] = ("cell", "cell", "", "")

    def start(self, seed: int, n: int):
        rng = np.random.default_rng(seed)
        zero = np.zeros(n, np.int64)
        levels = np.stack([rng.integers(5, size=n), rng.integers(4, size=n), zero, rng.integers(2, size=n)], axis=1)
        return levels, levels

    def step(self, seed: int, states: np.ndarray, actions: np.ndarray):
        cart, parcel, loaded, lamp = states.T
        cart_after = np.clip(cart + np.array([0, -1, 1, 0, 0])[actions], 0, 4)
        parcel_after = np.where(loaded == 1, cart_after, parcel)
        loaded_after = loaded ^ ((actions == 3) & (cart == parcel))
        after = np.stack([cart_after, parcel_after, loaded_after, lamp ^ (actions == 4)], axis=1)
        return after, after, self.reached(after)

    def reached(self, levels: np.ndarray) -> np.ndarray:
        return (levels[:, 1] == 4) & (levels[:, 2] == 0)

    def every_state(self) -> np.ndarray:
        """Loaded parcels are where the cart is."""
        grid = np.indices((5, 5, 2, 2)).reshape(4, -1).T
        return grid[(grid[:, 2] == 0) | (grid[:, 0] == grid[:, 1])]
