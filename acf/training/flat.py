"""A member's parameters as one vector, so that the optimiser is one pass over memory and not one for every layer."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from acf.methods.base import Params

ALIGN = 32  # every leaf starts at a multiple of this, for wide loads


class Layout(NamedTuple):
    """How a pytree of float32 arrays lies in a vector."""

    size: int
    ravel: Callable[[Params], Float[Array, " n"]]
    unravel: Callable[[Float[Array, " n"]], Params]
    decayed: Bool[np.ndarray, " n"]
    """Where weight decay acts: on weights; not on biases, means, norm scales, variances and the logits of gates."""


def layout(shapes: Any) -> Layout:
    """Of a pytree of arrays, or of their shapes."""
    leaves, tree = jax.tree.flatten(shapes)
    sizes = [leaf.size + -leaf.size % ALIGN for leaf in leaves]
    starts = np.cumsum([0, *sizes]).tolist()

    def ravel(params: Params) -> Float[Array, " n"]:
        parts = zip(jax.tree.leaves(params), sizes, strict=True)
        return jnp.concatenate([jnp.pad(leaf.reshape(-1), (0, size - leaf.size)) for leaf, size in parts])

    def unravel(vector: Float[Array, " n"]) -> Params:
        parts = zip(leaves, starts, strict=False)
        return tree.unflatten([vector[start : start + leaf.size].reshape(leaf.shape) for leaf, start in parts])

    names = [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(shapes)]
    decayed = [not any(word in name for word in ("bias", "scale", "'b_", "logits", "'mean'")) for name in names]
    return Layout(starts[-1], ravel, unravel, np.repeat(decayed, sizes))
