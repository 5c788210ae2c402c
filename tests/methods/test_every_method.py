"""What the trainer relies on, of every method but ACF (`test_method_contract.py`) and lattice (`test_lattice.py`)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from acf.methods import METHODS, get
from acf.methods.base import Batch, Spec

SPEC = Spec((8, 8, 1), n_actions=3, noop=1, latents=2, depth=2, hidden=8)
KEYS = jax.random.split(jax.random.key(0))
QUICKLY = {"xla_backend_optimization_level": 0}  # to compile takes longer than to run


def make_batch():
    rng = np.random.default_rng(0)
    x, x_next = jnp.asarray(rng.integers(0, 256, (2, 8, *SPEC.frame_shape), dtype=np.uint8))
    return Batch(x, jnp.asarray(rng.integers(0, 3, 8)), x_next, jnp.float32(8))


@pytest.fixture(scope="module", params=[name for name in METHODS if name not in ("acf", "lattice")])
def case(request, with_weights):
    method = get(request.param)
    members = [nnx.state(with_weights(lambda: method.model(SPEC, rngs=nnx.Rngs(0)), seed)) for seed in (7, 3)]
    return method, method.bind(SPEC), members


def stacked(trees):
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf, jnp.float32) for leaf in leaves]), *trees)


def test_members_together_equal_members_alone(case):
    method, learner, members = case
    settings = [method.hparams(), jax.tree.map(lambda value: 0.5 * value, method.hparams())]
    population = jax.jit(jax.vmap(learner.loss, in_axes=(0, None, 0, 0)), compiler_options=QUICKLY)
    together = population(stacked(members), make_batch(), KEYS, stacked(settings))
    alone = jax.jit(learner.loss, compiler_options=QUICKLY)
    for n in range(2):
        total, terms = alone(members[n], make_batch(), KEYS[n], settings[n])
        for value in (total, *terms.values()):
            assert value.shape == ()
            assert value.dtype == jnp.float32
            assert np.isfinite(value)
        jax.tree.map(lambda a, b, n=n: np.testing.assert_allclose(a[n], b, rtol=1e-4), together, (total, terms))


def test_latents_hang_on_their_own_frame_alone(case):
    _, learner, members = case
    encode, x = jax.jit(learner.encode), make_batch().x
    z = np.asarray(encode(members[0], x))
    assert z.shape == (8, 2)
    assert (z.std(0) > 0).all()
    np.testing.assert_allclose(encode(members[0], x[::-1])[::-1], z, rtol=1e-4, atol=1e-5)


def test_init_makes_float32_parameters(case):
    _, learner, members = case
    fresh = jax.eval_shape(learner.init, KEYS[0])
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), fresh) == jax.tree.map(
        lambda leaf: (leaf.shape, jnp.dtype(jnp.float32)), members[0]
    )
