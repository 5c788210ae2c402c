"""The methods, one file each, under one contract (`acf.methods.base`)."""

import importlib
from typing import TYPE_CHECKING

from acf.errors import AcfError

if TYPE_CHECKING:
    from acf.methods.base import Method

# A new method is a file in this folder and a line here.
METHODS = {
    "acf": "acf.methods.acf",
}


def get(name: str) -> "Method":
    if name not in METHODS:
        raise AcfError(f"unknown method {name!r}: expected one of {', '.join(METHODS)}")
    return importlib.import_module(METHODS[name]).METHOD
