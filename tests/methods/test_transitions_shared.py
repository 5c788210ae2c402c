"""What the contrastive baselines share: both frames in one pass, negatives that are never positives."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acf.methods.base import Batch
from acf.methods.transitions import derangement, encode_pair, two_sample_loss


@pytest.mark.parametrize("n", [2, 3, 128])
def test_no_row_is_paired_with_itself(n):
    others = np.asarray(jax.jit(jax.vmap(lambda key: derangement(key, n)))(jax.random.split(jax.random.key(0), 300)))
    assert (others != np.arange(n)).all()
    assert (np.sort(others, 1) == np.arange(n)).all(), "every row is someone's partner, once"


def test_every_other_row_can_be_the_partner():
    others = np.asarray(jax.jit(jax.vmap(lambda key: derangement(key, 5)))(jax.random.split(jax.random.key(0), 2000)))
    counts = np.bincount(others[:, 2], minlength=5)
    assert counts[2] == 0
    assert counts[[0, 1, 3, 4]].min() > 400


def test_two_sample_loss_by_hand():
    loss = float(two_sample_loss(jnp.array([0.0, 2.0]), jnp.array([0.0, 1.0])))
    real = (math.log(2) + math.log(1 + math.exp(-2))) / 2
    fake = (math.log(2) + math.log(1 + math.exp(1))) / 2
    assert loss == pytest.approx((real + fake) / 2, rel=1e-6)


def test_two_sample_loss_far_out():
    """From logits: a probability would round to 0 or 1."""
    assert float(two_sample_loss(jnp.array([200.0]), jnp.array([-200.0]))) == 0
    assert float(two_sample_loss(jnp.array([-200.0]), jnp.array([200.0]))) == pytest.approx(200)


def test_encode_pair_keeps_x_and_x_next_apart():
    x, x_next = jnp.zeros((3, 16, 16, 1), jnp.uint8), jnp.full((3, 16, 16, 1), 7, jnp.uint8)
    batch = Batch(x, jnp.arange(3), x_next, jnp.float32(0))
    latents = encode_pair(lambda frames: frames.reshape(len(frames), -1)[:, :2].astype(jnp.float32), batch)
    assert (np.asarray(latents.z) == 0).all()
    assert (np.asarray(latents.z_next) == 7).all()
    assert np.array_equal(latents.action, batch.action)
