"""Learn, from pixels, the state variables an agent can control.

The names below are loaded on first use, so that `import acf` stays light.
"""

import importlib

__version__ = "0.1.0"

_HOME = {
    "Transitions": "acf.data",
    "collect": "acf.data",
    "evaluate_run": "acf.study",
    "load": "acf.training",
    "make": "acf.domains",
    "report_runs": "acf.study",
    "sweep": "acf.study.sweep",
    "train": "acf.training",
}
__all__ = ["Transitions", "__version__", "collect", "evaluate_run", "load", "make", "report_runs", "sweep", "train"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'acf' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
