"""Which implementation computes what is worth a kernel of its own: plain XLA, or Pallas on a GPU."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax.experimental.pallas import triton
from jaxtyping import Array, Float

Kernel = Literal["auto", "xla", "pallas"]


def chosen(kernel: Kernel) -> Literal["xla", "pallas"]:
    """`auto` is Pallas where there is an NVIDIA GPU that can run it."""
    if kernel != "auto":
        return kernel
    capability = getattr(jax.local_devices()[0], "compute_capability", "0")
    return "pallas" if float(capability) >= 8 else "xla"


def fast_reciprocal(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Inside a kernel: one instruction, right to a unit in the last place; a float32 division is about eight."""
    if jax.default_backend() != "gpu":
        return 1 / x
    (out,) = triton.elementwise_inline_asm(
        "rcp.approx.ftz.f32 $0, $1;",
        args=[x],
        constraints="=r,r",
        pack=1,
        result_shape_dtypes=[jax.ShapeDtypeStruct(x.shape, x.dtype)],
    )
    return out


def fast_tanh(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Inside a kernel: one instruction, right to 2^-11. For what is rounded to bfloat16 anyway."""
    return triton.approx_tanh(x) if jax.default_backend() == "gpu" else jnp.tanh(x)


def fma(a: Any, b: Any, c: Any) -> Float[Array, "..."]:
    """Inside a kernel: `a * b + c` as one instruction. XLA does not contract the two when it compiles a kernel."""
    if jax.default_backend() != "gpu":
        return a * b + c
    shape = jnp.broadcast_shapes(*(jnp.shape(x) for x in (a, b, c)))
    (out,) = triton.elementwise_inline_asm(
        "fma.rn.f32 $0, $1, $2, $3;",
        args=[jnp.broadcast_to(jnp.asarray(x, jnp.float32), shape) for x in (a, b, c)],
        constraints="=f,f,f,f",
        pack=1,
        result_shape_dtypes=[jax.ShapeDtypeStruct(shape, jnp.float32)],
    )
    return out
