"""DMS: masks that block exactly, divergences against samples, one price for an edge, a start with all edges free."""

import json
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from flax import nnx
from jaxtyping import Array
from learning import distances

from acf.methods.base import Batch, Spec
from acf.methods.dms import (
    DMS,
    METHOD,
    MIN_VARIANCE,
    START_SIGMA_Z,
    Dynamics,
    Gaussian,
    HParams,
    Masks,
    graphs,
    kl,
    learned_variance,
    loss,
    negative_log_likelihood,
    total,
)
from acf.methods.guard import guard_loss
from acf.training.flat import layout

N, K, A = 6, 3, 4
SPEC = Spec((8, 8, 1), n_actions=A, noop=0, latents=K, depth=2, hidden=8)
HPARAMS = HParams(frozen_epochs=2.0)
RNG = np.random.default_rng(0)
MASKS = Masks(*(jnp.asarray(RNG.integers(0, 2, (N, K, width)), jnp.float32) for width in (K, A)))
Z = jnp.asarray(RNG.normal(size=(N, K)), jnp.float32)
ACTION = jnp.array([0, 1, 2, 3, 3, 2])


@pytest.fixture(scope="module")
def dynamics(with_weights):
    return with_weights(lambda: Dynamics(K, A, hidden=8, rngs=nnx.Rngs(0)))


@pytest.fixture(scope="module")
def model(with_weights):
    return with_weights(lambda: DMS(SPEC, rngs=nnx.Rngs(0)))


def make_batch(epoch):
    rng = np.random.default_rng(0)
    x, x_next = jnp.asarray(rng.integers(0, 256, (2, N, *SPEC.frame_shape), dtype=np.uint8))
    return Batch(x, ACTION, x_next, jnp.float32(epoch))


def test_a_closed_state_edge_blocks_exactly(dynamics):
    """∂m_i/∂z_j is 0 where the mask is, and only there; rows have masks of their own."""
    slopes = nnx.jit(lambda d: jax.jacrev(lambda z: d(z, ACTION, MASKS, HPARAMS).mean)(Z))(dynamics)  # [N, K, N, K]
    for n in range(N):
        assert np.array_equal(np.asarray(slopes[n, :, n]) != 0, np.asarray(MASKS.state[n]) == 1)
        assert not np.any(np.delete(slopes[n], n, axis=1))


def test_a_closed_action_edge_blocks_exactly(dynamics):
    """Where the edges of two actions are closed, the mean cannot tell them apart; where one is open it does."""
    mean = nnx.jit(lambda d, action: d(Z, action, MASKS, HPARAMS).mean)
    means = np.stack([mean(dynamics, jnp.full(N, a)) for a in range(A)])
    mask = np.asarray(MASKS.action)
    seen = 0
    for n, i, a, b in np.ndindex(N, K, A, A):
        if a < b:
            assert (means[a, n, i] != means[b, n, i]) == bool(mask[n, i, a] or mask[n, i, b])
            seen += not (mask[n, i, a] or mask[n, i, b])
    assert seen > 5


def test_a_latents_model_has_weights_of_its_own(dynamics):
    graph, params = nnx.split(dynamics)
    mean_of_first = lambda params: nnx.merge(graph, params)(Z, ACTION, MASKS, HPARAMS).mean[:, 0].sum()  # noqa: E731
    for leaf in jax.tree.leaves(jax.jit(jax.grad(mean_of_first))(params)["networks"]):
        assert np.any(leaf[0])
        assert not np.any(leaf[1:])


def test_widths_are_the_papers():
    dynamics = nnx.eval_shape(lambda: DMS(Spec((16, 16, 1), A, 0, K, hidden=256), rngs=nnx.Rngs(0))).dynamics
    assert [layer.kernel.shape for layer in dynamics.networks.layers] == [(K, K + A, 256), (K, 256, 1)]


def test_kl_against_samples():
    q = Gaussian(jnp.array([0.3, -1.0]), jnp.array([0.5, 0.02]))
    p = Gaussian(jnp.array([0.0, -0.8]), jnp.array([1.5, 0.1]))
    rng = np.random.default_rng(0)
    z = np.asarray(q.mean) + np.sqrt(q.variance) * rng.normal(size=(100_000, 2))
    log_q, log_p = (scipy.stats.norm.logpdf(z, d.mean, np.sqrt(d.variance)) for d in (q, p))
    standard_error = (log_q - log_p).std(0) / np.sqrt(len(z))
    assert (np.abs(np.asarray(kl(q, p)) - (log_q - log_p).mean(0)) < 4 * standard_error).all()
    np.testing.assert_allclose(kl(p, p), 0, atol=1e-6)
    assert (np.asarray(kl(q, p)) != np.asarray(kl(p, q))).all()


def test_kl_is_free_of_the_latents_scale():
    q, p = (Gaussian(*jnp.abs(jnp.asarray(RNG.normal(size=(2, 5)), jnp.float32))) for _ in range(2))
    scaled = (Gaussian(7 * d.mean, 49 * d.variance) for d in (q, p))
    np.testing.assert_allclose(kl(*scaled), kl(q, p), rtol=1e-4)


def test_likelihood_against_scipy():
    x, mean = RNG.normal(size=(2, 4, 3, 5))
    expected = -scipy.stats.norm.logpdf(x, mean, 0.3).sum((1, 2)).mean()
    found = negative_log_likelihood(jnp.asarray(x, jnp.float32), jnp.asarray(mean, jnp.float32), jnp.float32(0.09))
    assert float(found) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("start", [1.0, 0.01])
def test_free_variances_start_where_they_should(start):
    assert float(learned_variance(jnp.zeros(()), start)) == pytest.approx(start, rel=1e-4)
    assert float(learned_variance(jnp.float32(-100), start)) == pytest.approx(MIN_VARIANCE, rel=1e-4)


@pytest.fixture(scope="module")
def value_and_gradients(model):
    graph, params = nnx.split(model)

    @partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    @partial(jax.value_and_grad, has_aux=True)
    def compiled(params, batch, key, hparams):
        return loss(nnx.merge(graph, params), batch, key, hparams)

    def call(hparams=HPARAMS, epoch=3.0, key=0, **replaced):
        changed = nnx.merge_state(params, nnx.State(replaced)) if replaced else params
        return compiled(changed, make_batch(epoch), jax.random.key(key), hparams)

    return call


def test_edges_are_counted_not_averaged(model, value_and_gradients):
    """At the start d·|A| and d·d edges, each open with probability 0.99331, whatever the batch."""
    dynamics = nnx.state(model)["dynamics"]
    fresh = nnx.merge_state(
        dynamics,
        nnx.State({f"{name}_logits": nnx.Param(jnp.zeros((K, w))) for name, w in (("state", K), ("action", A))}),
    )
    (_, terms), _ = value_and_gradients(dynamics=fresh)
    assert float(terms["action_sparsity"]) == pytest.approx(K * A * 0.99331, rel=1e-5)
    assert float(terms["state_sparsity"]) == pytest.approx(K * K * 0.99331, rel=1e-5)


def test_total_has_one_normaliser():
    """By hand. An edge costs action_sparsity / elbo nats, on a frame of any size."""
    names = ("recons", "kl_start", "kl_next", "action_sparsity", "state_sparsity", "l2", "guard")
    terms: dict[str, Array] = dict(zip(names, map(jnp.float32, (100, 2, 3, 5, 7, 11, 0.5)), strict=True))
    hparams = HParams(elbo=4.0, action_sparsity=0.5, state_sparsity=0.25, l2=0.1, guard=20.0)
    on, off = jnp.bool_(False), jnp.bool_(True)
    assert float(total(terms, 10, hparams, on)) == pytest.approx((4 * 105 + 2.5 + 1.75) / 10 + 1.1, rel=1e-6)
    assert float(total(terms, 10, hparams, off)) == pytest.approx(4 * 105 / 10 + 11.1, rel=1e-6)


def test_the_loss_is_the_total_of_its_terms(value_and_gradients):
    (found, terms), gradients = value_and_gradients()
    assert float(found) == pytest.approx(float(total(terms, 8 * 8, HPARAMS, jnp.bool_(False))), rel=1e-6)
    for part in ("encoder", "decode", "dynamics", "scale_x", "start_bias", "start_scale"):
        assert any(map(np.any, jax.tree.leaves(gradients[part]))), part


def test_edges_are_open_and_free_until_their_epoch(value_and_gradients):
    dear = HParams(frozen_epochs=2.0, action_sparsity=1e6, state_sparsity=1e6)
    for epoch, frozen in ((0.0, True), (1.99, True), (2.0, False)):
        (found, _), gradients = value_and_gradients(dear, epoch)
        assert (float(found) > 1e4) != frozen
        for name in ("state_logits", "action_logits"):
            assert np.any(gradients["dynamics"][name][...]) != frozen


def test_open_masks_of_the_start_are_ones(dynamics):
    for frozen in (True, False):
        masks = dynamics.sample_masks(jax.random.key(0), 100, HParams(speed=50.0), jnp.bool_(frozen))
        assert all((np.asarray(mask) == 1).all() for mask in masks) == frozen


def test_speed_is_a_learning_rate_of_its_own(dynamics):
    """A step of lr in the parameter is a step of speed · lr in the logit."""
    slow, fast = (dynamics.logits(HParams(speed=speed)) for speed in (1.0, 10.0))
    np.testing.assert_allclose(fast.state - 5, 10 * (slow.state - 5), rtol=1e-4)


def test_reconstruction_and_l2_count_both_frames(model, value_and_gradients):
    batch = make_batch(3)
    q, q_next = (nnx.jit(lambda model, x: model.posterior(x))(model, x) for x in (batch.x, batch.x_next))
    (_, terms), _ = value_and_gradients()
    l2 = (np.asarray(q.mean) ** 2).sum(1) / 2 + (np.asarray(q_next.mean) ** 2).sum(1) / 2
    assert float(terms["l2"]) == pytest.approx(l2.mean(), rel=1e-4)
    start = model.start(HPARAMS)
    assert float(terms["kl_start"]) == pytest.approx(np.asarray(kl(q, start)).sum(1).mean(), rel=1e-4)
    # Of 2 x 64 pixels, up to the noise of z: at the end of tanh far out, so a bound from what errors are possible.
    variance = float(model.variance_x())
    least = 2 * 64 * np.log(2 * np.pi * variance) / 2
    assert least < float(terms["recons"]) < least + 2 * 64 * 4 / (2 * variance)


def test_latents_are_the_posteriors_mean(model):
    x = make_batch(0).x
    encode = nnx.jit(lambda model, x: (model.encode(x), model.posterior(x), model.encoder(x)))
    z, posterior, raw = encode(model, x)
    assert np.array_equal(z, posterior.mean)
    assert np.array_equal(z, np.asarray(raw)[:, :K])
    # Noise as wide as the prior would drown what little a fresh encoder, with outputs near 0, tells apart.
    np.testing.assert_allclose(posterior.variance, learned_variance(raw[:, K:], START_SIGMA_Z**2), rtol=1e-5)


def test_the_guard_holds_latents_apart(value_and_gradients, model):
    (_, terms), _ = value_and_gradients()
    batch = make_batch(3)
    mean = nnx.jit(lambda model, x: model.encode(x))(model, jnp.concatenate([batch.x, batch.x_next]))
    assert float(terms["guard"]) == pytest.approx(float(guard_loss(mean)), rel=1e-4)
    assert float(terms["guard"]) > 0


def test_logits_and_variances_do_not_decay(model):
    """Decay would pull an edge's probability to where it started, and a variance too."""
    flat = layout(nnx.state(model))
    decayed = jax.tree.leaves_with_path(flat.unravel(jnp.asarray(flat.decayed)))
    kept = {jax.tree_util.keystr(path, simple=True, separator=".") for path, value in decayed if not value.any()}
    own = {"dynamics.scale", "dynamics.state_logits", "dynamics.action_logits", "scale_x", "start_scale", "start_bias"}
    assert {name.removesuffix(".value") for name in kept} >= own
    assert all("kernel" not in name for name in kept)


def test_graphs_are_plain_json(model):
    found = json.loads(json.dumps(METHOD.bind(SPEC).extras(nnx.state(model), HPARAMS)))
    assert found == graphs(model, HPARAMS)
    logits = model.dynamics.logits(HPARAMS)
    for name, width in (("state", K), ("action", A)):
        probability = np.array(found["graphs"][name]["probability"])
        assert probability.shape == (K, width)
        np.testing.assert_allclose(probability, jax.nn.sigmoid(getattr(logits, name)), atol=1e-5)
        assert np.array_equal(np.array(found["graphs"][name]["edges"]), probability > 0.5)


def test_graphs_are_compared_up_to_the_order_of_the_latents():
    state, action = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]]), np.array([[1, 0], [0, 1], [0, 0]])
    order = np.array([2, 0, 1])  # learned latent n is factor order[n]
    learned = state[np.ix_(order, order)], action[order]
    assert distances(*learned, state, action, np.argsort(order)) == (0, 0)
    assert distances(*learned, state, action, np.arange(3)) == (2, 4)
    missing = learned[0] * 0, learned[1]
    assert distances(*missing, state, action, np.argsort(order)) == (4, 0)
