"""A walk on a 6x6 grid with walls around it, each cell seen as a random vector; what can be known, by enumeration.

With `slip` the action taken is replaced by a uniform one that often: then no inverse model can be sure.
"""

from dataclasses import dataclass
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

SIDE, WIDTH, ACTIONS = 6, 64, 5
MOVES = np.array([[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]])
CELLS = SIDE * SIDE


@dataclass(frozen=True)
class Grid:
    slip: float = 0.0

    def sample(self, key: PRNGKeyArray, n: int) -> tuple[Int[Array, " n"], Int[Array, " n"], Int[Array, " n"]]:
        cell_key, action_key, slip_key, other_key = jax.random.split(key, 4)
        cell = jax.random.randint(cell_key, (n,), 0, CELLS)
        action, other = (jax.random.randint(k, (n,), 0, ACTIONS) for k in (action_key, other_key))
        effective = jnp.where(jax.random.bernoulli(slip_key, self.slip, (n,)), other, action)
        return cell, action, jnp.asarray(NEXT)[cell, effective]

    @property
    def joint(self) -> Float[np.ndarray, "cells actions cells"]:
        """P(s, a, s'), cells and actions uniform."""
        effect = (1 - self.slip) * np.eye(ACTIONS) + self.slip / ACTIONS
        joint = np.zeros((CELLS, ACTIONS, CELLS))
        for cell, action, effective in product(range(CELLS), range(ACTIONS), range(ACTIONS)):
            joint[cell, action, NEXT[cell, effective]] += effect[action, effective] / (CELLS * ACTIONS)
        return joint

    @property
    def inverse(self) -> Float[np.ndarray, "cells actions cells"]:
        """P(a | s, s'), 0 where s' cannot follow s."""
        pairs = self.joint.sum(1, keepdims=True)
        return np.divide(self.joint, pairs, out=np.zeros_like(self.joint), where=pairs > 0)

    def best(self) -> tuple[float, float, float]:
        """Inverse accuracy, inverse cross-entropy and ratio cross-entropy of a model that knows all of this."""
        joint, inverse = self.joint, self.inverse
        accuracy = joint.sum(1)[inverse.max(1) > 0] @ inverse.max(1)[inverse.max(1) > 0]
        cross_entropy = -(joint[joint > 0] * np.log(inverse[joint > 0])).sum()
        real = joint.sum(1)
        fake = real.sum(1)[:, None] * real.sum(0)
        probability = np.divide(real, real + fake, out=np.zeros_like(real), where=real > 0)
        certain = real > 0
        ratio = -(real[certain] * np.log(probability[certain])).sum() - (fake * np.log1p(-probability)).sum()
        return float(accuracy), float(cross_entropy), float(ratio / 2)


def observe(cell: Int[Array, " n"], key: PRNGKeyArray) -> Float[Array, "n 64"]:
    looks = np.random.default_rng(0).normal(size=(CELLS, WIDTH))
    return jnp.asarray(looks, jnp.float32)[cell] + 0.01 * jax.random.normal(key, (len(cell), WIDTH))


def _next() -> Int[np.ndarray, "cells actions"]:
    y, x = np.divmod(np.arange(CELLS), SIDE)
    moved = np.stack([y, x], 1)[:, None] + MOVES
    return np.clip(moved, 0, SIDE - 1) @ np.array([SIDE, 1])


NEXT = _next()
