"""GPUs to compile for without having one: cores, threads and memory as NVIDIA's manuals give them. Cache and clock, on
which only XLA's guesses of speed hang, are the H200's.

Import it before JAX. It wants an environment of its own, with what JAX needs for CUDA 13 (none of it asks for a GPU):
pip install . jax==0.11.2 jax-cuda13-plugin==0.11.2 jax-cuda13-pjrt==0.11.2 nvidia-cuda-nvcc
"""

import os
from typing import NamedTuple

os.environ |= {
    "JAX_PLATFORMS": "cpu",
    "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",  # else cuDNN is asked for
    "XLA_FLAGS": os.environ.get("XLA_FLAGS", "") + " --xla_gpu_autotune_level=0",  # else XLA would try things out
}

import jax
from jax.experimental import topologies


class Target(NamedTuple):
    kind: str  # as JAX knows it
    capability: tuple[int, int]
    cores: int
    threads: int  # a core
    shared_kib: int  # of memory that a core's programs share; one program gets a KiB less (of the T4's 64, all)
    memory_gib: int
    gb_per_s: int


TARGETS = {
    "T4": Target("Tesla T4", (7, 5), 40, 1024, 65, 16, 320),
    "A100": Target("NVIDIA A100", (8, 0), 108, 2048, 164, 40, 1555),
    "A10, RTX 3090": Target("NVIDIA A10", (8, 6), 72, 1536, 100, 24, 600),
    "RTX 4090": Target("NVIDIA GeForce RTX 4090", (8, 9), 128, 1536, 100, 24, 1008),
    "H200": Target("NVIDIA H200", (9, 0), 132, 2048, 228, 139, 4800),
    "B200": Target("NVIDIA B200", (10, 0), 148, 2048, 228, 180, 8000),
    "RTX PRO 6000, 5090": Target("NVIDIA RTX PRO 6000", (12, 0), 188, 1536, 100, 96, 1792),
}


def mesh_of(target: Target, axis: str = "members") -> jax.sharding.Mesh:
    """One device of that kind. From here on the kernels are compiled, where they would be interpreted on a CPU."""
    topology = topologies.get_topology_desc("1x1x1", "cuda", topology="1x1x1", target_config=_describe(target))
    jax.default_backend = lambda: "gpu"
    return jax.sharding.Mesh(topology.devices, (axis,))


def _describe(target: Target) -> str:
    major, minor = target.capability
    return f"""
gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: {target.threads}
  core_count: {target.cores} fpus_per_core: 128
  shared_memory_per_block: 49152 shared_memory_per_block_optin: {1024 * (target.shared_kib - 1)}
  shared_memory_per_core: {1024 * target.shared_kib}
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: {target.gb_per_s * 10**9} l2_cache_size: 52428800 clock_rate_ghz: 1.98
  device_memory_size: {target.memory_gib * 2**30}
  cuda_compute_capability {{ major: {major} minor: {minor} }}
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 7 }}
runtime_version {{ major: 13 }}
device_description_str: "{target.kind}"
"""
