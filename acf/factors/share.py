"""A share of cases, and how sure it is."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

Z95 = 1.96


@dataclass(frozen=True)
class Share:
    """Of cases, with its 95 % interval. NaN, between 0 and 1, where there are none.

    >>> Share.of(1.0, 9)
    Share(value=1.0, low=0.70..., high=1.0)
    """

    value: float
    low: float
    high: float

    @staticmethod
    def of(value: float, cases: float) -> "Share":
        """Wilson's interval, which is right near 0 and 1 too."""
        if not cases or not np.isfinite(value):
            return Share(float("nan"), 0.0, 1.0)
        n, z2 = cases, Z95**2
        middle = (value + z2 / (2 * n)) / (1 + z2 / n)
        half = Z95 * np.sqrt(value * (1 - value) / n + z2 / (4 * n * n)) / (1 + z2 / n)
        return Share(float(value), max(0.0, float(middle - half)), min(1.0, float(middle + half)))

    @staticmethod
    def of_means(means: Float[np.ndarray, " g"], counts: Int[np.ndarray, " g"]) -> "Share":
        """The mean of groups that count alike, of `counts` cases each: as sure as the smallest ones let it be."""
        if not len(means):
            return Share.of(float("nan"), 0)
        return Share.of(float(means.mean()), float(len(means) ** 2 / (1 / counts).sum()))

    def to_json(self) -> dict[str, float | None]:
        """JSON has no NaN."""
        return {"value": None if np.isnan(self.value) else self.value, "low": self.low, "high": self.high}

    @staticmethod
    def from_json(found: dict[str, Any]) -> "Share":
        value = found["value"]
        return Share(float("nan") if value is None else float(value), float(found["low"]), float(found["high"]))
