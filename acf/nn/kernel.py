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
    return "pallas" if nvidia_capability() >= 8 else "xla"


def nvidia_capability() -> float:
    """Of this host's GPU, 9.0 for an H200; 0 where there is none of NVIDIA's."""
    capability = getattr(jax.local_devices()[0], "compute_capability", "")
    return float(capability) if capability[:1].isdigit() else 0.0  # AMD's are names: "gfx942"


def fast_reciprocal(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Inside a kernel: one instruction, right to a unit in the last place; a float32 division is about eight."""
    return _asm("rcp.approx.ftz.f32 $0, $1;", x) if jax.default_backend() == "gpu" else 1 / x


def fast_tanh(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Inside a kernel: one instruction, right to 2^-11. For what is rounded to bfloat16 anyway."""
    return triton.approx_tanh(x) if jax.default_backend() == "gpu" else jnp.tanh(x)


def fma(a: Any, b: Any, c: Any) -> Float[Array, "..."]:
    """Inside a kernel: `a * b + c` as one instruction. XLA does not contract the two when it compiles a kernel."""
    return _asm("fma.rn.f32 $0, $1, $2, $3;", a, b, c) if jax.default_backend() == "gpu" else a * b + c


def fnma(a: Any, b: Any, c: Any) -> Float[Array, "..."]:
    """`c - a * b`: a sign costs nothing where the compiler can see it."""
    code = "{ .reg .f32 minus; neg.f32 minus, $1; fma.rn.f32 $0, minus, $2, $3; }"
    return _asm(code, a, b, c) if jax.default_backend() == "gpu" else c - a * b


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
