"""Which implementation computes what is worth a kernel of its own: plain XLA, or Pallas on a GPU.

Nothing here imports Pallas, and nothing else does before a GPU is there to use it, or it is asked for.
"""

from typing import Literal

import jax

Kernel = Literal["auto", "xla", "pallas"]


def chosen(kernel: Kernel) -> Literal["xla", "pallas"]:
    """`auto` is Pallas where there is an NVIDIA GPU that can run it."""
    if kernel != "auto":
        return kernel
    return "pallas" if nvidia_capability() >= 8 else "xla"


def nvidia_capability() -> float:
    """Of this host's GPU, 9.0 for an H200; 0 where there is none of NVIDIA's."""
    capability = getattr(jax.local_devices()[0], "compute_capability", "")
    return float(capability) if capability[:1].isdigit() else 0.0  # AMD's are names: "gfx942"
