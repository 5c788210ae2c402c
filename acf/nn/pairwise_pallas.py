"""`pairwise_sum` as two GPU kernels: what is computed for a pair lives in registers and nowhere else.

- `exp(-(u + w v)) = exp(-u) exp(-w v)`: the exponentials are N·K·H each, and a pair costs one reciprocal.
- Forward, a program owns a tile of pairs (j, i) of one factor and walks over a share of the hidden units; the shares
  are added afterwards. Beside the value it sums the slope `Σ_h c w silu'(u + w v)`: [K, M, N] numbers, from which v's
  gradient is a small product.
- Backward, a program owns a tile of (h, i) and walks over j.

What belongs to the kernels but is little work, `exp(-w v)` and v's gradient, are kernels too: XLA would fuse them with
other little work nearby, and then the large kernels wait for that, or it for them.
"""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float

from acf.nn.ptx import fast_reciprocal, fma

# Measured on an H200 (`benchmarks/tiles.py`).
FORWARD_TILE = (16, 128)  # pairs: j, i
FORWARD_WARPS = 4
MOST_SHARES = 8  # of the hidden units, forward
ENOUGH_PROGRAMS = 192  # a member; with so many tiles of pairs there is no need for shares, which cost memory
BACKWARD_TILE = (4, 128)  # h, i
BACKWARD_WARPS = 1
UNROLL = 4  # of j, backward


@jax.custom_vjp
def pairwise_sum(
    u: Float[Array, "K H N"], v: Float[Array, "K M"], w: Float[Array, "K H"], c: Float[Array, "K H N"]
) -> Float[Array, "N M"]:
    return forward(u, v, w, c)[0].T


def _sum_forward(u: Array, v: Array, w: Array, c: Array):
    out, slope = forward(u, v, w, c)
    return out.T, (u, v, w, c, slope)


def _sum_backward(saved: tuple[Array, ...], g: Float[Array, "N M"]):
    u, v, w, c, slope = saved
    du, dw, dc = backward(u, v, w, c, g.T)
    return du, _gradient_of_v(slope, g.T), dw, dc


pairwise_sum.defvjp(_sum_forward, _sum_backward)


def forward(
    u: Float[Array, "K H N"], v: Float[Array, "K M"], w: Float[Array, "K H"], c: Float[Array, "K H N"]
) -> tuple[Float[Array, "M N"], Float[Array, "K shares M2 N2"]]:
    """The sums, and the slopes `Σ_h c w silu'(u + w v)` of each factor in the kernel's shares and padding."""
    (K, _, N), M = u.shape, v.shape[1]
    tile_j, tile_i = FORWARD_TILE
    shares = MOST_SHARES
    while shares > 1 and K * pl.cdiv(N, tile_i) * pl.cdiv(M, tile_j) * shares > ENOUGH_PROGRAMS:
        shares //= 2
    u, c = (_pad(x, {1: shares, 2: tile_i}) for x in (u, c))
    v, w = _pad(v, {1: tile_j}), _pad(w, {1: shares})
    share = w.shape[1] // shares
    by_i = pl.BlockSpec((None, share, tile_i), lambda k, s, i, j: (k, s, i))
    by_j = pl.BlockSpec((None, tile_j), lambda k, s, i, j: (k, j))
    by_hj = pl.BlockSpec((None, share, tile_j), lambda k, s, i, j: (k, s, j))
    by_h = pl.BlockSpec((None, share), lambda k, s, i, j: (k, s))
    pairs = pl.BlockSpec((None, None, tile_j, tile_i), lambda k, s, i, j: (k, s, j, i))
    shape = jax.ShapeDtypeStruct((K, shares, v.shape[1], u.shape[2]), u.dtype)
    out, slope = _call(
        _forward_kernel,
        FORWARD_WARPS,
        grid=(K, shares, u.shape[2] // tile_i, v.shape[1] // tile_j),
        in_specs=[by_i, by_i, by_i, by_j, by_hj, by_h],
        out_specs=[pairs, pairs],
        out_shape=[shape, shape],
    )(u, _exp_minus(u), c, v, _exp_of_products(w, v), w)
    return out.sum((0, 1))[:M, :N], slope


def _forward_kernel(u_ref, exp_u_ref, c_ref, v_ref, exp_v_ref, w_ref, out_ref, slope_ref):
    v = v_ref[:][:, None]

    def unit(h, sums):
        out, slope = sums
        w, c = w_ref[h], c_ref[h, :][None, :]
        pre = fma(w, v, u_ref[h, :][None, :])
        s = fast_reciprocal(fma(exp_u_ref[h, :][None, :], exp_v_ref[h, :][:, None], 1.0))
        silu = pre * s
        return fma(c, silu, out), fma(c * w, fma(silu, 1 - s, s), slope)

    zeros = jnp.zeros(out_ref.shape, out_ref.dtype)
    out_ref[...], slope_ref[...] = jax.lax.fori_loop(0, w_ref.shape[0], unit, (zeros, zeros))


def backward(
    u: Float[Array, "K H N"],
    v: Float[Array, "K M"],
    w: Float[Array, "K H"],
    c: Float[Array, "K H N"],
    g: Float[Array, "M N"],
) -> tuple[Float[Array, "K H N"], Float[Array, "K H"], Float[Array, "K H N"]]:
    """The gradients of u, w and c: `c Σ_j g silu'`, `Σ_i c Σ_j g v silu'` and `Σ_j g silu`."""
    K, H, N = u.shape
    tile_h, tile_i = BACKWARD_TILE
    u, c, w = _pad(u, {1: tile_h, 2: tile_i}), _pad(c, {1: tile_h, 2: tile_i}), _pad(w, {1: tile_h})
    v, g = _pad(v, {1: UNROLL}), _pad(g, {0: UNROLL, 1: tile_i})
    M, rows = v.shape[1], u.shape[2] // tile_i
    by_hi = pl.BlockSpec((None, tile_h, tile_i), lambda k, h, i: (k, h, i))
    by_j = pl.BlockSpec((None, M), lambda k, h, i: (k, 0))
    by_jh = pl.BlockSpec((None, M, tile_h), lambda k, h, i: (k, 0, h))
    by_h = pl.BlockSpec((None, tile_h), lambda k, h, i: (k, h))
    by_ji = pl.BlockSpec((M, tile_i), lambda k, h, i: (0, i))
    of_tile = pl.BlockSpec((None, None, tile_h), lambda k, h, i: (k, i, h))
    full = jax.ShapeDtypeStruct(u.shape, u.dtype)
    du, dw, dc = _call(
        _backward_kernel,
        BACKWARD_WARPS,
        grid=(K, u.shape[1] // tile_h, rows),
        in_specs=[by_hi, by_hi, by_hi, by_j, by_jh, by_h, by_ji],
        out_specs=[by_hi, of_tile, by_hi],
        out_shape=[full, jax.ShapeDtypeStruct((K, rows, u.shape[1]), u.dtype), full],
    )(u, _exp_minus(u), c, v, _exp_of_products(v, w), w, g)
    return du[:, :H, :N], dw.sum(1)[:, :H], dc[:, :H, :N]


def _backward_kernel(u_ref, exp_u_ref, c_ref, v_ref, exp_v_ref, w_ref, g_ref, du_ref, dw_ref, dc_ref):
    u, exp_u, w = u_ref[...], exp_u_ref[...], w_ref[:][:, None]

    def pairs(n, sums):
        silus, slopes, slopes_v = sums
        for j in [n * UNROLL + m for m in range(UNROLL)]:
            v, g = v_ref[j], g_ref[j, :][None, :]
            pre = fma(w, v, u)
            s = fast_reciprocal(fma(exp_u, exp_v_ref[j, :][:, None], 1.0))
            silu = pre * s
            slope = fma(silu, 1 - s, s)
            silus = fma(g, silu, silus)
            slopes = fma(g, slope, slopes)
            slopes_v = fma(g * v, slope, slopes_v)
        return silus, slopes, slopes_v

    zeros = jnp.zeros_like(u)
    silus, slopes, slopes_v = jax.lax.fori_loop(0, v_ref.shape[0] // UNROLL, pairs, (zeros, zeros, zeros))
    c = c_ref[...]
    du_ref[...], dw_ref[...], dc_ref[...] = c * slopes, (c * slopes_v).sum(1), silus


def _exp_of_products(a: Float[Array, "K m"], b: Float[Array, "K n"]) -> Float[Array, "K m n"]:
    """`exp(-a b)`, with what a kernel reads along last."""
    (K, m), n = a.shape, b.shape[1]
    tile_m, tile_n = min(16, m & -m), min(256, n & -n)  # powers of two that share m and n out
    return _call(
        _exp_kernel,
        grid=(K, m // tile_m, n // tile_n),
        in_specs=[
            pl.BlockSpec((None, tile_m), lambda k, a, b: (k, a)),
            pl.BlockSpec((None, tile_n), lambda k, a, b: (k, b)),
        ],
        out_specs=pl.BlockSpec((None, tile_m, tile_n), lambda k, a, b: (k, a, b)),
        out_shape=jax.ShapeDtypeStruct((K, m, n), a.dtype),
    )(a, b)


def _exp_kernel(a_ref, b_ref, out_ref):
    out_ref[...] = _exp_minus(a_ref[:][:, None] * b_ref[:][None, :])


def _gradient_of_v(slope: Float[Array, "K shares M2 N2"], g: Float[Array, "M N"]) -> Float[Array, "K M"]:
    """`Σ_i g[j, i] Σ_shares slope[k, :, j, i]`, by tiles of i."""
    (K, shares, M, N), (tile_j, tile_i) = slope.shape, FORWARD_TILE
    of_g = _pad(g, {0: tile_j, 1: tile_i})
    sums = _call(
        _gradient_of_v_kernel,
        grid=(K, M // tile_j, N // tile_i),
        in_specs=[
            pl.BlockSpec((None, shares, tile_j, tile_i), lambda k, j, i: (k, 0, j, i)),
            pl.BlockSpec((tile_j, tile_i), lambda k, j, i: (j, i)),
        ],
        out_specs=pl.BlockSpec((None, None, tile_j), lambda k, j, i: (k, i, j)),
        out_shape=jax.ShapeDtypeStruct((K, N // tile_i, M), g.dtype),
    )(slope, of_g)
    return sums.sum(1)[:, : len(g)]


def _gradient_of_v_kernel(slope_ref, g_ref, out_ref):
    total = sum(slope_ref[n] for n in range(1, slope_ref.shape[0])) + slope_ref[0]
    out_ref[...] = (g_ref[...] * total).sum(1)


def _exp_minus(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """`exp(-x)`, of x clipped to ±80: the product of two is then at most infinite, never 0 times infinity.

    A pre-activation beyond that is one of a network that has diverged.
    """
    return jnp.exp(-jnp.clip(x, -80.0, 80.0))


def _call(kernel, warps: int = 4, **specs):
    """Where there is no GPU the kernel is interpreted, for tests."""
    return pl.pallas_call(
        kernel,
        compiler_params=triton.CompilerParams(num_warps=warps, num_stages=1),
        interpret=jax.default_backend() != "gpu",
        name="pairwise_" + kernel.__name__.removesuffix("_kernel").strip("_"),
        **specs,
    )


def _pad(x: Array, multiples: dict[int, int]) -> Array:
    """Zeros up to a multiple, axis by axis: where c or g is 0, a pair adds nothing."""
    return jnp.pad(x, [(0, -size % multiples.get(axis, 1)) for axis, size in enumerate(x.shape)])
