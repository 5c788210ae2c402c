"""Shapes and types that `acf.nn` and `acf.methods` declare are checked while the tests run, and only then."""

import atexit
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from flax import nnx
from jax.experimental.compilation_cache.compilation_cache import reset_cache

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


@pytest.fixture(scope="session", autouse=True)
def compilation_cache(tmp_path_factory):
    """Programs are compiled once a session, for this process and those it starts."""
    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.getbasetemp() / "jax-cache"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
    reset_cache()  # what was compiled before this had none


@pytest.fixture(scope="session")
def lamp(tmp_path_factory):
    """600 transitions on disk, 540 of them in the training part: 54 of 60 episodes."""
    from acf.data import collect

    path = tmp_path_factory.mktemp("data") / "lamp"
    collect("lamp", 600, out=path)
    return path


@pytest.fixture
def command(capsys, monkeypatch):
    """Runs `acf ARGS` here; returns its exit code, and what it wrote to stdout and to stderr."""
    from acf.cli import main
    from acf.terminal import console

    monkeypatch.setattr(console, "width", 120)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # which the command replaces

    def command(*args):
        code = 0
        try:
            main([*map(str, args)])
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return command


collect_ignore = ["conftest.py"]  # of no use to doctest, which would find its name taken by the folders' own ones
