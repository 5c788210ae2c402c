"""What can be seen of a GPU kernel without a GPU."""

import jax
import pytest


def lower_for_cuda(monkeypatch, function, *args) -> str:
    """The program as it would be handed to the GPU's compiler."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")  # else the kernels are interpreted
    try:
        return jax.jit(function).trace(*args).lower(lowering_platforms=("cuda",)).as_text()
    except RuntimeError as error:
        if "No supported GPU devices found" not in str(error):
            raise
        pytest.skip("this JAX lowers GPU kernels only where there is a GPU")
