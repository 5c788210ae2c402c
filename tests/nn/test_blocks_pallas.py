"""The blocks of encoder and decoder as GPU kernels, interpreted: equal to the plain ones, values and gradients."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cuda import lower_for_cuda
from flax import nnx

from acf.nn import Decoder, Encoder, down_pallas, up_pallas
from acf.nn.blocks import Down, ResidualWeights, Up, Weights
from acf.nn.encoder import with_positions


def chain_of_blocks(with_weights, channels, Block: Any = Down):
    make = [lambda i=i, o=o: Block(i, o, dtype=jnp.float32, rngs=nnx.Rngs(0)) for i, o in channels]
    return nnx.split(nnx.List([with_weights(block, seed) for seed, block in enumerate(make)]))


def plain(graph, state, frames):
    x = with_positions(frames.astype(jnp.float32) / 127.5 - 1)
    for block in nnx.merge(graph, state):
        x = block(x)
    return x


def fused(graph, state, frames):
    return down_pallas.encode(frames, [block.weights for block in nnx.merge(graph, state)], jnp.float32)


def fused_decoder(graph, state, x):
    return up_pallas.decode(x, [block.weights for block in nnx.merge(graph, state)], jnp.float32)


def features_of_size(size, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=size), jnp.float32)


def frames_of(size, seed=0):
    return jnp.asarray(np.random.default_rng(seed).integers(0, 256, size), jnp.uint8)


# Even and odd sizes; frames that are not square; 1, 3 and 4 channels; widths at, below and above a power of two, and
# one of those that leave the gradients of their squares to a product.
@pytest.mark.parametrize(
    ("size", "channels"),
    [
        ((3, 8, 8, 3), (4, 15)),
        ((2, 7, 10, 1), (6, 16)),
        ((5, 5, 4, 4), (7, 9)),
        ((2, 16, 16, 3), (3, 5, 20)),
        ((3, 3, 5, 3), (50, 70)),
    ],
)
def test_value_and_gradient(with_weights, size, channels):
    widths = list(zip([size[-1] + 2, *channels], channels, strict=False))
    graph, state = chain_of_blocks(with_weights, widths)
    compare(graph, state, plain, fused, frames_of(size))


# Sizes that are odd, and one pixel; widths at and below a power of two.
@pytest.mark.parametrize(
    ("size", "channels"),
    [((2, 3, 5, 15), (16,)), ((9, 1, 2, 7), (5, 3))],
)
def test_value_and_gradient_of_a_decoder(with_weights, size, channels):
    graph, state = chain_of_blocks(with_weights, list(zip([size[-1], *channels], channels, strict=False)), Up)

    def plain(graph, state, x):
        for block in nnx.merge(graph, state):
            x = block(x)
        return x

    compare(graph, state, plain, fused_decoder, features_of_size(size), argnums=(1, 2))


def compare(graph, state, plain, fused, x, argnums=(1,)):
    """Values, and gradients by the weights and, where it has one, the input."""
    expected = jax.jit(plain)(graph, state, x)
    found = jax.jit(fused)(graph, state, x)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    g = jnp.asarray(np.random.default_rng(1).normal(size=expected.shape), jnp.float32)

    def gradient(code):
        return jax.jit(jax.grad(lambda *args: (code(*args) * g).sum(), argnums))(graph, state, x)

    def close(a, b):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5 * float(abs(b).max()))

    jax.tree.map(close, gradient(fused), gradient(plain))


@pytest.mark.parametrize(
    ("Block", "channels", "code", "inputs", "size"),
    [
        (Down, [(5, 4), (4, 7)], fused, frames_of, (2, 8, 8, 3)),
        (Up, [(7, 4)], fused_decoder, features_of_size, (2, 3, 2, 7)),
    ],
    ids=["encoder", "decoder"],
)
def test_members_do_not_mix(with_weights, Block, channels, code, inputs, size):
    graph, state = chain_of_blocks(with_weights, channels, Block)
    other = jax.tree.map(lambda leaf: 0.7 * leaf, state)
    x = jnp.stack([inputs(size, seed) for seed in (0, 1)])
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), state, other)

    def gradient(state, x):
        return jax.grad(lambda state: code(graph, state, x).sum())(state)

    both = jax.jit(jax.vmap(gradient))(stacked, x)
    for n, one in enumerate((state, other)):
        alone = jax.jit(gradient)(one, x[n])
        jax.tree.map(lambda a, b, n=n: np.testing.assert_allclose(a[n], b, rtol=1e-4, atol=1e-4), both, alone)


def test_networks_use_them_in_bfloat16_alone():
    """And only as far as they go: a wide block is left to plain JAX."""

    def fused(depth, dtype, kernel):
        sizes = {"depth": depth, "hidden": 4, "dtype": dtype, "kernel": kernel}
        made = nnx.eval_shape(
            lambda: nnx.List(
                [Encoder((32, 32, 3), 2, **sizes, rngs=nnx.Rngs(0)), Decoder(2, (32, 32, 3), **sizes, rngs=nnx.Rngs(0))]
            )
        )
        return [len(network._fused()) for network in made]

    assert fused(24, jnp.bfloat16, "pallas") == [3, 2]
    assert fused(48, jnp.bfloat16, "pallas") == [2, 1]
    assert fused(24, jnp.float32, "pallas") == [0, 0]
    assert fused(24, jnp.bfloat16, "xla") == [0, 0]
    assert fused(24, jnp.bfloat16, "auto") == [0, 0]  # there is no GPU here


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


def test_the_whole_decoder_agrees_in_bfloat16(with_weights):
    """To bfloat16's rounding; the first block here is plain."""

    def decoder(kernel):
        sizes = {"depth": 64, "hidden": 8, "dtype": jnp.bfloat16, "kernel": kernel}
        made = with_weights(lambda: Decoder(3, (32, 32, 3), **sizes, rngs=nnx.Rngs(0)))
        made.bias[...] = jnp.zeros_like(made.bias[...])
        return made

    z = jnp.asarray(np.random.default_rng(0).normal(size=(4, 3)), jnp.float32)
    found, expected = (np.asarray(decoder(kernel)(z)) for kernel in ("pallas", "xla"))
    np.testing.assert_allclose(found, expected, atol=0.05)
    assert expected.std() > 0.1


@pytest.fixture
def paper_weights():
    """`paper_weights(m, n, o, bias)`: of one block of five members, whose convolution [m, n] makes o channels."""

    def weights(m, n, o, bias):
        def shaped(*shape) -> Any:
            return jax.ShapeDtypeStruct((5, *shape), jnp.float32)

        residuals = ResidualWeights(*(shaped(*shape) for shape in [(o,), (o, o), (o,), (o, o), (o,)]))
        return Weights(shaped(m, n), shaped(o) if bias else None, residuals)

    return weights


def test_the_kernels_compile_for_a_gpu(monkeypatch, paper_weights):
    """As far as that goes without one: down to Triton, in the paper's sizes, for a population."""

    def gradient(frames, blocks):
        return jax.grad(lambda blocks: down_pallas.encode(frames, blocks, jnp.bfloat16).sum().astype(float))(blocks)

    frames = jax.ShapeDtypeStruct((5, 256, 32, 32, 3), jnp.uint8)
    blocks = [paper_weights(9 * i, o, o, bias=True) for i, o in ((5, 24), (24, 48), (48, 96))]
    text = lower_for_cuda(monkeypatch, jax.vmap(gradient), frames, blocks)
    backward = ("backward_kernel_96", "backward_sums_kernel_48", "backward_sums_kernel_24", "conv_input_kernel_48")
    for name in ("forward_kernel_24", *backward, "frame_weights_kernel_24"):
        assert name in text


def test_the_decoders_kernels_compile_for_a_gpu(monkeypatch, paper_weights):
    def gradient(x, blocks):
        return jax.grad(lambda *args: up_pallas.decode(*args, dtype=jnp.bfloat16).sum().astype(float), (0, 1))(
            x, blocks
        )

    x = jax.ShapeDtypeStruct((5, 256, 4, 4, 96), jnp.float32)
    blocks = [paper_weights(i, 9 * o, o, bias=False) for i, o in ((96, 48), (48, 24))]
    text = lower_for_cuda(monkeypatch, jax.vmap(gradient), x, blocks)
    for name in ("up_kernel_96", "up_kernel_48", "conv_kernel_96", "backward_sums_kernel_24", "conv_weights_kernel_48"):
        assert name in text
