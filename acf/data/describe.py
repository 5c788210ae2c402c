"""What a data set holds, as numbers a person can read: the content of `acf data DIR`."""

from typing import Any

import numpy as np
from jaxtyping import Bool

from acf.data.checks import rows_differ
from acf.data.transitions import Transitions


def describe(data: Transitions) -> dict[str, Any]:
    """Counts, size, hash and, per action, how often it occurred and what it changed. JSON-able.

    `changed` is the fraction of the action's transitions whose two frames differ in any pixel, `factors` the
    fraction in which each factor has another value; both are None where the action never occurs.
    """
    differ = rows_differ(data.frames, data.i, data.frames, data.j)
    arrays = (data.frames, data.i, data.action, data.j, data.episode, data.factors)
    return {
        "transitions": len(data),
        "frames": len(data.frames),
        "episodes": len(np.unique(data.episode)),
        "frame_shape": list(data.frame_shape),
        "noop": None if data.noop is None else data.action_names[data.noop],
        "actions": {name: _describe_action(data, data.action == k, differ) for k, name in enumerate(data.action_names)},
        "factors": list(data.factor_names),
        "controllable": list(data.controllable),
        "bytes": sum(array.nbytes for array in arrays if array is not None),
        "hash": data.hash,
        "source": data.source,
    }


def _describe_action(data: Transitions, mask: Bool[np.ndarray, " T"], differ: Bool[np.ndarray, " T"]) -> dict[str, Any]:
    count = int(mask.sum())
    out: dict[str, Any] = {"count": count, "changed": float(differ[mask].mean()) if count else None}
    if data.factors is not None:
        moved = data.factors[data.i[mask]] != data.factors[data.j[mask]]
        share = moved.mean(axis=0).tolist() if count else [None] * len(data.factor_names)
        out["factors"] = dict(zip(data.factor_names, share, strict=True))
    return out
