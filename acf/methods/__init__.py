"""The methods, one file each, under one contract (`acf.methods.base`)."""

from typing import TYPE_CHECKING

from acf.errors import AcfError
from acf.registry import Registry

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


REGISTRY = Registry("method", "acf.methods", METHODS, attribute="METHOD")


def get(method: "str | Method") -> "Method":
    """The method of this name (shipped, of an installed package, or MODULE:NAME), or the method itself."""
    from acf.methods.base import Method

    found = REGISTRY.find(method) if isinstance(method, str) else method
    if not isinstance(found, Method):
        raise AcfError(f"method {method!r}: expected an acf.methods.base.Method, found {type(found).__name__}")
    return found


def name_of(method: "str | Method") -> str:
    """What a run says of its method, so that it is found again: the name it is known by, or MODULE:NAME."""
    found = get(method)
    if isinstance(method, str):
        return REGISTRY.short(method)
    homes = (getattr(part, "__module__", "") for part in (found.loss, found.model, found.hparams))
    return REGISTRY.name_of(found, homes)
