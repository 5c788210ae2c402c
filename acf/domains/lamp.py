"""Lamp: two switches toggle its power and its colour; both also flip by themselves now and then."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from acf.domains.base import Domain, paint, stack_factors, to_uint8

POSITIONS = 5
WARM_AND_COLD = np.array([[255, 170, 60], [90, 170, 255]], np.float32)
OFF = 0.35  # brightness of a lamp without power: its colour can still be seen
STAND = (110, 110, 110)


class LampState(NamedTuple):
    power: Int[Array, ""]
    colour: Int[Array, ""]
    position: Int[Array, ""]
    shape: Int[Array, ""]


def _shape_masks() -> np.ndarray:
    """Disc, square and diamond around the origin, on a canvas twice as wide as the image: [3, 32, 64]."""
    dy, dx = np.mgrid[0:32, 0:64] - np.array([12, 32])[:, None, None]
    disc = dx**2 + dy**2 <= 6.0**2
    square = np.maximum(abs(dx), abs(dy)) <= 5
    diamond = abs(dx) + abs(dy) <= 8
    return np.stack([disc, square, diamond]).astype(np.float32)


_SHAPES = _shape_masks()
_STAND = ((abs(np.arange(64) - 32) <= 1)[None] & (np.arange(32) > 12)[:, None]).astype(np.float32)


@dataclass(frozen=True)
class Lamp(Domain):
    flip: float = 0.05  # chance that power, and that colour, flips by itself in a step

    name = "lamp"
    summary = "two switches toggle power and colour"
    action_names = ("noop", "switch_power", "switch_colour")
    factor_names = ("power", "colour", "position", "shape")
    controllable = (True, True, False, False)

    def sample(self, key: PRNGKeyArray, start: str = "balanced") -> LampState:
        self.check_start(start)  # an episode starts anywhere: the two distributions are one
        sizes = (2, 2, POSITIONS, len(_SHAPES))
        return LampState(
            *(jax.random.randint(k, (), 0, n) for k, n in zip(jax.random.split(key, 4), sizes, strict=True))
        )

    def step(self, key: PRNGKeyArray, state: LampState, action: Int[Array, ""]) -> LampState:
        flips = jax.random.bernoulli(key, self.flip, (2,))
        power = state.power ^ (action == 1) ^ flips[0]
        colour = state.colour ^ (action == 2) ^ flips[1]
        return state._replace(power=power.astype(jnp.int32), colour=colour.astype(jnp.int32))

    def render(self, state: LampState) -> UInt8[Array, "32 32 3"]:
        left = 24 - 4 * state.position  # where the window on the wide canvas starts

        def window(canvas: Array) -> Array:
            return jax.lax.dynamic_slice_in_dim(canvas, left, 32, axis=1)

        light = jnp.asarray(WARM_AND_COLD)[state.colour] * jnp.where(state.power == 1, 1.0, OFF)
        image = paint(jnp.zeros((32, 32, 3)), window(jnp.asarray(_STAND)), STAND)
        return to_uint8(paint(image, window(jnp.asarray(_SHAPES)[state.shape]), light))

    def factors(self, state: LampState) -> Float[Array, "4"]:
        return stack_factors(*state)
