"""The stack of networks against one network at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from acf.nn import MLP, StackedMLP

K, I, O = 3, 4, 2  # noqa: E741 (in, out)


@pytest.fixture
def stack(with_weights):
    return with_weights(lambda: StackedMLP(K, I, (5, 6), O, rngs=nnx.Rngs(0)))


def inputs():
    return jnp.asarray(np.random.default_rng(0).normal(size=(7, K, I)), jnp.float32)


def test_each_network_is_an_mlp_of_its_own(stack):
    out = np.asarray(nnx.jit(stack)(inputs()))
    assert out.shape == (7, K, O)
    for k in range(K):
        mlp = nnx.eval_shape(lambda: MLP(I, (5, 6), O, rngs=nnx.Rngs(0)))
        alone = nnx.merge(nnx.graphdef(mlp), jax.tree.map(lambda leaf, k=k: leaf[k], nnx.state(stack)))
        np.testing.assert_allclose(out[:, k], nnx.jit(alone)(inputs()[:, k]), rtol=1e-5, atol=1e-6)


def test_a_network_sees_its_own_input_alone(stack):
    graph, params = nnx.split(stack)
    slopes = jax.jit(jax.jacrev(lambda x: nnx.merge(graph, params)(x[None])[0]))(inputs()[0])  # [K, O, K, I]
    for k in range(K):
        for other in range(K):
            assert np.any(slopes[k, :, other]) == (k == other)


def test_networks_start_different_and_at_the_scale_of_one():
    stack = StackedMLP(K, 100, (200,), O, rngs=nnx.Rngs(0))
    kernel = np.asarray(stack.layers[0].kernel[...])
    np.testing.assert_allclose(kernel.std((1, 2)), 0.1, rtol=0.05)  # 1 / sqrt(width in), whatever K
    assert (kernel[0] != kernel[1]).all()
