"""Who acts while data is collected: chance, a function, or a trained agent."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from acf.errors import AcfError
from acf.registry import load

Act = Callable[[Any], int]  # from an observation to the action's number among the names, from 0


def make_policy(asked: str | Callable[[Any], Any], space: Any, seed: int) -> Act:
    """`uniform`; a function of the observation, or `module:name` of one; `sb3:ALGORITHM:FILE`."""
    if asked in ("uniform", "random"):
        rng = np.random.default_rng(seed)
        return lambda observation: int(rng.integers(space.n))
    if not isinstance(asked, str):
        act = asked
    elif asked.startswith("sb3:"):
        act = _stable_baselines(asked, seed)
    elif ":" in asked:
        act = load("policy", asked)
    else:
        expected = "random, module:name of a function of the observation, or sb3:ALGORITHM:FILE"
        raise AcfError(f"policy: expected {expected}, found {asked!r}")
    return lambda observation: _checked(act(observation), space)


def name_of_policy(asked: str | Callable[[Any], Any]) -> str:
    return (
        asked
        if isinstance(asked, str)
        else f"{asked.__module__}:{getattr(asked, '__qualname__', type(asked).__name__)}"
    )


def _checked(action: Any, space: Any) -> int:
    action = np.asarray(action)
    if action.size != 1 or not space.contains(np.int64(action.item())):
        raise AcfError(f"policy: expected one action of {space}, found {action.tolist()!r}")
    return int(action.item()) - int(space.start)


def _stable_baselines(asked: str, seed: int) -> Callable[[Any], Any]:
    _, algorithm, file = (*asked.split(":", 2), "", "")[:3]
    try:
        library = importlib.import_module("stable_baselines3")
    except ImportError:
        raise AcfError(f"policy: {asked} needs Stable-Baselines3: pip install stable-baselines3") from None
    if not hasattr(library, algorithm):
        raise AcfError(f"policy: expected sb3:ALGORITHM:FILE such as sb3:PPO:agent.zip, found {asked!r}")
    model = getattr(library, algorithm).load(file)
    model.set_random_seed(seed)
    return lambda observation: model.predict(observation)[0]
