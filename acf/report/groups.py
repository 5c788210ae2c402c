"""Runs that belong together: a bar of a comparison is one method with one setting on one domain, over all seeds."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acf.report.look import Look, Scored


@dataclass(frozen=True, eq=False)
class Group:
    domain: str
    label: str
    """The method, or the method and the run's name where one method has several settings."""
    looks: tuple[Scored, ...]

    @property
    def members(self) -> list[dict[str, Any]]:
        return [member for look in self.looks for member in look.members]

    def mean_std(self, score: str) -> tuple[float, float]:
        values = [member[score] for member in self.members]
        return float(np.mean(values)), float(np.std(values))

    def level(self, kind: str, score: str) -> float:
        """The oracle's or chance's score, mean over the runs."""
        return float(np.mean([look.scores[kind][score] for look in self.looks]))


def group(looks: Sequence[Look]) -> list[Group]:
    """Runs with the same domain, method and settings are seeds of one; those without true factors are left out."""
    alike: dict[tuple[str, str, str], list[Look]] = {}
    for look in looks:
        if look.has_factors:
            domain, method = look.scores["domain"] or look.name, look.scores["method"]
            settings = {name: value for name, value in look.settings.items() if name not in ("seeds", "data", "preset")}
            alike.setdefault((domain, method, json.dumps(settings, sort_keys=True)), []).append(look)
    per_method = [(domain, method) for domain, method, _ in alike]
    return [
        Group(
            domain,
            method if per_method.count((domain, method)) == 1 else f"{method} ({members[0].name})",
            tuple(members),
        )
        for (domain, method, _), members in alike.items()
    ]
