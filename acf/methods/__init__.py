"""The methods, one file each, under one contract (`acf.methods.base`)."""

import importlib
from typing import TYPE_CHECKING

from acf.errors import AcfError

if TYPE_CHECKING:
    from acf.methods.base import Method

# A new method is a file in this folder and a line here.
METHODS = {
    "lattice": "acf.methods.lattice",
    "acf": "acf.methods.acf",
    "gcl": "acf.methods.gcl",
    "dms": "acf.methods.dms",
    "msa": "acf.methods.msa",
    "factored_markov": "acf.methods.factored_markov",
}


def get(name: str) -> "Method":
    if name not in METHODS:
        raise AcfError(f"unknown method {name!r}: expected one of {', '.join(METHODS)}")
    return importlib.import_module(METHODS[name]).METHOD
