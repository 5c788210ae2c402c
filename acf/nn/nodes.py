"""Nodes: the few values of `z'_k` at which an energy is computed, to be interpolated at all others.

For a transition i, the energy `E_k(·, a^i, z^i)` is a smooth function of one number. A polynomial through its values at
Chebyshev's points of the batch's range agrees with it to rounding if there are enough of them, and how many are enough
follows from how steep the network is, `|w| r` with r half the range: SiLU's nearest poles are at ±iπ, so the error
falls by the factor `y + √(1 + y²)`, `y = π / (|w| r)`, with each node. Hidden units are then computed for N times so
many nodes instead of N² pairs; what is left of N² is a product without them.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

STEP = 8  # nodes come in eights, for loops that take several at once
LEAST_RADIUS = 1e-2  # where latents have collapsed to a point; in a smaller range rounding would merge its nodes


class Nodes(NamedTuple):
    """Of one factor. There is room for as many as there are numbers; the first `used` are in use."""

    t: Float[Array, " T"]
    used: Int[Array, ""]
    weights: Float[Array, "T M"]
    """A function's value at `v[j]` is the sum over its values at the nodes, with these weights. 0 where not in use."""


def choose(v: Float[Array, " M"], w: Float[Array, " H"]) -> Nodes:
    """Nodes for functions `Σ_h c silu(u + w v)` of v in the range of `v`, right to rounding in float32.

    Where it would take as many as there are numbers in `v`, they are those numbers: nothing is interpolated then.
    """
    M = len(v)
    T = M + -M % STEP
    lowest, highest = v.min(), v.max()
    radius = jnp.maximum((highest - lowest) / 2, LEAST_RADIUS)
    count = enough(jnp.abs(w).max() * radius, T)
    angle = jnp.pi * (jnp.arange(T) + 0.5) / count
    t = (lowest + highest) / 2 + radius * jnp.cos(angle)
    weights = _barycentric(v, t, jnp.where(jnp.arange(T) < count, jnp.sin(angle), 0.0))
    exact = count == T
    return Nodes(
        jnp.where(exact, jnp.pad(v, (0, T - M)), t), count, jnp.where(exact, jnp.eye(T, M, dtype=v.dtype), weights)
    )


def enough(steepness: Float[Array, ""], room: int) -> Int[Array, ""]:
    """How many nodes; all there is room for where that is not enough, or the network has diverged.

    A steep network's error falls by `exp(-π / steepness)` a node, so 5.5 of them for each unit of steepness bring it to
    `exp(-5.5 π) = 3e-8`, below float32's rounding. The test has the largest there is, of SiLU and of its slope.
    """
    nodes = jnp.where(steepness < room, 5.5 * steepness + 5, room)
    return jnp.minimum(jnp.ceil(nodes / STEP) * STEP, room).astype(jnp.int32)


def _barycentric(v: Float[Array, " M"], t: Float[Array, " T"], sines: Float[Array, " T"]) -> Float[Array, "T M"]:
    """Lagrange's polynomials at v, in the barycentric form, which is stable whatever the number of nodes."""
    signs = 1.0 - 2.0 * (jnp.arange(len(t)) % 2)
    distance = v - t[:, None]
    # At a node, its own part outweighs all others: its weight is 1.
    parts = (signs * sines)[:, None] / jnp.where(distance == 0, 1e-30, distance)
    return parts / parts.sum(0)
