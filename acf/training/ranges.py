"""Where `acf sweep` looks for each method's hyperparameters.

The paper says that it searched at random and gives the best values, not the ranges. These hold all its values: weights
of 1 to 100, where several of its bests lie exactly at 1, and learning rates around 3e-4. What the paper does not tune
(ε, the guard, our sparsity) is not tuned here either, unless a range is given for it.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import NamedTuple

from acf.errors import AcfError
from acf.methods.base import Method


class Range(NamedTuple):
    low: float
    high: float

    @property
    def log(self) -> bool:
        """Log-uniform: all these numbers are scales, and the paper's bests spread over decades. Uniform from 0 on."""
        return self.low > 0


_LR, _WEIGHT = Range(1e-5, 1e-3), Range(1.0, 100.0)
RANGES: dict[str, dict[str, Range]] = {
    "acf": {"lr": _LR, "fwd": _WEIGHT, "ratio": _WEIGHT, "inv": _WEIGHT, "policy": _WEIGHT},
    "gcl": {"lr": _LR, "classifier": _WEIGHT, "recons": Range(1e-10, 1.0)},
    "dms": {
        "lr": _LR,
        "elbo": _WEIGHT,
        "action_sparsity": _WEIGHT,
        "state_sparsity": _WEIGHT,
        "gumbel_temp": Range(1.0, 10.0),
        "l2": Range(1e-3, 1.0),
    },
    "msa": {"lr": _LR, "inverse": _WEIGHT, "ratio": Range(0.1, 100.0), "smoothness": _WEIGHT},
    "lattice": {
        "lr": Range(3e-4, 3e-3),
        "batch": Range(0.3, 3.0),
        "steps": Range(0.02, 0.2),
        "owner": Range(0.1, 1.0),
        "attention": Range(1e-4, 1e-2),
    },
    "factored_markov": {"lr": _LR, "fwd": _WEIGHT, "inv": _WEIGHT},
}


def get_ranges(
    method: Method, preset: Mapping[str, float], own: Mapping[str, tuple[float, float]] | None = None
) -> dict[str, Range]:
    """The method's ranges with `own` in place of those of the same name, or beside them; every one checked.

    A term that the preset switches off (`no-fwd`) stays off.
    """
    known = [field.name for field in dataclasses.fields(method.hparams)]
    found = {name: Range(*map(float, ends)) for name, ends in (own or {}).items()}
    for name, (low, high) in found.items():
        if name not in known:
            raise AcfError(f"range of {name!r}: {method.name} has no such hyperparameter, only {', '.join(known)}")
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise AcfError(f"range of {name}: expected two finite numbers, the lower one first, got {low:g} {high:g}")
        if low < 0:
            raise AcfError(f"range of {name}: expected 0 or more, since all settings are scales, got {low:g}")
        if name == "lr" and not 0 < low < high <= 1:
            raise AcfError(f"range of lr: expected learning rates above 0 and up to 1, got {low:g} to {high:g}")
    usual = {name: range for name, range in RANGES.get(method.name, {}).items() if preset.get(name) != 0}
    ranges = usual | found
    if not ranges:
        raise AcfError(f"there are no ranges for {method.name}: give some with --ranges NAME LOW HIGH ...")
    return ranges
