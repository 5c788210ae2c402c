"""What is found by name: what is shipped, what installed packages add (entry points), and anything as MODULE:NAME.

Nothing is imported before it is asked for: a list of names imports none of what it names.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from acf.errors import AcfError


@dataclass(frozen=True)
class Registry:
    what: str
    """In words: `method`."""
    group: str
    """Of the entry points: `acf.methods`."""
    shipped: dict[str, str]
    """MODULE:NAME of each name, or the module alone where `attribute` is meant."""
    attribute: str = ""

    def names(self) -> list[str]:
        return list(self._places())

    def find(self, name: str) -> Any:
        """The object of this name."""
        place = self._places().get(name, name)
        if not _is_place(place):
            known = ", ".join(self.names())
            raise AcfError(f"unknown {self.what} {name!r}: expected one of {known}, or MODULE:NAME")
        return load(self.what, name, place)

    def name_of(self, thing: Any, homes: Iterable[str]) -> str:
        """What another process finds this object by: it must be a name in one of the modules `homes`."""
        for home in homes:
            module = sys.modules.get(home)
            for attribute, value in vars(module).items() if module and home != "__main__" else ():
                if value is thing:
                    return self.short(f"{home}:{attribute}")
        raise AcfError(
            f"this {self.what} cannot be found again by another process: it is made inside a function, in a notebook "
            "or in the program that runs. Put it into a module of its own and import it from there."
        )

    def short(self, name: str) -> str:
        """The name that the object at this MODULE:NAME is known by, where it has one."""
        return next((known for known, place in self._places().items() if place == name), name)

    def _places(self) -> dict[str, str]:
        tail = f":{self.attribute}"
        places = {name: place if ":" in place else place + tail for name, place in self.shipped.items()}
        for point in entry_points(group=self.group):
            places.setdefault(point.name, f"{point.module}:{point.attr}")
        return places


def load(what: str, name: str, place: str | None = None) -> Any:
    """The object at `place`, MODULE:NAME, which a person calls `name`."""
    place = name if place is None else place
    if not _is_place(place):
        raise AcfError(f"{what}: expected MODULE:NAME, found {name!r}")
    module, _, attribute = place.partition(":")
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there, and needs one that is not
        raise AcfError(
            f"{what} {name!r}: there is no module {module!r}. Run where it lies, put its folder on PYTHONPATH "
            "or install its package."
        ) from None
    if not hasattr(found, attribute):
        raise AcfError(f"{what} {name!r}: the module {module} has no {attribute!r}")
    return getattr(found, attribute)


def _is_place(name: str) -> bool:
    module, colon, attribute = name.partition(":")
    return bool(colon and attribute) and all(part.isidentifier() for part in module.split("."))


def own_part(name: str) -> str:
    """Of a name, what can be part of a file's.

    >>> own_part("mydomain:Dial"), own_part("taxi")
    ('Dial', 'taxi')
    """
    return name.rpartition(":")[2]
