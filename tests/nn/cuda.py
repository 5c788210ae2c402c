"""What can be seen of a GPU kernel without a GPU."""

import jax


def lower_for_cuda(monkeypatch, function, *args) -> str:
    """The program as it would be handed to an H200's compiler."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")  # else the kernels are interpreted
    gpu = jax.sharding.AbstractDevice(device_kind="NVIDIA H200", num_cores=None, platform="gpu")
    with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((1,), ("x",), abstract_device=gpu)):
        return jax.jit(function).trace(*args).lower(lowering_platforms=("cuda",)).as_text()
