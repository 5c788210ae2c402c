"""MSA: three losses, each with its own network; smoothness that stays finite where nothing moves."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from acf.methods.base import Batch, Spec
from acf.methods.msa import MSA, HParams, inverse_loss, loss, ratio_loss, smoothness_loss
from acf.methods.transitions import Latents

N, K, A = 6, 3, 4
SPEC = Spec((8, 8, 1), n_actions=A, noop=0, latents=K, depth=2, hidden=8)
NOTHING = HParams(inverse=0.0, ratio=0.0, smoothness=0.0)


@pytest.fixture(scope="module")
def model(with_weights):
    return with_weights(lambda: MSA(SPEC, rngs=nnx.Rngs(0)))


def latents():
    rng = np.random.default_rng(0)
    z, z_next = jnp.asarray(rng.uniform(-1, 1, (2, N, K)), jnp.float32)
    return Latents(z, jnp.asarray(rng.integers(0, A, N)), z_next)


def moved(*lengths):
    """Transitions along (0.6, 0.8) of these lengths."""
    z = jnp.full((len(lengths), 2), 0.3)
    return Latents(z, jnp.zeros(len(lengths), int), z + jnp.outer(jnp.array(lengths), jnp.array([0.6, 0.8])))


def test_widths_are_the_papers():
    model = nnx.eval_shape(lambda: MSA(dataclasses.replace(SPEC, hidden=256), rngs=nnx.Rngs(0)))
    assert [layer.kernel.shape for layer in model.inverse.layers] == [(2 * K, 128), (128, A)]
    assert [layer.kernel.shape for layer in model.ratio.layers] == [(2 * K, 128), (128, 1)]


def test_negatives_pair_a_state_with_anothers_next(model):
    """`(z^n, z'^p(n))`, not both moved."""
    batch, other = latents(), np.array([2, 3, 4, 5, 0, 1])
    one = lambda n, m: float(model.ratio(jnp.concatenate([batch.z[n], batch.z_next[m]])[None])[0, 0])  # noqa: E731
    real = np.array([one(n, n) for n in range(N)])
    fake = np.array([one(n, m) for n, m in enumerate(other)])
    expected = (np.log1p(np.exp(-real)).mean() + np.log1p(np.exp(fake)).mean()) / 2
    assert float(nnx.jit(ratio_loss)(model.ratio, batch, jnp.asarray(other))) == pytest.approx(expected, rel=1e-5)


def test_an_inverse_model_that_knows_nothing(model):
    ignorant = nnx.merge(nnx.graphdef(model.inverse), jax.tree.map(jnp.zeros_like, nnx.state(model.inverse)))
    assert float(inverse_loss(ignorant, latents())) == pytest.approx(np.log(A), rel=1e-6)


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ((0.3,), 0.04),  # (0.3 - 0.1)²
        ((0.05,), 0.0),
        ((0.3, 0.05), 0.02),
        ((0.3, 0.5), 0.1),  # of each excess its square, then the mean: not (mean excess)² = 0.09
    ],
)
def test_smoothness_by_hand(lengths, expected):
    assert float(smoothness_loss(moved(*lengths), 0.1)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("max_step", [0.0, 0.1])
def test_smoothness_where_nothing_moves(max_step):
    gradient = jax.jit(jax.grad(lambda latents: smoothness_loss(latents, max_step), allow_int=True))(moved(0.0, 0.0))
    assert not np.any(gradient.z)
    assert not np.any(gradient.z_next)


@pytest.fixture(scope="module")
def gradients(model):
    graph, params = nnx.split(model)

    @partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    @partial(jax.grad, has_aux=True)
    def compiled(params, hparams, batch):
        return loss(nnx.merge(graph, params), batch, jax.random.key(0), hparams)

    def gradients(hparams, still=False):
        rng = np.random.default_rng(0)
        x, x_next = jnp.asarray(rng.integers(0, 256, (2, N, *SPEC.frame_shape), dtype=np.uint8))
        batch = Batch(x, jnp.asarray(rng.integers(0, A, N)), x if still else x_next, jnp.float32(0))
        return compiled(params, hparams, batch)[0]

    return gradients


@pytest.mark.parametrize(
    ("name", "expected"),
    [("inverse", {"encode", "inverse"}), ("ratio", {"encode", "ratio"}), ("smoothness", {"encode"})],
)
def test_each_weight_reaches_its_own_network_and_the_encoder(gradients, name, expected):
    found = gradients(dataclasses.replace(NOTHING, **{name: 1.0}))
    parts = ("encode", "inverse", "ratio")
    assert {part for part in parts if any(map(np.any, jax.tree.leaves(found[part])))} == expected


def test_finite_gradients_of_frames_that_do_not_change(gradients):
    """A no-op: z' is z exactly."""
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients(HParams(), still=True)))
