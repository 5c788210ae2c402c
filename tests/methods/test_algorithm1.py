"""The whole loss against Algorithm 1 written plainly, each term in value and gradient; where gradients do not go."""

import dataclasses
from functools import partial

import algorithm1
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from acf.methods.acf import ACF, HParams, Latents, loss, losses
from acf.methods.base import Batch, Spec

N, K, A = 5, 3, 3
# The no-op is not the first action, nor the last: a wrong index shows.
SPEC = Spec((16, 16, 2), n_actions=A, noop=1, latents=K, depth=2, hidden=8)
HPARAMS = HParams(fwd=3.0, ratio=5.0, inv=7.0, policy=11.0, noise=0.1, sparsity=13.0, guard=17.0)
TERMS = ["ratio", "fwd", "inv", "policy", "sparsity", "guard"]


def make_batch():
    rng = np.random.default_rng(0)
    x, x_next = rng.integers(0, 256, (2, N, *SPEC.frame_shape), dtype=np.uint8)
    # every action, one of them three times; in the middle of the sparsity's ramp
    return Batch(jnp.asarray(x), jnp.array([2, 0, 1, 2, 2]), jnp.asarray(x_next), jnp.float32(7))


def values_and_gradients(function, model):
    """Of the total and of every term alone, with respect to every parameter: {name: value}, {name: gradients}."""
    graph, params = nnx.split(model)

    @jax.jit
    @partial(jax.value_and_grad, has_aux=True)
    def compiled(params, hparams):  # settings are traced: one program serves every choice of weights
        return function(nnx.merge(graph, params), make_batch(), jax.random.key(0), hparams)

    (total, terms), gradients = compiled(params, HPARAMS)
    nothing = dataclasses.replace(HPARAMS, **dict.fromkeys(TERMS, 0.0))
    every_gradients = {"total": gradients}
    for name in TERMS:
        weight = 1 / 0.4 if name == "sparsity" else 1.0  # its ramp has come to 0.4 at epoch 7
        every_gradients[name] = compiled(params, dataclasses.replace(nothing, **{name: weight}))[1]
    return {"total": total, **terms}, every_gradients


@pytest.fixture(scope="module")
def model(with_weights):
    return with_weights(lambda: ACF(SPEC, rngs=nnx.Rngs(0)))


@pytest.fixture(scope="module")
def actual(model):
    return values_and_gradients(loss, model)


@pytest.fixture(scope="module")
def expected(model):
    return values_and_gradients(algorithm1.loss, model)


def assert_close(actual, expected):
    """To 1e-5, relative to a leaf's largest entry where that is above 1."""
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * scale)


def largest(tree):
    return max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(tree))


@pytest.mark.parametrize("name", ["total", *TERMS])
def test_equals_the_plain_algorithm(actual, expected, name):
    (values, gradients), (expected_values, expected_gradients) = actual, expected
    assert values.keys() == expected_values.keys()
    assert float(values[name]) > 0.01, "a term that is off would agree with anything"
    assert_close(values[name], expected_values[name])
    jax.tree.map(assert_close, gradients[name], expected_gradients[name])


def test_only_its_own_loss_trains_the_policy(actual):
    gradients = actual[1]
    for name in ("ratio", "inv", "fwd", "sparsity", "guard"):
        assert largest(gradients[name]["policy"]) == 0
    assert largest(gradients["policy"]["policy"]) > 1e-3
    assert largest(gradients["policy"]["energies"]) == 0


@pytest.mark.parametrize("name", TERMS)
def test_every_loss_trains_the_encoder(actual, name):
    assert largest(actual[1][name]["encode"]) > 1e-4


@pytest.mark.parametrize("name", ["ratio", "fwd", "inv", "sparsity"])
def test_what_trains_the_energies(actual, name):
    assert largest(actual[1][name]["energies"]) > 1e-4


def test_permuted_latents_and_energies_give_the_same_losses(model):
    order = jnp.array([2, 0, 1])
    graph, params = nnx.split(model)
    permuted = nnx.merge(graph, jax.tree.map(jnp.copy, params))
    for name in ("w_next", "b_hidden", "w_out", "b_out"):
        parameter = getattr(permuted.energies, name)
        parameter[...] = parameter[...][order]
    permuted.energies.w_z[...] = permuted.energies.w_z[...][order][:, order]
    first = permuted.policy.layers[0].kernel
    first[...] = first[...][order]

    rng = np.random.default_rng(1)
    z, z_next = jnp.asarray(rng.uniform(-1, 1, (2, N, K)), jnp.float32)
    action = make_batch().action
    before = nnx.jit(losses)(model, Latents(z, action, z_next))
    after = nnx.jit(losses)(permuted, Latents(z[:, order], action, z_next[:, order]))
    for name in before:
        np.testing.assert_allclose(after[name], before[name], rtol=1e-6)
    # and it takes both: the latents alone are another matter
    others = nnx.jit(losses)(model, Latents(z[:, order], action, z_next[:, order]))
    assert all(abs(float(others[name] - before[name])) > 1e-4 for name in before)
