"""What XLA makes of the kernels for an H200, without one: registers, spilled bytes and how much arithmetic.

`targets.py` says what it needs.

python benchmarks/instructions.py
"""

import os
import re
import subprocess
import tempfile
from pathlib import Path

FOLDER = tempfile.TemporaryDirectory()
os.environ["XLA_FLAGS"] = f"--xla_dump_to={FOLDER.name} --xla_dump_emitter_re=.* --xla_gpu_dump_llvmir"

from targets import TARGETS, mesh_of  # isort: skip  # noqa: E402  (before JAX)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

from acf.nn import pairwise_pallas  # noqa: E402
from acf.terminal import console, table  # noqa: E402

ARITHMETIC = {
    "fma": r"\bfma\.",
    "mul, add": r"\b(?:mul|add|sub)(?:\.rn)?\.f32",
    "special": r"\b(?:rcp|ex2)\.",
}
MEMBERS = 5


def compile_kernels() -> None:
    """A step's kernels with the paper's network, on Taxi."""
    mesh = mesh_of(TARGETS["H200"])
    here = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())

    def shape(*size: int):
        return jax.ShapeDtypeStruct((MEMBERS, *size), jnp.float32, sharding=here)

    def energies(*args):
        return jax.grad(lambda args: (pairwise_pallas.pairwise_sum(*args) ** 2).sum())(args)

    N, K, H = 128, 6, 256
    with jax.set_mesh(mesh):
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
        if name and re.search("pairwise_(forward|backward)", name[1]):
            rows.add_row(name[1], *describe(code, file))
    console.print(rows)


if __name__ == "__main__":
    main()
