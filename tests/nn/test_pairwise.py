"""Every pair of a batch: all three ways against the sum written out, values and gradients.

`nodes` interpolates where that takes fewer nodes than there are numbers: from some 30 on, with networks as they are
after training.
"""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cuda import lower_for_cuda
from hypothesis import given, settings
from hypothesis import strategies as st

from acf.nn import pairwise, pairwise_blocks, pairwise_nodes, pairwise_pallas
from acf.nn.kernel import chosen
from acf.nn.nodes import choose

WAYS = [pairwise_nodes, pairwise_blocks, pairwise_pallas]
in_every_way = pytest.mark.parametrize("way", WAYS, ids=lambda module: module.__name__.rpartition("_")[2])


def operands(N=5, M=4, K=3, H=6, seed=0):
    rng = np.random.default_rng(seed)
    shapes = [(K, H, N), (K, M), (K, H), (K, H, N)]
    return [jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes]


def latents(N, M, K, H, steepness, seed=0):
    """As in training: v in (-1, 1), and |w| at most the steepness."""
    u, v, w, c = operands(N, M, K, H, seed=seed)
    return [u, jnp.tanh(v), steepness * jnp.tanh(w), c]


def nodes_of(args):
    """How many each factor needs."""
    return jax.vmap(choose)(*args[1:3]).used


def written_out(u, v, w, c):
    """In float64, pair by pair."""
    u, v, w, c = (np.asarray(x, np.float64) for x in (u, v, w, c))
    pre = u[..., None] + w[..., None, None] * v[:, None, None, :]  # [K, H, N, M]
    return (c[..., None] * pre / (1 + np.exp(-pre))).sum((0, 1))


def gradients_written_out(g, args):
    """In float64, pair by pair: of (u, v, w, c)."""
    g, u, v, w, c = (np.asarray(x, np.float64) for x in (g, *args))
    v, w, c = v[:, None, None, :], w[..., None, None], c[..., None]
    pre = u[..., None] + w * v  # [K, H, N, M]
    s = 1 / (1 + np.exp(-pre))
    silu, slope = g * pre * s, g * c * (s + pre * s * (1 - s))
    return slope.sum(3), (w * slope).sum((1, 2)), (v * slope).sum((2, 3)), silu.sum(3)


def gradients(f, g, args):
    return jax.jit(jax.grad(lambda args: (f(*args) * g).sum()))(args)


def assert_right(way, args):
    """Values and gradients, to a few roundings of the largest."""
    N, M = args[0].shape[2], args[1].shape[1]
    g = jnp.asarray(np.random.default_rng(1).normal(size=(N, M)), jnp.float32)

    expected = written_out(*args)
    np.testing.assert_allclose(jax.jit(way.pairwise_sum)(*args), expected, atol=2e-6 * abs(expected).max())
    for found, reference in zip(gradients(way.pairwise_sum, g, args), gradients_written_out(g, args), strict=True):
        np.testing.assert_allclose(found, reference, atol=2e-6 * abs(reference).max())


@in_every_way
@pytest.mark.parametrize("sizes", [(5, 4, 3, 6), (16, 16, 2, 64), (33, 70, 1, 40), (1, 1, 1, 1)])
def test_value_and_gradient(way, sizes):
    assert_right(way, operands(*sizes))


@pytest.mark.parametrize(
    ("steepness", "count"), [(0.0, 8), (1.0, 16), (4.5, 32), (12.0, 72), (40.0, 128), (300.0, 128)]
)
def test_interpolated(steepness, count):
    """From networks as they are at first and after training to some too steep for fewer nodes than numbers."""
    args = latents(9, 128, 2, 16, steepness)
    assert nodes_of(args).max() == count
    assert_right(pairwise_nodes, args)


@settings(max_examples=5, deadline=None)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 4), st.integers(1, 20), st.integers(0, 99))
def test_any_size(N, M, K, H, seed):
    args = operands(N, M, K, H, seed=seed)
    expected = written_out(*args)
    for way in WAYS:
        found = way.pairwise_sum(*args)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * max(1, abs(expected).max()))


@in_every_way
def test_members_do_not_mix(way):
    """One needs few nodes, the other many."""
    first, second = (latents(5, 64, 3, 6, steepness, seed) for seed, steepness in enumerate((1.0, 6.5)))
    assert nodes_of(first).max() < nodes_of(second).min()
    stacked = [jnp.stack(pair) for pair in zip(first, second, strict=True)]
    g = jnp.ones((5, 64))
    of_members = jax.vmap(lambda *args: jax.grad(lambda args: (way.pairwise_sum(*args) * g).sum())(args))
    both = jax.jit(of_members)(*stacked)
    for n, args in enumerate((first, second)):
        for found, alone in zip(both, gradients(way.pairwise_sum, g, args), strict=True):
            np.testing.assert_allclose(found[n], alone, rtol=1e-5, atol=1e-5)


@in_every_way
def test_large_pre_activations(way):
    """u and w v of opposite sign, as far out as the factored exponentials go: neither overflows nor is 0 times ∞."""
    u = jnp.array([-79.0, -40.0, 0.0, 40.0, 79.0])[None, None, :]
    v = jnp.array([[-79.0, -20.0, 0.0, 20.0, 79.0]])
    w, c = jnp.ones((1, 1)), jnp.ones((1, 1, 5))
    expected = written_out(u, v, w, c)
    np.testing.assert_allclose(way.pairwise_sum(u, v, w, c), expected, rtol=1e-5, atol=1e-5)
    found = gradients(way.pairwise_sum, jnp.ones((5, 5)), (u, v, w, c))
    assert all(jnp.isfinite(leaf).all() for leaf in found)


@pytest.mark.parametrize(("way", "mib"), [(pairwise_nodes, 16), (pairwise_blocks, 32)])
def test_memory_of_plain_jax_does_not_grow_with_all_pairs(way, mib):
    """N = 512, K = 8, H = 64: all pairs at once would be 512 MiB, of one factor 64."""
    args = operands(512, 512, 8, 64)
    compiled = jax.jit(jax.grad(lambda args: way.pairwise_sum(*args).sum())).lower(args).compile()
    stats = compiled.memory_analysis()
    assert stats is not None
    assert stats.temp_size_in_bytes < mib * 2**20


@pytest.mark.parametrize(
    ("backend", "device", "expected"),
    [
        ("cpu", {}, pairwise_nodes),
        ("tpu", {}, pairwise_blocks),
        ("gpu", {"compute_capability": "7.5"}, pairwise_blocks),  # NVIDIA T4
        ("gpu", {"compute_capability": "gfx942"}, pairwise_blocks),  # AMD
        ("gpu", {"compute_capability": "8.6"}, pairwise_pallas),
        ("gpu", {"compute_capability": "12.0"}, pairwise_pallas),
    ],
)
def test_every_device_has_its_way(monkeypatch, backend, device, expected):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    monkeypatch.setattr(jax, "local_devices", lambda: [SimpleNamespace(**device)])
    assert pairwise.way("auto") is expected
    assert pairwise.way("xla") is (pairwise_nodes if backend == "cpu" else pairwise_blocks)
    assert pairwise.way("pallas") is pairwise_pallas


def test_auto_is_plain_jax_without_a_gpu():
    assert (chosen("auto"), chosen("pallas"), chosen("xla")) == ("xla", "pallas", "xla")


def test_the_kernels_compile_for_a_gpu(monkeypatch):
    """As far as that goes without one: down to Triton, in the paper's sizes, for a population."""
    shapes = [(5, 6, 256, 128), (5, 6, 128), (5, 6, 256), (5, 6, 256, 128)]
    args = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    assert "pairwise_forward" in lower_for_cuda(monkeypatch, jax.vmap(pairwise_pallas.forward), *args)
    args.append(jax.ShapeDtypeStruct((5, 128, 128), jnp.float32))
    assert "pairwise_backward" in lower_for_cuda(monkeypatch, jax.vmap(pairwise_pallas.backward), *args)
