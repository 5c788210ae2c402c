"""Looks at a population between chunks and says, once a member, what a person would want to know."""

import math

from acf.training.config import Config
from acf.training.loggers import Terms

NEAR = 0.99  # L_fwd above this share of log N counts as stuck


class Watch:
    def __init__(self, config: Config, steps: int):
        self._config = config
        self._patience = max(steps // 10, 200)
        self._log_n = math.log(config.batch_size)
        self._stuck_since: dict[int, int] = {}
        self._said: set[tuple[int, str]] = set()

    def look(self, step: int, terms: Terms, diverged_at: list[int]) -> list[str]:
        return self._diverged(diverged_at) + self._collapsed(step, terms, diverged_at)

    def _diverged(self, diverged_at: list[int]) -> list[str]:
        return [
            f"{self._name(n)} diverged at step {at}: its loss or its gradient is no longer finite. It is stopped with "
            "its last finite weights; the others go on. A lower learning rate may help."
            for n, at in enumerate(diverged_at)
            if at >= 0 and self._first_time(n, "diverged")
        ]

    def _collapsed(self, step: int, terms: Terms, diverged_at: list[int]) -> list[str]:
        """InfoNCE at log N: the energies cannot tell a transition's own next frame from any other."""
        found = []
        for n, value in enumerate(terms.get("fwd", [])):
            if value < NEAR * self._log_n or diverged_at[n] >= 0:
                self._stuck_since.pop(n, None)
                continue
            since = self._stuck_since.setdefault(n, step)
            if step - since >= self._patience and self._first_time(n, "collapsed"):
                found.append(
                    f"{self._name(n)} has collapsed: L_fwd is at log N = {self._log_n:.2f} since step {since}, its "
                    "latents do not tell frames apart. Try another seed, a lower learning rate or less latent noise."
                )
        return found

    def _name(self, n: int) -> str:
        return f"member {n} (seed {self._config.members[n].seed})"

    def _first_time(self, n: int, what: str) -> bool:
        new = (n, what) not in self._said
        self._said.add((n, what))
        return new
