"""Parameters as one vector."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from acf.methods import get
from acf.methods.base import Batch, Learner, Spec
from acf.training import population
from acf.training.flat import ALIGN, layout
from acf.training.population import WEIGHT_DECAY, State

SPEC = Spec((32, 32, 3), 3, 0, 2, depth=2, hidden=8)


def test_there_and_back():
    params = get("acf").bind(SPEC).init(jax.random.key(0))
    flat = layout(params)
    vector = flat.ravel(params)
    assert vector.shape == (flat.size,)
    assert flat.size % ALIGN == 0
    jax.tree.map(np.testing.assert_array_equal, flat.unravel(vector), params)
    # Nothing overlaps: a number put into one leaf is seen in that leaf alone.
    for n, leaf in enumerate(jax.tree.leaves(params)):
        leaves = [jnp.zeros_like(other) for other in jax.tree.leaves(params)]
        leaves[n] = jnp.ones_like(leaf)
        back = jax.tree.leaves(flat.unravel(flat.ravel(jax.tree.unflatten(jax.tree.structure(params), leaves))))
        assert [float(other.sum()) for other in back] == [leaf.size if m == n else 0 for m in range(len(back))]


def test_biases_and_scales_are_not_decayed():
    params = jax.eval_shape(get("acf").bind(SPEC).init, jax.random.key(0))
    flat = layout(params)
    decayed = {
        jax.tree_util.keystr(path, simple=True, separator="."): np.unique(flag)
        for path, flag in jax.tree.leaves_with_path(flat.unravel(jnp.asarray(flat.decayed)))
    }
    assert {name for name, flag in decayed.items() if flag.tolist() == [True]} == {
        name for name in decayed if "kernel" in name or ".w_" in name
    }
    assert all(len(flag) == 1 for flag in decayed.values())


def steps(loss, start, times):
    """The states after one step each at these times."""
    learner, flat = Learner(lambda key: start, loss, lambda params, frames: frames, lambda *_: {}), layout(start)
    batch, hparams = Batch(*(jnp.zeros(()),) * 4), type("HParams", (), {"lr": 0.1})
    vector = flat.ravel(start)
    state = State(vector, population.ADAM.init(vector), jnp.int32(-1))
    for t in times:
        state, _ = population._step(learner, flat, state, batch, jax.random.key(0), hparams, jnp.int32(t))
        yield state, flat.unravel(state.params)


def test_one_step_is_optax_adamw():
    """Three steps on a loss with a known gradient, against optax on the tree."""
    target = {"kernel": jnp.arange(6.0).reshape(2, 3), "bias": jnp.array([0.5])}
    start = jax.tree.map(lambda leaf: leaf * 0.3 + 1, target)

    def loss(params, batch, key, hparams):
        leaves = zip(*map(jax.tree.leaves, (params, target)), strict=True)
        return jnp.asarray(sum(jnp.sum((p - t) ** 2) for p, t in leaves)), {}

    adamw = optax.adamw(0.1, weight_decay=WEIGHT_DECAY, mask={"kernel": True, "bias": False})
    expected, optimiser = start, adamw.init(start)
    for _, found in steps(loss, start, range(3)):
        gradient = jax.grad(lambda params: loss(params, None, None, None)[0])(expected)
        updates, optimiser = adamw.update(gradient, optimiser, expected)
        expected = optax.apply_updates(expected, updates)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), found, expected)


def test_a_gradient_that_is_not_finite_stops_a_member():
    """The root of 0 is finite and its slope is not."""
    start = {"kernel": jnp.array([0.0, 1.0])}

    def loss(params, batch, key, hparams):
        return jnp.sqrt(params["kernel"]).sum(), {}

    (first, at_first), (second, at_second) = steps(loss, start, (3, 4))
    assert (int(first.diverged_at), int(second.diverged_at)) == (3, 3)
    assert at_first["kernel"][0] == 0
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(second))
    np.testing.assert_array_equal(at_second["kernel"], at_first["kernel"])
