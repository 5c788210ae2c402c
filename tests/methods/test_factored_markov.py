"""Factored Markov is ACF with the other weights at zero, and so are the ablations."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from acf.methods import acf, factored_markov
from acf.methods.base import Batch, Spec
from acf.training.config import make_hparams
from acf.training.presets import get_preset

SPEC = Spec((8, 8, 1), n_actions=3, noop=1, latents=2, depth=2, hidden=8)
KEY = jax.random.key(0)
ABLATIONS = {"no-fwd": "fwd", "no-inv": "inv", "no-policy": "policy", "no-ratio": "ratio"}


def make_batch():
    rng = np.random.default_rng(0)
    x, x_next = jnp.asarray(rng.integers(0, 256, (2, 8, *SPEC.frame_shape), dtype=np.uint8))
    return Batch(x, jnp.asarray(rng.integers(0, 3, 8)), x_next, jnp.float32(8))


def value_and_gradients(method, graph):
    @partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    @partial(jax.value_and_grad, has_aux=True)
    def compiled(params, hparams):
        return method.loss(nnx.merge(graph, params), make_batch(), KEY, hparams)

    return compiled


@pytest.fixture(scope="module")
def whole(with_weights):
    graph, params = nnx.split(with_weights(lambda: acf.ACF(SPEC, rngs=nnx.Rngs(0))))
    return params, value_and_gradients(acf.METHOD, graph)


def test_factored_markov_is_acf_without_ratio_and_policy(whole):
    """With a policy network that says "uniform": Factored Markov has none."""
    params, of_acf = whole
    uniform = nnx.merge_state(params, nnx.State({"policy": jax.tree.map(jnp.zeros_like, params["policy"])}))
    left_out = acf.HParams(fwd=3.0, inv=5.0, ratio=0.0, policy=0.0, noise=0.1, guard=7.0)
    (expected, expected_terms), expected_gradients = of_acf(uniform, left_out)

    graph = nnx.graphdef(nnx.eval_shape(lambda: factored_markov.FactoredMarkov(SPEC, rngs=nnx.Rngs(0))))
    own = nnx.State({name: params[name] for name in ("encode", "energies")})
    hparams = factored_markov.HParams(fwd=3.0, inv=5.0, noise=0.1, guard=7.0)
    (found, terms), gradients = value_and_gradients(factored_markov.METHOD, graph)(own, hparams)

    assert float(found) == pytest.approx(float(expected), rel=1e-6)
    assert set(terms) == {"fwd", "inv", "guard"}
    for name in terms:
        assert float(terms[name]) == pytest.approx(float(expected_terms[name]), rel=1e-6)
    for name in own:
        assert any(map(np.any, jax.tree.leaves(gradients[name])))
        jax.tree.map(
            partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5), gradients[name], expected_gradients[name]
        )
    assert not any(map(np.any, jax.tree.leaves(expected_gradients["policy"])))


@pytest.mark.parametrize(("preset", "left_out"), ABLATIONS.items())
def test_an_ablation_is_acf_without_that_term(whole, preset, left_out):
    params, of_acf = whole
    paper, ablation = (make_hparams(acf.METHOD, get_preset(p, "acf", "doorkey").hparams) for p in ("paper", preset))
    assert getattr(paper, left_out) > 0
    (full, terms), _ = of_acf(params, paper)
    (rest, same), _ = of_acf(params, ablation)
    assert float(full - rest) == pytest.approx(getattr(paper, left_out) * float(terms[left_out]), rel=1e-4, abs=1e-3)
    assert {name: float(term) for name, term in same.items()} == {name: float(term) for name, term in terms.items()}


def test_defaults_are_those_of_acf():
    ours, theirs = factored_markov.HParams(), acf.HParams()
    assert all(getattr(theirs, name) == value for name, value in vars(ours).items())
