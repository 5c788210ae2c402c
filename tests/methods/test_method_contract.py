"""What the trainer relies on: names, weights, settings as arrays, members that do not touch each other."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from acf.errors import AcfError
from acf.methods import METHODS, get
from acf.methods.acf import HParams, ramp
from acf.methods.base import Batch, Spec

SPEC = Spec((16, 16, 1), n_actions=3, noop=1, latents=2, depth=2, hidden=8)
WEIGHTS = ["ratio", "fwd", "inv", "policy", "sparsity", "guard"]
HPARAMS = HParams(sparsity=5.0)
KEY = jax.random.key(0)


def make_batch(epoch=8.0):
    rng = np.random.default_rng(0)
    x, x_next = jnp.asarray(rng.integers(0, 256, (2, 8, *SPEC.frame_shape), dtype=np.uint8))
    return Batch(x, jnp.asarray(rng.integers(0, 3, 8)), x_next, jnp.float32(epoch))


@pytest.fixture(scope="module")
def learner():
    return get("acf").bind(SPEC)


@pytest.fixture(scope="module")
def member(with_weights):
    return lambda seed: nnx.state(with_weights(lambda: get("acf").model(SPEC, rngs=nnx.Rngs(0)), seed))


@pytest.fixture(scope="module")
def params(member):
    return member(0)


@pytest.fixture(scope="module")
def compiled(learner):
    """Once for all: settings are traced."""
    return jax.jit(learner.loss)


@pytest.fixture(scope="module")
def loss(compiled, params):
    return lambda hparams, epoch=8.0: compiled(params, make_batch(epoch), KEY, hparams)


def test_unknown_method():
    with pytest.raises(AcfError, match=r"unknown method 'nope': expected one of lattice, acf"):
        get("nope")


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_known_by_its_name(name):
    method = get(name)
    assert method.name == name
    defaults = method.hparams()
    assert all(isinstance(value, float) for value in dataclasses.asdict(defaults).values())
    assert defaults.lr > 0


def test_the_terms_are_the_weights(loss):
    total, terms = loss(HPARAMS)
    assert set(terms) == set(WEIGHTS)
    assert all(term.shape == () and term.dtype == jnp.float32 for term in terms.values())
    assert total.dtype == jnp.float32


@pytest.mark.parametrize("name", WEIGHTS)
def test_a_weight_of_zero_removes_exactly_its_term(loss, name):
    total, terms = loss(HPARAMS)
    rest, _ = loss(dataclasses.replace(HPARAMS, **{name: 0.0}))
    share = 0.6 if name == "sparsity" else 1.0  # epoch 8 of a ramp from 5 to 10
    expected = getattr(HPARAMS, name) * share * float(terms[name])
    assert abs(expected) > 1e-3, "nothing to remove"
    assert float(total - rest) == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_the_total_is_linear_in_the_weights(learner, params):
    """Its derivative with respect to a weight is that term, and 0 for what is no weight."""
    total = lambda hparams: learner.loss(params, make_batch(), KEY, hparams)  # noqa: E731
    slopes, terms = jax.jit(jax.grad(total, has_aux=True))(HPARAMS)
    for name in WEIGHTS:
        share = float(ramp(jnp.float32(8), 5.0, 10.0)) if name == "sparsity" else 1.0
        assert float(getattr(slopes, name)) == pytest.approx(share * float(terms[name]), rel=1e-5)
    assert float(slopes.lr) == 0


def test_sparsity_waits_for_its_epoch(loss):
    off, terms = loss(HPARAMS, epoch=5.0)
    assert float(off) == float(loss(dataclasses.replace(HPARAMS, sparsity=0.0), epoch=5.0)[0])
    on, _ = loss(HPARAMS, epoch=10.0)
    assert float(on - off) == pytest.approx(5 * float(terms["sparsity"]), rel=1e-3)


def test_the_papers_method_has_no_sparsity():
    assert HParams().sparsity == 0


def test_members_together_equal_members_alone(learner, compiled, member):
    """Other weights, other settings, another key: vmapped as the trainer does, each gets its own result."""
    members = [member(7), member(3)]
    settings = [HParams(fwd=1.0, noise=0.0), HParams(ratio=2.0, noise=0.2, sparsity=1.0)]
    keys = jax.random.split(KEY)
    stack = lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves])  # noqa: E731
    together = jax.jit(jax.vmap(learner.loss, in_axes=(0, None, 0, 0)))(
        jax.tree.map(stack, *members), make_batch(), keys, jax.tree.map(stack, *settings)
    )
    for n in range(2):
        expected = compiled(members[n], make_batch(), keys[n], settings[n])
        jax.tree.map(lambda a, b, n=n: np.testing.assert_allclose(a[n], b, rtol=1e-5), together, expected)


def test_init_makes_float32_parameters_of_the_models_shape(learner, params):
    fresh = jax.eval_shape(learner.init, KEY)
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), fresh) == jax.tree.map(
        lambda leaf: (leaf.shape, jnp.dtype(jnp.float32)), params
    )


def test_encode(learner, params):
    z = np.asarray(jax.jit(learner.encode)(params, make_batch().x))
    assert z.shape == (8, 2)
    assert (np.abs(z) < 1).all()
    assert (z.std(0) > 0).all()
