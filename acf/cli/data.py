"""`acf data`: what is in a data set."""

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Data:
    """Check and describe a data set: counts, actions, what each action changes, size, hash."""

    path: tyro.conf.Positional[Path]
    """Directory that `acf collect` or `Transitions.save` wrote."""

    def run(self) -> None:
        pass
