"""What a GPU can do at most, measured on it: the rates that the floor of a step is counted with. Needs Pallas."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array

from acf.nn.ptx import fast_reciprocal, fma
from acf.study.floor import Rates


def measure_rates() -> Rates:
    big = jnp.ones(2**28, jnp.float32)
    matrix = jax.random.normal(jax.random.key(0), (8192, 8192), jnp.bfloat16)
    copied = 2 * big.nbytes / _seconds(jax.jit(lambda x: x + 1), big)
    multiplied = 2 * 8192**3 / _seconds(jax.jit(lambda x: x @ x), matrix)
    return Rates(copied, multiplied, _in_registers(_unit))


def _unit(x: Array) -> Array:
    """As many instructions as a hidden unit of a pair needs: 7 and a reciprocal forward, 8 and another one backward."""
    for instructions in (7, 8):
        for _ in range(instructions):
            x = fma(x, 0.999, 0.001)
        x = fast_reciprocal(x)
    return x


def _in_registers(step: Callable[[Array], Array], elements: int = 2**24, repeats: int = 64) -> float:
    """How often a second `step` is done, on numbers that never leave their registers."""

    def kernel(x_ref, out_ref):
        out_ref[...] = jax.lax.fori_loop(0, repeats, lambda _, x: step(x), x_ref[...])

    block = pl.BlockSpec((1024,), lambda n: (n,))
    call = pl.pallas_call(
        kernel,
        grid=(elements // 1024,),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct((elements,), jnp.float32),
        compiler_params=triton.CompilerParams(num_warps=4),
    )
    return elements * repeats / _seconds(jax.jit(call), jnp.ones(elements))


def _seconds(f: Any, *args: Any, repeats: int = 10) -> float:
    out = jax.block_until_ready(f(*args))
    began = time.perf_counter()
    for _ in range(repeats):
        out = f(*args)
    jax.block_until_ready(out)
    return (time.perf_counter() - began) / repeats
