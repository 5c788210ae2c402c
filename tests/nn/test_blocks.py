"""Patches and matrix products against XLA's convolutions."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from acf.nn.blocks import Down, Up, overlap_add, patches

LAYOUT = ("NHWC", "HWIO", "NHWC")


def normal(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


@jax.jit
def convolution(x, kernel):
    return jax.lax.conv_general_dilated(x, kernel, (2, 2), ((1, 1), (1, 1)), dimension_numbers=LAYOUT)


def residuals(block, x):
    """RMSNorm, SiLU, two residual 1x1 layers, from the weights."""
    x = x / jnp.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * block.norm.scale[...]
    x = jax.nn.silu(x)
    for layer in block.layers:
        x = x + jax.nn.silu(x @ layer.kernel[...] + layer.bias[...])
    return x


@pytest.mark.parametrize("size", [(8, 8), (7, 9), (5, 4), (1, 2)])
def test_patches_and_a_product_are_a_convolution(size):
    x, kernel = normal(0, 2, *size, 3), normal(1, 3, 3, 3, 5)
    expected = convolution(x, kernel)
    assert expected.shape == (2, -(-size[0] // 2), -(-size[1] // 2), 5)
    actual = jax.jit(lambda x, kernel: patches(x) @ kernel.reshape(27, 5))(x, kernel)
    np.testing.assert_allclose(actual, expected, atol=2e-5)


@pytest.mark.parametrize("size", [(4, 4), (6, 2), (10, 16)])
def test_overlap_add_is_the_transpose_of_patches(size):
    x, y = normal(0, 2, *size, 3), normal(1, 2, size[0] // 2, size[1] // 2, 27)
    down, (transposed,) = jax.jit(lambda x, y: (patches(x), jax.vjp(patches, x)[1](y)))(x, y)
    up = np.asarray(jax.jit(overlap_add)(y))
    assert up.shape == x.shape
    np.testing.assert_allclose(np.vdot(down, y), np.vdot(x, up), rtol=1e-4)
    # and not only on one random pair: it is what differentiation makes of `patches`
    np.testing.assert_allclose(up, transposed, atol=1e-5)


def test_product_and_overlap_add_are_a_transposed_convolution():
    y, kernel = normal(0, 2, 3, 5, 4), normal(1, 3, 3, 6, 4)  # of the convolution from 6 to 4 channels

    @jax.jit
    def both(y, kernel):
        expected = jax.lax.conv_transpose(
            y, kernel, (2, 2), ((1, 2), (1, 2)), dimension_numbers=LAYOUT, transpose_kernel=True
        )
        return overlap_add(y @ kernel.reshape(54, 4).T), expected

    np.testing.assert_allclose(*both(y, kernel), atol=2e-5)


def plain_down(block, x):
    kernel = block.conv.kernel[...].reshape(3, 3, x.shape[-1], -1)
    return residuals(block.residuals, convolution(x, kernel) + block.conv.bias[...])


def plain_up(block, x):
    return residuals(block.residuals, overlap_add(x @ block.conv.kernel[...]))


@pytest.mark.parametrize(
    ("make", "plain", "size", "expected"),
    [
        (lambda: Down(3, 8, dtype=jnp.float32, rngs=nnx.Rngs(0)), plain_down, (2, 7, 6, 3), (2, 4, 3, 8)),
        (lambda: Up(8, 3, dtype=jnp.float32, rngs=nnx.Rngs(0)), plain_up, (2, 3, 5, 8), (2, 6, 10, 3)),
    ],
    ids=["down", "up"],
)
def test_a_block_is_convolution_norm_silu_residuals(with_weights, make, plain, size, expected):
    """And so are its gradients, of every weight and of its input."""
    graph, weights = nnx.split(with_weights(make))

    @partial(jax.jit, static_argnums=0)
    def value_and_gradients(forward, weights, x):
        out, back = jax.vjp(lambda weights, x: forward(nnx.merge(graph, weights), x), weights, x)
        return out, back(jnp.cos(out))

    x = normal(2, *size)
    found = value_and_gradients(lambda block, x: block(x), weights, x)
    assert found[0].shape == expected
    jax.tree.map(partial(np.testing.assert_allclose, atol=3e-5), found, value_and_gradients(plain, weights, x))
