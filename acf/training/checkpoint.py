"""Arrays to and from `.safetensors` by the path of their leaf: no pickle, atomic, checked when read."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import safetensors
import safetensors.numpy

from acf.errors import AcfError
from acf.files import write_atomic


def save(path: Path, tree: Any, about: dict[str, Any]) -> None:
    """Write the arrays of `tree` and the JSON-able `about`; after a failure the old file is still whole."""
    arrays = {name: np.asarray(leaf, order="C") for name, leaf in _named(jax.device_get(tree)).items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    for stale in path.parent.glob(f".{path.name}.*.tmp"):
        stale.unlink()  # of a killed process: a run has one writer at a time
    write_atomic(path, safetensors.numpy.save(arrays, metadata={"acf": json.dumps(about)}))


def load(path: Path, like: Any) -> tuple[Any, dict[str, Any]]:
    """The arrays in the shape of the pytree `like` (arrays or their shapes), and `about`."""
    try:
        with safetensors.safe_open(path, framework="np") as file:
            about = json.loads((file.metadata() or {})["acf"])
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except FileNotFoundError:
        raise AcfError(f"{path} is missing") from None
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        raise AcfError(f"{path} is damaged ({error}); remove it and run the command that trains again") from None
    for name, leaf in _named(like).items():
        if name not in found or found[name].shape != leaf.shape or found[name].dtype != leaf.dtype:
            got = "nothing" if name not in found else f"{found[name].dtype}{list(found[name].shape)}"
            raise AcfError(f"{path}: expected {name} as {leaf.dtype}{list(leaf.shape)}, found {got}")
    leaves = [found[name] for name in _named(like)]
    return jax.tree.unflatten(jax.tree.structure(like), leaves), about


def about(path: Path) -> dict[str, Any]:
    """What `save` wrote beside the arrays."""
    return load(path, {})[1]


def _named(tree: Any) -> dict[str, Any]:
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in jax.tree.leaves_with_path(tree)
    }
