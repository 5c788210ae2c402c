"""The MLP by hand."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from acf.nn import MLP


def silu(x):
    return x / (1 + math.exp(-x))


def test_by_hand(with_weights):
    mlp = with_weights(lambda: MLP(2, (2,), 1, rngs=nnx.Rngs(0)))
    mlp.layers[0].kernel = nnx.Param(jnp.array([[1.0, -2.0], [3.0, 0.5]]))
    mlp.layers[0].bias = nnx.Param(jnp.array([0.25, -1.0]))
    mlp.layers[1].kernel = nnx.Param(jnp.array([[2.0], [-3.0]]))
    mlp.layers[1].bias = nnx.Param(jnp.array([0.75]))
    # hidden: 1·0.5 + 3·(-1) + 0.25 = -2.25 and -2·0.5 + 0.5·(-1) - 1 = -2.5; nothing after the last layer
    expected = 2 * silu(-2.25) - 3 * silu(-2.5) + 0.75
    assert float(mlp(jnp.array([[0.5, -1.0]]))[0, 0]) == pytest.approx(expected, rel=1e-6)


def test_widths(with_weights):
    mlp = with_weights(lambda: MLP(3, (4, 5), 6, rngs=nnx.Rngs(0)))
    assert [layer.kernel.shape for layer in mlp.layers] == [(3, 4), (4, 5), (5, 6)]
    assert mlp(jnp.ones((7, 3))).shape == (7, 6)


def test_no_hidden_layer_is_affine(with_weights):
    mlp = with_weights(lambda: MLP(3, (), 2, rngs=nnx.Rngs(0)))
    x = jnp.array([[0.5, -1.0, 2.0]])
    np.testing.assert_allclose(mlp(x) + mlp(-x), 2 * mlp(0 * x), atol=1e-6)
