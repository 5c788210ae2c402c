"""Environments by name, and what they say of their actions."""

import importlib
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from acf.data.checks import DISCRETE, DataWarning
from acf.errors import AcfError
from acf.registry import load

# Where environments come from that are not registered until their package is imported.
PACKAGES = {"ALE/": "ale_py", "MiniGrid-": "minigrid", "BabyAI-": "minigrid", "acf/": "acf.gym"}
NOOPS = ("noop", "no-op", "no_op", "nop", "nothing", "do_nothing", "stay", "idle", "wait")


def gymnasium() -> Any:
    try:
        return importlib.import_module("gymnasium")
    except ImportError:
        raise AcfError("Gymnasium is not installed: pip install 'acf-rl[gym]'") from None


def is_environment(thing: Any) -> bool:
    if "gymnasium" not in sys.modules:
        return False  # nothing can be one
    return isinstance(thing, (gymnasium().Env, gymnasium().vector.VectorEnv))


def is_vector(env: Any) -> bool:
    return isinstance(env, gymnasium().vector.VectorEnv)


def open_named(name: str, render: bool) -> Any:
    """`gym:ID` or `module:Name`, a class or a function that makes an environment."""
    options = {"render_mode": "rgb_array"} if render else {}
    if name.startswith("gym:"):
        return _made(name.removeprefix("gym:"), options)
    made = load("environment", name)
    try:
        env = made(**options) if callable(made) else made
    except TypeError as error:
        raise AcfError(f"{name}: expected what makes an environment without arguments, found: {error}") from None
    if not is_environment(env):
        raise AcfError(f"{name}: expected a Gymnasium environment, or what makes one, found {type(env).__name__}")
    return env


def _made(name: str, options: dict[str, Any]) -> Any:
    gym = gymnasium()
    for prefix, package in PACKAGES.items():
        if name.startswith(prefix):
            try:
                importlib.import_module(package)
            except ImportError:
                raise AcfError(f"gym:{name} needs the package {package}: pip install {package}") from None
    try:
        return gym.make(name, **options)
    except gym.error.UnregisteredEnv as error:
        hint = f"an environment of your own package: gym:MODULE:{name}, or MODULE:CLASS"
        raise AcfError(f"gym:{name}: {str(error).rstrip('.')}; {hint}") from None
    except (gym.error.Error, ImportError) as error:
        raise AcfError(f"gym:{name}: {error}") from None


@contextmanager
def one_of(env: Any) -> Iterator[Any]:
    """The environment, or of a vector one of its parts, which knows its name and those of its actions."""
    if hasattr(env, "envs"):
        yield env.envs[0]
    elif hasattr(env, "env_fns"):  # the parts live in other processes: here is one more
        part = env.env_fns[0]()
        yield part
        part.close()
    else:
        yield env


def name_of(env: Any) -> str:
    """
    >>> name_of(gymnasium().make("CartPole-v1"))
    'gym:CartPole-v1'
    """
    spec = env.spec if env.spec is not None else getattr(env.unwrapped, "spec", None)
    if spec is not None:
        return f"gym:{spec.id}"
    kind = type(env.unwrapped)
    return f"{kind.__module__}:{kind.__qualname__}"


def check_discrete(space: Any) -> None:
    if not isinstance(space, gymnasium().spaces.Discrete):
        raise AcfError(
            f"actions: expected a Discrete space, found {space}; {DISCRETE} (gymnasium.wrappers.TransformAction)"
        )


def action_names(env: Any, n: int) -> tuple[str, ...]:
    """From `get_action_meanings` or an enumeration `actions`, where there is one; else numbers."""
    own = env.unwrapped
    meanings, members = getattr(own, "get_action_meanings", None), getattr(own, "actions", None)
    names: list[str] = []
    if meanings is not None:
        names = [str(name) for name in meanings()]
    elif isinstance(members, type) and issubclass(members, Enum):
        names = [member.name for member in members]
    fits = len(names) == len(set(names)) == n
    return tuple(names) if fits else tuple(map(str, range(n)))


def find_noop(asked: int | str | None, names: tuple[str, ...]) -> int | None:
    """`auto` is the action that is called so, or none; a name or a number that action; None none."""
    if asked == "auto":
        found = [k for k, name in enumerate(names) if name.lower() in NOOPS]
        if found:
            return found[0]
        warnings.warn(
            f"no action is called a no-op ({', '.join(names)}): the data says that there is none, which acf cannot "
            "learn from; if one does nothing, name it: --noop NAME, noop=NAME, or its number when training",
            DataWarning,
            stacklevel=4,
        )
        return None
    if asked in names:
        return names.index(str(asked))
    if asked is None or (isinstance(asked, str) and asked.lower() == "none"):
        return None
    if isinstance(asked, int) or asked.isdecimal():
        index = int(asked)
        if 0 <= index < len(names):
            return index
    raise AcfError(
        f"noop: expected one of the actions {', '.join(names)}, a number from 0 to {len(names) - 1}, or none; "
        f"found {asked!r}"
    )
