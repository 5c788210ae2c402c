"""Worlds with known factors, in pure JAX.

| name | what | factors |
|---|---|---|
| `lamp` | a lamp with two switches, the smallest example | power, colour (position, shape) |
| `grid2d` | a point in the unit square | x, y |
| `taxi` | 5x5 Taxi with one passenger | taxi, passenger, in_taxi (goal) |
| `fourrooms` | MiniGrid FourRooms, 16x16 | agent, dir (goal) |
| `doorkey` | MiniGrid DoorKey, 8x8 | agent, dir, key_held, door_open (door position) |

`make(name)` builds one; importing this package does not import JAX.
"""

from dataclasses import is_dataclass
from typing import TYPE_CHECKING

from acf.errors import AcfError
from acf.registry import Registry

if TYPE_CHECKING:
    from acf.domains.base import Domain

# A new domain is a file in this folder and a line here.
DOMAINS = {
    "lamp": "acf.domains.lamp:Lamp",
    "grid2d": "acf.domains.grid2d:Grid2D",
    "taxi": "acf.domains.taxi:Taxi",
    "fourrooms": "acf.domains.fourrooms:FourRooms",
    "doorkey": "acf.domains.doorkey:DoorKey",
}


REGISTRY = Registry("domain", "acf.domains", DOMAINS)


def make(domain: "str | Domain | type[Domain]") -> "Domain":
    """Build the domain of this name: shipped, of an installed package, or MODULE:NAME. A domain itself is kept.

    >>> make("taxi").factor_names
    ('taxi_x', 'taxi_y', 'passenger_x', 'passenger_y', 'in_taxi', 'goal')
    """
    from acf.domains.base import Domain

    found = REGISTRY.find(domain) if isinstance(domain, str) else domain
    made = _default(found) if isinstance(found, type) and issubclass(found, Domain) else found
    if not isinstance(made, Domain):
        what = made.__name__ if isinstance(made, type) else type(made).__name__
        raise AcfError(f"domain {domain!r}: expected an acf.domains.base.Domain, found {what}")
    if not is_dataclass(made):
        raise AcfError(f"domain {made.name}: expected a dataclass, put @dataclass(frozen=True) above its class")
    return made


def name_of(domain: "str | Domain | type[Domain]") -> str:
    """What another process can `make` it by: the name it is known by, or MODULE:NAME."""
    made = make(domain)
    if isinstance(domain, str):
        return REGISTRY.short(domain)
    try:
        is_default = made == _default(type(made))
    except AcfError:
        is_default = False
    return REGISTRY.name_of(type(made) if is_default else made, [type(made).__module__])


def _default(kind: "type[Domain]") -> "Domain":
    try:
        return kind()
    except TypeError as error:  # it has an option without a default, or lacks a method
        raise AcfError(f"domain {kind.__name__} cannot be made ({error}); name an instance: DIAL = Dial(...)") from None
