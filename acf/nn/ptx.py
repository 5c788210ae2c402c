"""Instructions of NVIDIA's GPUs that XLA does not choose by itself, for use inside a kernel."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.pallas import triton
from jaxtyping import Array, Float


def fast_reciprocal(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """One instruction, right to a unit in the last place; a float32 division is about eight."""
    return _asm("rcp.approx.ftz.f32 $0, $1;", x) if jax.default_backend() == "gpu" else 1 / x


def fma(a: Any, b: Any, c: Any) -> Float[Array, "..."]:
    """`a * b + c` as one instruction. XLA does not contract the two when it compiles a kernel."""
    return _asm("fma.rn.f32 $0, $1, $2, $3;", a, b, c) if jax.default_backend() == "gpu" else a * b + c


def _asm(code: str, *args: Any) -> Float[Array, "..."]:
    shape = jnp.broadcast_shapes(*(jnp.shape(x) for x in args))
    (out,) = triton.elementwise_inline_asm(
        code,
        args=[jnp.broadcast_to(jnp.asarray(x, jnp.float32), shape) for x in args],
        constraints="=f" + len(args) * ",f",
        pack=1,
        result_shape_dtypes=[jax.ShapeDtypeStruct(shape, jnp.float32)],
    )
    return out
