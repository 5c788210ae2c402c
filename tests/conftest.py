"""Shapes and types that `acf.nn` and `acf.methods` declare are checked while the tests run, and only then."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from flax import nnx

# A setting is a float to its user, but an array, a tracer or one of JAX's placeholders inside a program: not checked.
_CHECKER = "beartype.beartype(conf=beartype.BeartypeConf(hint_overrides=beartype.FrozenDict({float: object})))"

# Compiled programs are kept as for a user, but not among the user's own; processes that tests start see this too.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="acf-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

# Before anything imports them.
jaxtyping.install_import_hook(["acf.nn", "acf.methods"], _CHECKER)

Model = TypeVar("Model", bound=nnx.Module)


@pytest.fixture(scope="session")
def with_weights():
    """`with_weights(make, seed)`: a model as after training, with no bias at 0 and no norm's scale at 1.

    The weights are NumPy's: to compile the initialisers takes longer than most of the tests.
    """

    def build(make: Callable[[], Model], seed: int = 0) -> Model:
        graph, shapes = nnx.split(nnx.eval_shape(make))
        rng = np.random.default_rng(seed)

        def fill(path: tuple[Any, ...], leaf: jax.ShapeDtypeStruct) -> jax.Array:
            noise = rng.normal(size=leaf.shape)
            if len(leaf.shape) == 1:
                centre = float("scale" in jax.tree_util.keystr(path))
                return jnp.asarray(centre + 0.1 * noise, leaf.dtype)
            return jnp.asarray(noise / np.sqrt(leaf.shape[-2]), leaf.dtype)

        return nnx.merge(graph, jax.tree_util.tree_map_with_path(fill, shapes))

    return build


collect_ignore = ["conftest.py"]  # of no use to doctest, which would find its name taken by the folders' own ones
