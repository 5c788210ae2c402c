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

import importlib
from typing import TYPE_CHECKING

from acf.errors import AcfError

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


def make(name: str) -> "Domain":
    """Build the domain called `name`.

    >>> make("taxi").factor_names
    ('taxi_x', 'taxi_y', 'passenger_x', 'passenger_y', 'in_taxi', 'goal')
    """
    if name not in DOMAINS:
        raise AcfError(f"unknown domain {name!r}: expected one of {', '.join(DOMAINS)}")
    module, cls = DOMAINS[name].split(":")
    return getattr(importlib.import_module(module), cls)()
