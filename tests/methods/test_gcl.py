"""GCL: a logit that is a sum over factors, negatives that move (z, a) together, weights that reach what they name."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import moving_point
import numpy as np
import pytest
from flax import nnx

from acf.methods.base import Batch, Spec
from acf.methods.gcl import GCL, HParams, classifier_loss, logit, loss
from acf.methods.transitions import Latents, derangement, two_sample_loss

N, K, A = 6, 3, 4
SPEC = Spec((8, 8, 1), n_actions=A, noop=0, latents=K, depth=2, hidden=8)
ONLY_CLASSIFIER = HParams(classifier=3.0, recons=0.0, guard=0.0)
ONLY_RECONS = HParams(classifier=0.0, recons=2.0, guard=0.0)


@pytest.fixture(scope="module")
def model(with_weights):
    return with_weights(lambda: GCL(SPEC, rngs=nnx.Rngs(0)))


def latents():
    rng = np.random.default_rng(0)
    z, z_next = jnp.asarray(rng.uniform(-1, 1, (2, N, K)), jnp.float32)
    return Latents(z, jnp.asarray(rng.integers(0, A, N)), z_next)


def make_batch():
    rng = np.random.default_rng(0)
    x, x_next = jnp.asarray(rng.integers(0, 256, (2, N, *SPEC.frame_shape), dtype=np.uint8))
    return Batch(x, jnp.asarray(rng.integers(0, A, N)), x_next, jnp.float32(0))


def test_an_energy_sees_its_own_next_latent_alone(model):
    """Exactly: the Jacobian of [K, A] energies in z' is diagonal in the factor. In z it is full."""
    z, _, z_next = latents()
    energies = lambda z_next, z: model.energies(z_next[None], z[None])[0]  # noqa: E731
    in_next, in_z = jax.jit(jax.jacrev(energies, argnums=(0, 1)))(z_next[0], z[0])  # [K, A, K]
    for k in range(K):
        for other in range(K):
            assert np.all(in_next[k, :, other] != 0) if k == other else not np.any(in_next[k, :, other])
    assert np.all(in_z != 0)


def test_widths_are_the_papers():
    model = nnx.eval_shape(lambda: GCL(dataclasses.replace(SPEC, hidden=256), rngs=nnx.Rngs(0)))
    shapes = [layer.kernel.shape for layer in model.energies.networks.layers]
    assert shapes == [(K, 1 + K, 128), (K, 128, 128), (K, 128, A)]


def test_without_a_decoder_the_rest_is_the_same(model):
    bare = GCL(dataclasses.replace(SPEC, decoder=False), rngs=nnx.Rngs(1))
    state = nnx.state(model)
    nnx.update(bare, nnx.State({name: state[name] for name in ("encode", "energies")}))
    total, terms = loss(bare, make_batch(), jax.random.key(0), ONLY_CLASSIFIER)
    expected, all_terms = loss(model, make_batch(), jax.random.key(0), ONLY_CLASSIFIER)
    assert set(all_terms) - set(terms) == {"recons"}
    assert float(total) == pytest.approx(float(expected), rel=1e-5)


def test_negatives_move_state_and_action_together(model):
    """Row by row: each z' with its own (z, a), and with the (z, a) of one other row."""
    batch, other = latents(), jnp.array([2, 3, 4, 5, 0, 1])
    assert (np.asarray(batch.action)[other] != np.asarray(batch.action)).any()

    def one(n, m):
        return float(
            logit(model.energies, batch.z_next[jnp.array([n])], batch.z[jnp.array([m])], batch.action[jnp.array([m])])[
                0
            ]
        )

    real = np.array([one(n, n) for n in range(N)])
    fake = np.array([one(n, int(m)) for n, m in enumerate(other)])
    expected = (np.log1p(np.exp(-real)).mean() + np.log1p(np.exp(fake)).mean()) / 2
    assert float(nnx.jit(classifier_loss)(model.energies, batch, other)) == pytest.approx(expected, rel=1e-5)


@pytest.fixture(scope="module")
def gradients(model):
    graph, params = nnx.split(model)

    @partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    @partial(jax.grad, has_aux=True)
    def compiled(params, hparams):
        return loss(nnx.merge(graph, params), make_batch(), jax.random.key(0), hparams)

    return lambda hparams: compiled(params, hparams)


def reached(gradients):
    return {part for part in ("encode", "decode", "energies") if any(map(np.any, jax.tree.leaves(gradients[part])))}


def test_each_weight_reaches_its_own_network_and_the_encoder(gradients):
    assert reached(gradients(ONLY_CLASSIFIER)[0]) == {"encode", "energies"}
    assert reached(gradients(ONLY_RECONS)[0]) == {"encode", "decode"}


def test_reconstruction_is_a_mean_over_pixels_and_both_frames(model, gradients):
    batch = make_batch()
    made = nnx.jit(lambda model, x: model.decode(model.encode(x)))
    x, x_next = (np.asarray(frames, np.float64) / 127.5 - 1 for frames in (batch.x, batch.x_next))
    errors = [((np.asarray(made(model, f)) - p) ** 2).mean() for f, p in ((batch.x, x), (batch.x_next, x_next))]
    assert float(gradients(ONLY_RECONS)[1]["recons"]) == pytest.approx(np.mean(errors), rel=1e-4)


def test_latent_noise_is_off_as_published():
    assert HParams().noise == 0


def test_the_best_classifier_of_the_moving_point():
    """The analytic log-ratio scores what the literature's integral says: no learner can be below it."""
    s, action, s_next = moving_point.sample(jax.random.key(0), 100_000)
    other = derangement(jax.random.key(1), len(action))
    real = moving_point.log_ratio(s, action, s_next)
    fake = moving_point.log_ratio(s[other], action[other], s_next)
    assert float(two_sample_loss(real, fake)) == pytest.approx(0.069, abs=0.002)
    assert float(((real > 0).mean() + (fake < 0).mean()) / 2) == pytest.approx(0.979, abs=0.002)
