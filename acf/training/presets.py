"""Named settings: `paper` (the tables of the paper), `sparse` (with our sparsity term), `quick` (a CPU in minutes)."""

from dataclasses import dataclass, field, replace
from typing import Any

from acf.errors import AcfError

PRESETS = ("quick", "paper", "sparse")


@dataclass(frozen=True)
class Preset:
    """What to collect and how to train. `hparams` overrides the method's defaults."""

    transitions: int = 150_000
    horizon: int = 10
    start: str = "balanced"
    depth: int = 24
    hidden: int = 256
    batch_size: int = 128
    epochs: int = 200
    hparams: dict[str, float] = field(default_factory=dict)


# The paper's hyperparameters; what is not here (ε, AdamW's decay) the paper does not give.
_PAPER: dict[str, dict[str, dict[str, Any]]] = {
    "acf": {
        "doorkey": {
            "epochs": 100,
            "hparams": {"lr": 4.0966e-4, "fwd": 97.815, "ratio": 25.623, "inv": 22.094, "policy": 1.610},
        },
        "taxi": {"hparams": {"lr": 2.9126e-4, "fwd": 31.444, "ratio": 5.018, "inv": 1.0, "policy": 9.916}},
        "grid2d": {"hparams": {"lr": 2.27497e-4, "fwd": 95.395, "ratio": 48.560, "inv": 1.0, "policy": 1.332}},
        "fourrooms": {"hparams": {"lr": 3.6392e-4, "fwd": 40.736, "ratio": 16.963, "inv": 97.365, "policy": 22.764}},
    },
}


# About 3,900 steps of a small network: some seeds need 2,500 to lock on.
QUICK: dict[str, Any] = {"transitions": 40_000, "depth": 8, "hidden": 64, "epochs": 14}


def get_preset(name: str, method: str, domain: str | None) -> Preset:
    """The preset of a method for a domain; a domain the paper does not have gets the method's defaults."""
    if name not in PRESETS:
        raise AcfError(f"unknown preset {name!r}: expected one of {', '.join(PRESETS)}")
    paper = Preset(**_PAPER.get(method, {}).get(domain or "", {}))
    if name == "quick":
        return replace(paper, **QUICK, hparams=paper.hparams | {"lr": 1e-3})
    if name == "sparse":
        return replace(paper, hparams=paper.hparams | {"sparsity": 5.0})
    return paper


def default_preset() -> str:
    """`paper` where there is a GPU, `quick` where there is none."""
    import jax

    return "paper" if jax.default_backend() == "gpu" else "quick"
