"""The names that `--help` lists: what is shipped, and what installed packages add. None of it is imported for that."""

from acf import domains, methods


def _listed(names: list[str]) -> str:
    return f"{', '.join(names)} or MODULE:NAME"


DOMAINS = _listed(domains.REGISTRY.names())
METHODS = _listed(methods.REGISTRY.names())
