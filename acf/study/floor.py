"""The least time a training step could take: what must be computed and moved, over the device's own rates.

Counted a member, with everything that could be kept in registers kept there. Nothing reaches it; how far a step is
from it says how much is left to gain.
"""

import math
from itertools import pairwise
from typing import NamedTuple

from acf.methods.base import Spec
from acf.nn.places import PLACES
from acf.nn.residual import MIN_RESOLUTION


class Rates(NamedTuple):
    """A second's worth, as `acf.study.rates` measures it."""

    bytes: float
    """Read or written by a copy of a large array."""
    matrix: float
    """Multiplications and additions in a large bfloat16 product."""
    units: float
    """A pair's hidden unit, forward and backward, on registers: reciprocals are slow, and not free beside the rest."""


class Floor(NamedTuple):
    """Seconds a step and member."""

    encoder: float
    energies: float
    optimiser: float

    @property
    def total(self) -> float:
        return sum(self)


def floor(spec: Spec, batch_size: int, parameters: int, rates: Rates) -> Floor:
    encoder = _places if spec.encoder == "places" else _residual
    return Floor(
        encoder=encoder(spec, 2 * batch_size, rates),
        energies=_energies(spec, batch_size, rates),
        optimiser=7 * 4 * parameters / rates.bytes,  # read gradient, parameters and two moments, write the last three
    )


def _places(spec: Spec, frames: int, rates: Rates) -> float:
    """Three layers at every place, of which the first needs no gradient of what it sees, and three sums."""
    h, w, c = spec.frame_shape
    stride = max(1, round(math.sqrt(h * w / PLACES)))
    rows, seen, width = frames * -(-h // stride) * -(-w // stride), (2 * stride) ** 2 * c, spec.hidden // 2
    flops = 2 * rows * width * (2 * seen + 3 * 2 * width + 3 * 3)
    moved = frames * h * w * c + rows * (seen + 2 * width * 5 * 3)
    return max(flops / rates.matrix, moved / rates.bytes)


def _residual(spec: Spec, frames: int, rates: Rates) -> float:
    """Forward and backward; backward is twice the products, except for frames, which need no gradient."""
    h, w, c = spec.frame_shape
    i, o, flops, moved = c + 2, spec.depth, 0, frames * h * w * c
    first = True
    while max(h, w) > MIN_RESOLUTION:
        h, w = -(-h // 2), -(-w // 2)
        pixels = frames * h * w
        flops += 2 * pixels * (9 * i * o * (2 if first else 3) + 2 * o * o * 3)
        # Its output is written and read twice (by the next block and by its own backward pass), its gradient once each.
        moved += 2 * pixels * o * 5
        i, o, first = o, 2 * o, False
    widths = [h * w * i, spec.hidden, spec.hidden, spec.latents]
    flops += sum(2 * frames * m * n * 3 for m, n in pairwise(widths))
    return max(flops / rates.matrix, moved / rates.bytes)


def _energies(spec: Spec, batch_size: int, rates: Rates) -> float:
    return batch_size**2 * spec.latents * spec.hidden / rates.units
