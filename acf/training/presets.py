"""Named settings: `full` (the paper's weights), `paper` (its encoder too), `quick` (a CPU in minutes).

For ACF also `sparse` (with our sparsity term) and the ablations `no-fwd`, `no-inv`, `no-policy`, `no-ratio`, which are
`paper` with one weight at 0. A file is a preset too (`acf.training.preset_file`).
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from acf.errors import AcfError
from acf.methods.base import Encoders

# What a preset of ACF's own changes in `paper`.
_ACF_ONLY: dict[str, dict[str, float]] = {
    "sparse": {"sparsity": 5.0},
    "no-fwd": {"fwd": 0.0},
    "no-inv": {"inv": 0.0},
    "no-policy": {"policy": 0.0},
    "no-ratio": {"ratio": 0.0},
}
PRESETS = ("quick", "full", "paper", *_ACF_ONLY)


@dataclass(frozen=True)
class Preset:
    """What to collect and how to train. `hparams` overrides the method's defaults."""

    transitions: int = 150_000
    horizon: int = 10
    start: str = "balanced"
    encoder: Encoders = "residual"
    """Not `places`, as that of a `Spec`: preset files from before there was a choice do not say."""
    depth: int = 24
    hidden: int = 256
    batch_size: int = 128
    epochs: int = 200
    hparams: dict[str, float] = field(default_factory=dict)


# The paper's hyperparameters; what is not here (ε, AdamW's decay) the paper does not give.
_ACF = {
    "doorkey": {"lr": 4.0966e-4, "fwd": 97.815, "ratio": 25.623, "inv": 22.094, "policy": 1.610},
    "taxi": {"lr": 2.9126e-4, "fwd": 31.444, "ratio": 5.018, "inv": 1.0, "policy": 9.916},
    "grid2d": {"lr": 2.27497e-4, "fwd": 95.395, "ratio": 48.560, "inv": 1.0, "policy": 1.332},
    "fourrooms": {"lr": 3.6392e-4, "fwd": 40.736, "ratio": 16.963, "inv": 97.365, "policy": 22.764},
}
# The paper's reconstruction weighs 9.26e-8 (DoorKey), 4.53e-10 (Taxi) and 3.50e-4 (FourRooms) times an error below 1:
# a hundred-thousandth of the loss and less, below what bfloat16 resolves. At 0 the decoder is left out.
_GCL = {
    "doorkey": {"lr": 2.0363e-4, "classifier": 60.444, "recons": 0.0},
    "taxi": {"lr": 4.4530e-4, "classifier": 27.293, "recons": 0.0},
    "grid2d": {"lr": 1.6031e-4, "classifier": 90.737, "recons": 0.193},
    "fourrooms": {"lr": 2.7661e-5, "classifier": 51.030, "recons": 0.0},
}
_DMS = {
    "doorkey": {
        "lr": 3.5332e-4,
        "elbo": 4.737,
        "action_sparsity": 3.536,
        "state_sparsity": 2.557,
        "gumbel_temp": 7.417,
        "l2": 0.0015,
    },
    "taxi": {
        "lr": 9.6832e-5,
        "elbo": 67.349,
        "action_sparsity": 36.881,
        "state_sparsity": 8.024,
        "gumbel_temp": 1.0,
        "l2": 0.0023,
    },
    "grid2d": {
        "lr": 7.5007e-5,
        "elbo": 42.948,
        "action_sparsity": 91.982,
        "state_sparsity": 1.0,
        "gumbel_temp": 6.360,
        "l2": 0.2805,
    },
    "fourrooms": {
        "lr": 4.0218e-4,
        "elbo": 5.225,
        "action_sparsity": 9.878,
        "state_sparsity": 6.091,
        "gumbel_temp": 3.465,
        "l2": 0.0060,
    },
}
_MSA = {
    "doorkey": {"lr": 4.5536e-4, "inverse": 6.009, "ratio": 8.519, "smoothness": 2.092},
    "taxi": {"lr": 3.9622e-4, "inverse": 66.916, "ratio": 42.518, "smoothness": 8.234},
    "grid2d": {"lr": 4.2654e-4, "inverse": 78.480, "ratio": 1.0, "smoothness": 84.905},
    "fourrooms": {"lr": 1.5854e-4, "inverse": 9.472, "ratio": 0.311, "smoothness": 9.691},
}
_PAPER: dict[str, dict[str, dict[str, float]]] = {
    "acf": _ACF,
    "gcl": _GCL,
    "dms": _DMS,
    "msa": _MSA,
    # The paper gives none: ACF's, of the terms that are left.
    "factored_markov": {domain: {name: of[name] for name in ("lr", "fwd", "inv")} for domain, of in _ACF.items()},
}
_EPOCHS = {"doorkey": 100}  # 200 for the others
FULL_EPOCHS = 50  # with the encoder over places 25 were enough to pass the paper

# About 3,600 steps of a small network: some seeds need 2,500 to lock on.
QUICK: dict[str, Any] = {"transitions": 40_000, "encoder": "places", "depth": 8, "hidden": 64, "epochs": 13}
# A decoder makes a sample dearer: fewer epochs of smaller batches, about as many steps.
_QUICK_DECODER = {"epochs": 6, "batch_size": 64}
# Given Grid2D's true x and y, a decoder with 64 hidden units takes 600 steps for what one with 256 does in 400.
_QUICK_DMS = _QUICK_DECODER | {"hidden": 256}
# Latents take 2,000 steps to form, and are priced then; at the speed of the networks no edge could close in the rest.
_QUICK_HPARAMS: dict[str, dict[str, float]] = {"dms": {"frozen_epochs": 4.0, "speed": 5.0}}


# 4,000 steps of a small network, a batch being six episodes; the GPU takes larger batches and networks.
LATTICE: dict[str, dict[str, Any]] = {
    "quick": {"transitions": 60_000, "horizon": 30, "hidden": 96, "encoder": "places", "batch_size": 96, "epochs": 8},
    "full": {"horizon": 30, "hidden": 192, "encoder": "places", "batch_size": 256, "epochs": 16},
}


def get_preset(name: str, method: str, domain: str | None) -> Preset:
    """The preset of a method for a domain; a domain the paper does not have gets the method's defaults.

    A name that ends in .toml, or that is a file, is read as one.
    """
    if name not in PRESETS:
        if name.endswith(".toml") or Path(name).is_file():
            from acf.training.preset_file import read_preset  # which makes presets

            return read_preset(name, method)
        raise AcfError(f"unknown preset {name!r}: expected one of {', '.join(PRESETS)}, or a .toml file")
    if name in _ACF_ONLY and method != "acf":
        raise AcfError(f"preset {name!r} changes a term that only acf has: expected quick, full or paper for {method}")
    hparams = _PAPER.get(method, {}).get(domain or "", {})
    paper = Preset(epochs=_EPOCHS.get(domain or "", Preset.epochs), hparams=hparams)
    if name == "full":
        return replace(paper, encoder="places", epochs=FULL_EPOCHS)
    if method == "lattice":
        return _lattice(name, domain)
    if name == "quick":
        quick = hparams | {"lr": 1e-3} | _QUICK_HPARAMS.get(method, {})
        decoder = method == "gcl" and quick.get("recons") != 0
        sizes = _QUICK_DMS if method == "dms" else _QUICK_DECODER if decoder else {}
        return replace(paper, **QUICK | sizes, hparams=quick)
    return replace(paper, hparams=hparams | _ACF_ONLY.get(name, {}))


def presets_of(method: str) -> tuple[str, ...]:
    """Those with a name."""
    if method == "lattice":
        return tuple(LATTICE)
    return tuple(name for name in PRESETS if method == "acf" or name not in _ACF_ONLY)


def _lattice(name: str, domain: str | None) -> Preset:
    if name not in LATTICE:
        raise AcfError(f"preset {name!r} is not for lattice: expected {' or '.join(LATTICE)}")
    return Preset(**LATTICE[name], start="balanced+facing" if domain == "doorkey" else Preset.start)


def default_method(continuous: bool, preset: str | None) -> str:
    """`lattice`, in worlds that move from level to level; ACF in others, and with a preset of its own."""
    return "acf" if continuous or (preset is not None and preset not in LATTICE) else "lattice"


def default_preset() -> str:
    """`full` where there is a GPU, `quick` where there is none."""
    import jax

    return "full" if jax.default_backend() == "gpu" else "quick"
