"""A world with known densities: what the energies learn is the true log-ratio, whatever policy collected the data.

The bounds leave room around the worst of five seeds. That was, with forward and inverse loss: slope 0.98 to 1.01, R²
0.992, rms error 0.13 where the ratios have 1.3. With the inverse loss alone: error 0.11 from uniform data, 0.18 from
skewed, 1.74 uncorrected. With the ratio loss: 0.08, 0.09 and 1.17.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from toy import Toy, learn_ratios

FIVE = Toy()
TWO = Toy(delta=((0.4, 0.0), (0.0, 0.0)), noop=1)


def effects(toy, ratios):
    """Without the no-op's own, which is 0."""
    return np.delete(np.asarray(ratios), toy.noop, axis=-1)


def rms(x):
    return float(np.sqrt((x**2).mean()))


def learn_three_ways(toy, model, term, skew):
    """True ratios; those learned from uniform data, from skewed data, and from skewed data as if it were uniform."""

    @jax.jit
    @partial(jax.vmap, in_axes=(None, 0, 0))
    def learn(model, skew, corrected):
        return learn_ratios(toy, model, {term: 1.0}, skew=skew, corrected=corrected, steps=800, batch_size=256)

    learned = learn(model, jnp.array([0.0, skew, skew]), jnp.array([1.0, 1.0, 0.0]))
    return [effects(toy, ratios) for ratios in (toy.log_ratios(*toy.points()), *learned)]


def policy_offset(toy, skew):
    """`log π(a|s) / π(a₀|s)` at the points: what the energies take up if nothing corrects for the policy."""
    log_pi = toy.log_policy(toy.points()[0], jnp.float32(skew))
    return effects(toy, log_pi - log_pi[..., [toy.noop]])


def test_forward_and_inverse_loss_learn_the_log_ratios(with_weights):
    settings = {"skew": jnp.float32(0), "corrected": jnp.float32(1), "steps": 1000, "batch_size": 64}
    learn = jax.jit(lambda model: learn_ratios(FIVE, model, {"fwd": 1.0, "inv": 1.0}, **settings))
    true, learned = effects(FIVE, FIVE.log_ratios(*FIVE.points())), effects(FIVE, learn(with_weights(FIVE.model)))
    # up to a function of z (and a): without the mean over s' of each s and a
    x, y = (ratios - ratios.mean(1, keepdims=True) for ratios in (true, learned))
    slope = (x * y).sum() / (x * x).sum()
    r2 = 1 - ((y - x) ** 2).sum() / (x * x).sum()
    assert 0.95 < slope < 1.05
    assert r2 > 0.985
    # the inverse loss fixes that function too
    assert rms(learned - true) < 0.2


def test_inverse_loss_corrects_for_the_policy(with_weights):
    true, uniform, skewed, uncorrected = learn_three_ways(FIVE, with_weights(FIVE.model), "inv", skew := 2.0)
    assert rms(true) > 1
    assert rms(uniform - true) < 0.2
    assert rms(skewed - true) < 0.25
    assert rms(skewed - uniform) < 0.2
    assert rms(uncorrected - true) > 1.2
    assert rms(uncorrected - true - policy_offset(FIVE, skew)) < 0.3, "wrong by just the policy"


def test_ratio_loss_corrects_for_the_policy(with_weights):
    """With two actions, where one against the rest is one against the no-op and the correction is exact."""
    true, uniform, skewed, uncorrected = learn_three_ways(TWO, with_weights(TWO.model), "ratio", skew := 1.0)
    assert rms(true) > 1
    assert rms(uniform - true) < 0.15
    assert rms(skewed - true) < 0.15
    assert rms(skewed - uniform) < 0.1
    assert rms(uncorrected - true) > 0.8
    assert rms(uncorrected - true - policy_offset(TWO, skew)) < 0.15, "wrong by just the policy"
