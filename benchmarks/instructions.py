"""What XLA makes of the kernels for an H200, without one: registers, spilled bytes and how much arithmetic.

In an environment of its own, with what JAX needs for CUDA 13 (none of it asks for a GPU):
pip install . jax==0.11.2 jax-cuda13-plugin==0.11.2 jax-cuda13-pjrt==0.11.2 nvidia-cuda-nvcc
python benchmarks/instructions.py
"""

import os
import re
import subprocess
import tempfile
from pathlib import Path

FOLDER = tempfile.TemporaryDirectory()
DUMP = f"--xla_dump_to={FOLDER.name} --xla_dump_emitter_re=.* --xla_gpu_dump_llvmir"
os.environ |= {
    "XLA_FLAGS": f"{DUMP} --xla_gpu_autotune_level=0",
    "JAX_PLATFORMS": "cpu",
    "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",  # else cuDNN is asked for
}

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.experimental import topologies  # noqa: E402

from acf.nn import down_pallas, pairwise_pallas  # noqa: E402
from acf.nn.blocks import ResidualWeights, Weights  # noqa: E402
from acf.terminal import console, table  # noqa: E402

H200 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  shared_memory_per_block: 49152 shared_memory_per_block_optin: 232448 shared_memory_per_core: 233472
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 4800000000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 149929347584
  cuda_compute_capability { major: 9 }
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 7 }
runtime_version { major: 13 }
device_description_str: "NVIDIA H200"
"""
ARITHMETIC = {
    "fma": r"\bfma\.",
    "mul, add": r"\b(?:mul|add|sub)(?:\.rn)?\.f32",
    "special": r"\b(?:tanh|rcp|rsqrt|ex2)\.",
}
MEMBERS = 5


def compile_kernels() -> None:
    """A step's kernels with the paper's network, on Taxi: of the encoder, and of the energies."""
    (device,) = topologies.get_topology_desc("1x1x1", "cuda", topology="1x1x1", target_config=H200).devices
    mesh = jax.sharding.Mesh([device], ("x",))
    here = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    jax.default_backend = lambda: "gpu"  # else the kernels are interpreted

    def shape(*size: int, dtype=jnp.float32):
        return jax.ShapeDtypeStruct((MEMBERS, *size), dtype, sharding=here)

    def block(i: int, o: int) -> Weights:
        residuals = ResidualWeights(shape(o), shape(o, o), shape(o), shape(o, o), shape(o))  # pyright: ignore[reportArgumentType]
        return Weights(shape(9 * i, o), shape(o), residuals)  # pyright: ignore[reportArgumentType]

    def encoder(frames, blocks):
        return jax.grad(lambda blocks: down_pallas.encode(frames, blocks, jnp.bfloat16).sum().astype(float))(blocks)

    def energies(*args):
        return jax.grad(lambda args: (pairwise_pallas.pairwise_sum(*args) ** 2).sum())(args)

    N, K, H = 128, 6, 256
    frames, blocks = shape(2 * N, 32, 32, 3, dtype=jnp.uint8), [block(5, 24), block(24, 48), block(48, 96)]
    with jax.set_mesh(mesh):
        jax.jit(jax.vmap(encoder)).lower(frames, blocks).compile()
        jax.jit(jax.vmap(energies)).lower(shape(K, H, N), shape(K, N), shape(K, H), shape(K, H, N)).compile()


def describe(code: str, file: Path) -> list[str]:
    """Registers, spilled bytes, and how much arithmetic of each kind."""
    import nvidia.cu13  # pyright: ignore[reportMissingImports]

    ptxas = Path(nvidia.cu13.__path__[0]) / "bin/ptxas"
    command = [ptxas, "-arch=sm_90a", "-v", file, "-o", os.devnull]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    numbers = re.search(r"(\d+) bytes spill stores[\s\S]*Used (\d+) registers", said)
    assert numbers, said
    return [numbers[2], numbers[1], *(str(len(re.findall(pattern, code))) for pattern in ARITHMETIC.values())]


def main() -> None:
    compile_kernels()
    rows = table("kernel", "registers", "spilled bytes", *ARITHMETIC, title="A thread's code, loops counted once")
    for file in sorted(Path(FOLDER.name).glob("*.ptx")):
        code = file.read_text()
        name = re.search(r"\.entry (\w+)", code)
        if name and re.search("kernel|pairwise_(forward|backward)", name[1]):
            rows.add_row(name[1], *describe(code, file))
    console.print(rows)


if __name__ == "__main__":
    main()
