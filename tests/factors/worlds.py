"""Small worlds made for a purpose: states walk by hand-written rules, and every state of an episode has its picture."""

from collections.abc import Callable

import numpy as np
from hand_made import World

Rule = Callable[[tuple[int, ...], int], tuple[int, ...]]
"""(state, action) -> next state"""


def walk(
    rule: Rule,
    starts: list[tuple[int, ...]],
    n_actions: int,
    names: tuple[str, ...] = (),
    *,
    episodes: int = 400,
    horizon: int = 30,
    seed: int = 0,
) -> World:
    """Random walks from random starts."""
    rng = np.random.default_rng(seed)
    states, actions = [], rng.integers(0, n_actions, (episodes, horizon))
    for episode in range(episodes):
        state = starts[rng.integers(len(starts))]
        states.append(state)
        for action in actions[episode]:
            state = rule(state, int(action))
            states.append(state)
    factors = np.array(states, np.int64)
    of_frame = np.repeat(np.arange(episodes), horizon + 1)
    t = np.arange(episodes * horizon)
    i = t + t // horizon
    labels = np.unique(np.concatenate([factors, of_frame[:, None]], axis=1), axis=0, return_inverse=True)[1]
    return World(
        factors=factors,
        all_factors=factors.astype(float),
        picture=labels.reshape(-1),
        i=i,
        j=i + 1,
        action=actions.reshape(-1),
        episode=of_frame,
        action_names=tuple(f"action {a}" for a in range(n_actions)),
        names=names or tuple(f"factor {k}" for k in range(factors.shape[1])),
    )


def clipped(value: int, step: int, levels: int) -> int:
    return min(max(value + step, 0), levels - 1)
