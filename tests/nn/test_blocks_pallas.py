"""The encoder's blocks as GPU kernels, interpreted: equal to the plain ones, values and gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cuda import lower_for_cuda
from flax import nnx

from acf.nn import Encoder, blocks_pallas
from acf.nn.blocks import Down, Weights
from acf.nn.encoder import with_positions


def chain_of_blocks(with_weights, channels):
    make = [lambda i=i, o=o: Down(i, o, dtype=jnp.float32, rngs=nnx.Rngs(0)) for i, o in channels]
    return nnx.split(nnx.List([with_weights(block, seed) for seed, block in enumerate(make)]))


def plain(graph, state, frames):
    x = with_positions(frames.astype(jnp.float32) / 127.5 - 1)
    for block in nnx.merge(graph, state):
        x = block(x)
    return x


def fused(graph, state, frames):
    return blocks_pallas.encode(frames, [block.weights for block in nnx.merge(graph, state)], jnp.float32)


def frames_of(size, seed=0):
    return jnp.asarray(np.random.default_rng(seed).integers(0, 256, size), jnp.uint8)


# Even and odd sizes; frames that are not square; 1, 3 and 4 channels; widths at, below and above a power of two.
@pytest.mark.parametrize(
    ("size", "channels"),
    [((3, 8, 8, 3), (4, 15)), ((2, 7, 10, 1), (6, 16)), ((5, 5, 4, 4), (7, 9)), ((2, 16, 16, 3), (3, 5, 20))],
)
def test_value_and_gradient(with_weights, size, channels):
    widths = list(zip([size[-1] + 2, *channels], channels, strict=False))
    graph, state = chain_of_blocks(with_weights, widths)
    frames = frames_of(size)
    expected = jax.jit(plain)(graph, state, frames)
    found = jax.jit(fused)(graph, state, frames)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    g = jnp.asarray(np.random.default_rng(1).normal(size=expected.shape), jnp.float32)

    def gradient(encode):
        return jax.jit(jax.grad(lambda state: (encode(graph, state, frames) * g).sum()))(state)

    def close(a, b):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5 * float(abs(b).max()))

    jax.tree.map(close, gradient(fused), gradient(plain))


def test_members_do_not_mix(with_weights):
    graph, state = chain_of_blocks(with_weights, [(5, 4), (4, 7)])
    _, other = chain_of_blocks(with_weights, [(5, 4), (4, 7)])
    other = jax.tree.map(lambda leaf: 0.7 * leaf, other)
    frames = jnp.stack([frames_of((2, 8, 8, 3), seed) for seed in (0, 1)])
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), state, other)

    def gradient(state, frames):
        return jax.grad(lambda state: fused(graph, state, frames).sum())(state)

    both = jax.jit(jax.vmap(gradient))(stacked, frames)
    for n, one in enumerate((state, other)):
        alone = jax.jit(gradient)(one, frames[n])
        jax.tree.map(lambda a, b, n=n: np.testing.assert_allclose(a[n], b, rtol=1e-4, atol=1e-4), both, alone)


def test_the_encoder_uses_them_in_bfloat16_alone(monkeypatch):
    """And only as far as they go: a wide block is left to plain JAX."""

    def fused(depth, dtype, kernel):
        made = nnx.eval_shape(
            lambda: Encoder((32, 32, 3), 2, depth=depth, hidden=4, dtype=dtype, kernel=kernel, rngs=nnx.Rngs(0))
        )
        return len(made._fused())

    assert fused(24, jnp.bfloat16, "pallas") == 3
    assert fused(48, jnp.bfloat16, "pallas") == 2
    assert fused(24, jnp.float32, "pallas") == 0
    assert fused(24, jnp.bfloat16, "xla") == 0
    assert fused(24, jnp.bfloat16, "auto") == 0  # there is no GPU here


def test_the_whole_encoder_agrees_in_bfloat16(with_weights):
    """To bfloat16's rounding; the last block here is plain."""

    def encoder(kernel):
        return with_weights(
            lambda: Encoder((16, 16, 3), 3, depth=64, hidden=8, dtype=jnp.bfloat16, kernel=kernel, rngs=nnx.Rngs(0))
        )

    frames = frames_of((4, 16, 16, 3))
    found, expected = (np.asarray(encoder(kernel)(frames)) for kernel in ("pallas", "xla"))
    np.testing.assert_allclose(found, expected, atol=0.05)
    assert expected.std() > 0.1


def test_the_kernels_compile_for_a_gpu(monkeypatch):
    """As far as that goes without one: down to Triton, in the paper's sizes, for a population."""

    def weights(i, o):
        shapes = ((9 * i, o), (o,), (o,), (o, o), (o,), (o, o), (o,))
        return Weights(*(jax.ShapeDtypeStruct((5, *shape), jnp.float32) for shape in shapes))  # pyright: ignore

    def gradient(frames, blocks):
        return jax.grad(lambda blocks: blocks_pallas.encode(frames, blocks, jnp.bfloat16).sum().astype(float))(blocks)

    frames = jax.ShapeDtypeStruct((5, 256, 32, 32, 3), jnp.uint8)
    text = lower_for_cuda(monkeypatch, jax.vmap(gradient), frames, [weights(5, 24), weights(24, 48), weights(48, 96)])
    for name in ("forward_kernel_24", "backward_kernel_96", "conv_input_kernel_48", "frame_weights_kernel_24"):
        assert name in text
