"""True factors of an environment, from its `info` or by a function of it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float32

from acf.errors import AcfError
from acf.registry import load

Values = dict[str, float]


class ReadFactors:
    """Reads the same factors of every moment; their names are those of the first."""

    def __init__(self, asked: str | Callable[[Any], Any]):
        self.names: tuple[str, ...] = ()
        self.of_info = isinstance(asked, str) and asked.startswith("info:")
        if self.of_info:
            self._key = str(asked).removeprefix("info:")
        else:
            self._function = load("factors", asked) if isinstance(asked, str) else asked

    def __call__(self, env: Any, info: dict[str, Any]) -> Float32[np.ndarray, " K"]:
        values = self._of_info(info) if self.of_info else _named(self._function(env.unwrapped), "factor")
        self.names = self.names or tuple(values)
        if tuple(values) != self.names:
            raise AcfError(f"factors: expected {self.names} as in the first state, found {tuple(values)}")
        return np.array([*values.values()], np.float32)

    def _of_info(self, info: dict[str, Any]) -> Values:
        if self._key not in info:
            found = ", ".join(map(repr, info)) or "nothing"
            raise AcfError(
                f"factors: expected {self._key!r} in info after every reset and step, found {found}; have the "
                "environment put it there, or give a function of it: --factors MODULE:FUNCTION"
            )
        return _named(info[self._key], self._key)


def _named(value: Any, name: str) -> Values:
    """
    >>> _named({"x": 1, "y": 2.0}, "state"), _named([3, 4], "state"), _named(5, "state")
    ({'x': 1.0, 'y': 2.0}, {'state 0': 3.0, 'state 1': 4.0}, {'state': 5.0})
    """
    try:
        if isinstance(value, dict):
            return {str(key): float(number) for key, number in value.items()}
        numbers = np.asarray(value, np.float32)
    except (TypeError, ValueError):
        raise AcfError(f"factors: expected numbers, or a dictionary of numbers, found {value!r}") from None
    if numbers.ndim == 0:
        return {name: float(numbers)}
    return {f"{name} {k}": float(number) for k, number in enumerate(numbers.ravel())}
