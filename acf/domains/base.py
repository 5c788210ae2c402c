"""The contract every domain keeps."""

import abc
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from acf.errors import AcfError

State = Any  # a NamedTuple of scalars, one type a domain

Levels = Any  # Int[..., K] of NumPy or of JAX: a predicate takes both


class Task(NamedTuple):
    """What an agent may be asked for. The reward is 1 on reaching it, which ends the episode, and 0 otherwise."""

    summary: str
    reached: Callable[[Levels], Bool[Any, "..."]]
    """Of `Domain.levels`, in their last axis."""
    limit: int
    """Steps of an episode."""


class Domain(abc.ABC):
    """A world as pure functions of its state.

    Subclasses are frozen dataclasses, so a domain can be a static argument of `jax.jit`. Nothing ends and nothing
    resets inside `step`: a transition is always a real one. `x` counts columns to the right and `y` rows downwards.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    action_names: ClassVar[tuple[str, ...]]
    noop: ClassVar[int] = 0
    factor_names: ClassVar[tuple[str, ...]]
    controllable: ClassVar[tuple[bool, ...]]
    continuous: ClassVar[bool] = False
    """Whether things move by any amount, and not from level to level."""
    starts: ClassVar[tuple[str, ...]] = ("episode", "balanced")
    tasks: ClassVar[Mapping[str, Task]] = MappingProxyType({})
    """By name. None where things move by any amount: there is nothing to plan on."""
    hidden_names: ClassVar[tuple[str, ...]] = ()
    """What `levels` adds to the factors: what else of a state can be seen, and an agent must know."""
    units: ClassVar[tuple[str, ...]] = ()
    """Of each level, "" for none: levels of one unit can be subtracted. () for no units at all."""

    @property
    def n_actions(self) -> int:
        return len(self.action_names)

    @abc.abstractmethod
    def sample(self, key: PRNGKeyArray, start: str = "balanced") -> State:
        """Draw a start state from the distribution named `start`, one of `starts`."""

    @abc.abstractmethod
    def step(self, key: PRNGKeyArray, state: State, action: Int[Array, ""]) -> State: ...

    @abc.abstractmethod
    def render(self, state: State) -> UInt8[Array, "32 32 3"]: ...

    @abc.abstractmethod
    def factors(self, state: State) -> Float[Array, " K"]: ...

    def levels(self, state: State) -> Int[Array, " L"]:
        """The whole state in integers: the factors, then what `hidden_names` says."""
        return jnp.round(self.factors(state)).astype(jnp.int32)

    @property
    def level_names(self) -> tuple[str, ...]:
        return self.factor_names + self.hidden_names

    def check_start(self, start: str) -> None:
        if start not in self.starts:
            raise AcfError(f"{self.name} has the start distributions {', '.join(self.starts)}; got {start!r}")


def stack_factors(*values: Int[Array, ""] | Float[Array, ""]) -> Float[Array, " K"]:
    return jnp.stack([jnp.asarray(v, jnp.float32) for v in values])


def choose(key: PRNGKeyArray, mask: Array) -> tuple[Int[Array, ""], ...]:
    """The index of one true entry of `mask`, uniformly."""
    flat = jax.random.categorical(key, jnp.where(mask.ravel(), 0.0, -jnp.inf))
    return jnp.unravel_index(flat.astype(jnp.int32), mask.shape)


def paint(image: Float[Array, "H W 3"], alpha: Array | np.ndarray, colour: Any) -> Float[Array, "H W 3"]:
    """Lay `colour` (one for all pixels, or one each) over `image` with opacity `alpha[H, W]`."""
    opacity = jnp.asarray(alpha, jnp.float32)[..., None]
    return image * (1 - opacity) + opacity * jnp.asarray(colour, jnp.float32)


def to_uint8(image: Float[Array, "H W 3"]) -> UInt8[Array, "H W 3"]:
    return jnp.round(image).astype(jnp.uint8)
