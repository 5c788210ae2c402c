"""The least time a training step could take: what must be computed and moved, over the device's own measured rates.

Counted a member, with everything that could be kept in registers kept there. Nothing reaches it; how far a step is
from it says how much is left to gain.
"""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array

from acf.methods.base import Spec
from acf.nn.encoder import MIN_RESOLUTION
from acf.nn.kernel import fast_reciprocal, fma


class Rates(NamedTuple):
    """A second's worth, measured here and now."""

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
    return Floor(
        encoder=_encoder(spec, 2 * batch_size, rates),
        energies=_energies(spec, batch_size, rates),
        optimiser=7 * 4 * parameters / rates.bytes,  # read gradient, parameters and two moments, write the last three
    )


def _encoder(spec: Spec, frames: int, rates: Rates) -> float:
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


def measure_rates() -> Rates:
    big = jnp.ones(2**28, jnp.float32)
    matrix = jax.random.normal(jax.random.key(0), (8192, 8192), jnp.bfloat16)
    copied = 2 * big.nbytes / _seconds(jax.jit(lambda x: x + 1), big)
    multiplied = 2 * 8192**3 / _seconds(jax.jit(lambda x: x @ x), matrix)
    return Rates(copied, multiplied, _in_registers(_unit))


def _unit(x: Array) -> Array:
    """As many instructions as a hidden unit of a pair needs: 7 and a reciprocal forward, 8 and another one backward."""
    for instructions in (7, 8):
        for _ in range(instructions):
            x = fma(x, 0.999, 0.001)
        x = fast_reciprocal(x)
    return x


def _in_registers(step: Callable[[Array], Array], elements: int = 2**24, repeats: int = 64) -> float:
    """How often a second `step` is done, on numbers that never leave their registers."""

    def kernel(x_ref, out_ref):
        out_ref[...] = jax.lax.fori_loop(0, repeats, lambda _, x: step(x), x_ref[...])

    block = pl.BlockSpec((1024,), lambda n: (n,))
    call = pl.pallas_call(
        kernel,
        grid=(elements // 1024,),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct((elements,), jnp.float32),
        compiler_params=triton.CompilerParams(num_warps=4),
    )
    return elements * repeats / _seconds(jax.jit(call), jnp.ones(elements))


def _seconds(f: Any, *args: Any, repeats: int = 10) -> float:
    out = jax.block_until_ready(f(*args))
    began = time.perf_counter()
    for _ in range(repeats):
        out = f(*args)
    jax.block_until_ready(out)
    return (time.perf_counter() - began) / repeats
