"""Transitions: frames stored once, and `(i, action, j)` triples that point into them.

`collect` makes them from a domain, `Transitions.from_arrays` from your own arrays; `Transitions.open` reads a directory
and refuses one that lies. `Writer` makes such a directory block by block; `describe` says what is inside.
"""

from acf.data.checks import DataError, DataWarning
from acf.data.collect import collect
from acf.data.describe import describe
from acf.data.store import Writer
from acf.data.transitions import Transitions

__all__ = ["DataError", "DataWarning", "Transitions", "Writer", "collect", "describe"]
