"""The terms of the lattice's loss, each where its answer is known."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import acf
from acf.methods import get
from acf.methods.base import Batch, Spec
from acf.methods.lattice import (
    CONTEXT,
    GAIN,
    HParams,
    Lattice,
    Moves,
    batch_loss,
    by_episode,
    class_weights,
    context_loss,
    episode_loss,
    inverse_loss,
    length,
    loss,
    own_is_right,
    owner_loss,
    squared_distances,
    warm_up_and_cool_down,
)
from acf.methods.sampling import FRAMES, Known

UNIT = 3.0
SPEC = Spec((16, 16, 1), n_actions=3, noop=0, latents=2, hidden=8)


def moves(change, action, changed=None, n_actions=None):
    change = np.asarray(change, np.float32)
    changed = (change != 0).any(1) if changed is None else changed
    one_hot = np.eye(n_actions or max(action) + 1, dtype=np.float32)[np.asarray(action)]
    return Moves(jnp.asarray(change), jnp.asarray(one_hot * np.asarray(changed)[:, None]))


# --- the price of a step, on codes written by hand


def step_price(code, data, changed):
    """In units, each action counting alike."""
    of = moves(UNIT * (code[data.j] - code[data.i]), data.action, changed, data.n_actions)
    return float(of.mean(length(of.change).sum(1))) / UNIT


def of(data, *names):
    return [data.factors[:, data.factor_names.index(name)] for name in names]


def columns(*parts):
    return np.stack([np.asarray(part, float) for part in parts], axis=1)


@pytest.fixture(scope="module")
def taxi():
    data = acf.collect("taxi", 20_000, horizon=10)
    tx, ty, px, py, inside = (
        np.round((x - x.min()) * n / np.ptp(x))
        for x, n in zip(
            of(data, "taxi_x", "taxi_y", "passenger_x", "passenger_y", "in_taxi"), (4, 4, 4, 4, 1), strict=True
        )
    )
    changed = (data.frames[data.i] != data.frames[data.j]).any((1, 2, 3))
    codes = {
        "truth": columns(tx, ty, px, py, inside),
        "a copy": columns(tx, ty, px, py, inside, tx),
        "the passenger in the middle while inside": columns(
            tx, ty, np.where(inside, 2, px), np.where(inside, 2, py), inside
        ),
        "a sixth level for inside": columns(tx, ty, np.where(inside, 5, px), np.where(inside, 0, py)),
        "the passenger relative to the taxi": columns(tx, ty, px - tx, py - ty, inside),
        "rotated": columns(tx + ty, tx - ty, px, py, inside),
        "row and column in one": columns(5 * ty + tx, px, py, inside),
        "inside folded into x": columns(tx, ty, px + 5 * inside, py),
    }
    return data, changed, codes


@pytest.mark.parametrize(
    "rival",
    [
        "a copy",
        "the passenger in the middle while inside",
        "a sixth level for inside",
        "the passenger relative to the taxi",
        "rotated",
        "row and column in one",
        "inside folded into x",
    ],
)
def test_the_truth_is_the_cheapest_code_of_taxi(taxi, rival):
    data, changed, codes = taxi
    assert step_price(codes["truth"], data, changed) == pytest.approx(1.16, abs=0.03)
    assert step_price(codes[rival], data, changed) > 1.2


def test_the_truth_is_the_cheapest_code_of_doorkey():
    data = acf.collect("doorkey", 20_000, horizon=10, start="balanced+facing")
    changed = (data.frames[data.i] != data.frames[data.j]).any((1, 2, 3))
    x, y, heading, key, door = of(data, "agent_x", "agent_y", "dir", "key_held", "door_open")
    heading = np.round((heading - heading.min()) * 3 / np.ptp(heading))
    cells = [np.round((v - v.min()) / np.diff(np.unique(v)).min()) for v in (x, y)]
    bits = [np.round((v - v.min()) / np.ptp(v)) for v in (key, door)]
    along, across = np.where(heading % 2, cells[::-1], cells)
    truth = step_price(columns(*cells, heading, *bits), data, changed)
    assert step_price(columns(along, across, heading, *bits), data, changed) > truth + 0.5, "the agent's own frame"
    assert step_price(columns(*cells, heading + 4 * bits[0], bits[1]), data, changed) > truth + 0.2
    # Key and door in one latent of three levels cost the same: only who moves what tells them apart.
    assert step_price(columns(*cells, heading, bits[0] + bits[1]), data, changed) == pytest.approx(truth, abs=0.01)


def test_a_repetition_costs_more_for_the_same_distance():
    """Two copies of 1/√2 are as far apart as one latent, and dearer."""
    once = moves([[UNIT, 0.0]], [0])
    twice = moves([[UNIT / np.sqrt(2)] * 2], [0])
    price = lambda one: float(one.mean(length(one.change).sum(1)))  # noqa: E731
    assert price(twice) == pytest.approx(np.sqrt(2) * price(once), rel=0.01)


def test_each_action_counts_alike_and_what_stands_still_not_at_all():
    change = [[1.0], [1.0], [1.0], [3.0], [0.0]]
    one = moves(change, [0, 0, 0, 1, 2], n_actions=4)
    assert float(one.mean(jnp.abs(one.change).sum(1))) == pytest.approx(2.0)
    assert float(moves([[0.0]], [0]).mean(jnp.ones(1))) == 0


# --- who moves what


def test_owner_is_the_information_between_action_and_latent():
    """Four actions. Each with a latent of its own: log 4. Two and two: log 2. All the same: 0."""
    actions = [0, 1, 2, 3]
    alone = owner_loss(moves(UNIT * np.eye(4), actions))
    pairs = owner_loss(moves(UNIT * np.eye(4)[[0, 0, 1, 1]], actions))
    same = owner_loss(moves(UNIT * np.eye(4)[[0, 0, 0, 0]], actions))
    np.testing.assert_allclose([alone, pairs, same], [-np.log(4), -np.log(2), 0], atol=0.01)


def test_owner_parts_a_key_from_a_door():
    """Three things that pick up, open and turn: two of them in one latent are worth less."""
    parted = owner_loss(moves(UNIT * np.eye(3), [0, 1, 2]))
    merged = owner_loss(moves(UNIT * np.eye(3)[[0, 0, 2]], [0, 1, 2]))
    assert float(parted) < float(merged) - 0.3


# --- the contrastive terms


def test_own_is_right_by_hand():
    logits = jnp.asarray([[1.0, 0.0], [2.0, 2.0]])
    every = jnp.ones((2, 2), bool)
    expected = [np.log(1 + np.exp(-1)), np.log(2)]
    np.testing.assert_allclose(own_is_right(logits, every), expected, rtol=1e-5)
    none = jnp.zeros((2, 2), bool)
    np.testing.assert_allclose(own_is_right(logits, none), 0, atol=1e-6)


def episodes(z, z_next, predicted, pictures=None, still=1e-2):
    """The loss of one episode of `FRAMES` transitions; states with equal numbers have equal pictures."""
    column = lambda x: jnp.asarray(np.asarray(x, np.float32)[:, None])  # noqa: E731
    x, x_next = pictures or (z, z_next)
    shown = by_episode(column(x)), by_episode(column(x_next))
    each = episode_loss(column(predicted), column(z), column(z_next), shown, jnp.float32(still), jnp.ones(FRAMES))
    return float(each)


def test_a_constant_of_the_episode_is_worthless_within_it():
    """A code that tells nothing but the episode is as bad as one that tells nothing."""
    state = np.arange(FRAMES, dtype=float)
    right = episodes(10 * state, 10 * (state + 1), 10 * (state + 1), (state, state + 1))
    constant = episodes(0 * state + 7, 0 * state + 7, 0 * state + 7, (state, state + 1))
    nothing = episodes(0 * state, 0 * state, 0 * state, (state, state + 1))
    assert right < 1e-3
    assert constant == pytest.approx(nothing)
    # All that show another picture are as likely as the own one: 2 F candidates less those that show the same.
    assert constant > np.log(FRAMES)


def test_nothing_happened_is_a_wrong_answer():
    """Everything moved, each state is told from the others, but the prediction is the state before."""
    state = 10.0 * np.arange(FRAMES)
    moved = episodes(state, state + UNIT, state + UNIT)
    stayed = episodes(state, state + UNIT, state)
    assert moved < 0.02
    assert stayed == pytest.approx(UNIT**2 / 2, abs=0.1)


def test_equal_pictures_are_no_wrong_answers():
    state = np.tile([0.0, 5.0], FRAMES // 2)
    assert episodes(state, state, state) < 1e-3


def test_the_unit_is_worth_three_widths():
    """The loss falls with the step's size until states lie about three apart: further costs more than it brings."""
    price = 0.05
    sizes = np.linspace(0.5, 8, 61)
    total = [
        episodes(100.0 * np.arange(FRAMES), 100.0 * np.arange(FRAMES) + t, 100.0 * np.arange(FRAMES) + t) + price * t
        for t in sizes
    ]
    assert 2.2 < sizes[int(np.argmin(total))] < 3.2


def test_the_batch_is_told_apart_by_the_context():
    """Two episodes with the same states: without a context every state is found twice, with one it is not."""
    z = jnp.tile(10.0 * jnp.arange(4), 2)[:, None]
    x = jnp.arange(8.0)[:, None]
    apart = jnp.repeat(jnp.asarray([[-0.5], [0.5]]), 4, axis=0)
    told = batch_loss(z, z, apart, apart, x, jnp.float32(1e-2))
    untold = batch_loss(z, z, 0 * apart, 0 * apart, x, jnp.float32(1e-2))
    assert float(untold) == pytest.approx(np.log(2), abs=1e-3)
    assert float(told) < 1e-3


def test_context_of_an_episode():
    u = jnp.asarray([[-0.9], [0.0], [0.9]])
    assert float(context_loss(u, u)) < 1e-3
    assert float(context_loss(0 * u, 0 * u)) == pytest.approx(np.log(3), rel=1e-5)


def test_inverse_by_hand():
    """Two actions that lead UNIT apart; what did not change counts a tenth of what did."""
    reached = jnp.asarray([[[0.0], [UNIT]], [[0.0], [0.0]]])
    z_next, one_hot = jnp.asarray([[UNIT], [0.0]]), jnp.asarray([[0.0, 1.0], [1.0, 0.0]])
    own = np.log(1 + np.exp(-(UNIT**2) / 2)), np.log(2)
    expected = (1.1 * own[0] + 0.1 * own[1]) / 1.2
    found = inverse_loss(reached, z_next, one_hot, jnp.asarray([True, False]))
    assert float(found) == pytest.approx(expected, rel=1e-4)


def test_every_class_of_the_batch_has_the_same_share():
    one_hot = jnp.eye(2)[jnp.asarray([0, 0, 0, 1])]
    changed = jnp.asarray([True, True, False, False])
    np.testing.assert_allclose(class_weights(one_hot, changed), [0.5, 0.5, 1, 1])


def test_distances_by_one_product():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 5)), rng.normal(size=(2, 4, 5))
    expected = ((a[:, :, None] - b[:, None]) ** 2).sum(-1)
    np.testing.assert_allclose(squared_distances(jnp.asarray(a), jnp.asarray(b)), expected, rtol=1e-4)


# --- the model


@pytest.fixture(scope="module")
def model(with_weights):
    return with_weights(lambda: Lattice(SPEC, rngs=nnx.Rngs(0)))


def batch(progress=1.0, episodes=2):
    rng = np.random.default_rng(0)
    n = episodes * FRAMES
    x, x_next = jnp.asarray(rng.integers(0, 256, (2, n, *SPEC.frame_shape), dtype=np.uint8))
    known = Known(*[jnp.zeros(1, jnp.int32)] * 6, still=jnp.float32(1e-2))
    return Batch(x, jnp.asarray(rng.integers(0, 3, n)), x_next, jnp.float32(1), jnp.float32(progress), known)


def test_twice_as_many_latents_as_asked_for_and_the_context(model):
    z = model.encode(batch().x)
    assert z.shape == (2 * FRAMES, 2 * SPEC.latents + CONTEXT)
    assert (np.abs(z[:, -CONTEXT:]) <= 1).all()
    seen = model.look(batch().x)
    np.testing.assert_allclose(jnp.concatenate([seen.z, seen.context], axis=1), z, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(seen.shares.sum(1) + GAIN * model.places.add_up.bias[...], seen.z, atol=1e-3)


def test_the_gate_cannot_undo_an_effect(model):
    """Whatever the context: a change keeps its sign, and is never more than the effect that the state alone gives."""
    z = jnp.asarray(np.random.default_rng(0).normal(size=(50, 4)), jnp.float32)
    contexts = [jnp.full((50, CONTEXT), value, jnp.float32) for value in (-1.0, 0.0, 1.0)]
    changes = np.array([model.reached(z, context) - z[:, None] for context in contexts])
    assert np.abs(changes[0] - changes[2]).max() > 1e-3, "the context does something"
    assert (np.sign(changes) == np.sign(changes[:1])).all()


def test_the_terms_are_the_weights(model):
    total, terms = loss(model, batch(), jax.random.key(0), HParams())
    assert set(terms) == {field.name for field in dataclasses.fields(HParams)} - {"lr"}
    weights = dataclasses.asdict(HParams())
    assert float(total) == pytest.approx(sum(weights[name] * float(term) for name, term in terms.items()), rel=1e-5)
    assert all(np.isfinite(term) for term in terms.values())


def test_prices_are_ramped_in(model):
    early, terms = loss(model, batch(progress=0.0), jax.random.key(0), HParams())
    free, _ = loss(model, batch(progress=0.0), jax.random.key(0), HParams(steps=0.0, owner=0.0))
    late, _ = loss(model, batch(progress=1.0), jax.random.key(0), HParams())
    assert float(early) == pytest.approx(float(free))
    prices = 0.05 * terms["steps"] + 0.4 * terms["owner"]
    assert float(late - early) == pytest.approx(float(prices), rel=1e-4)


def test_the_learning_rate_rises_and_falls():
    at = [float(warm_up_and_cool_down(jnp.float32(p))) for p in (0.0, 0.05, 0.5, 1.0)]
    assert at[0] < 0.02
    assert at[1] > 0.95
    assert at[2] == pytest.approx(0.515, abs=0.01)
    assert at[3] == pytest.approx(0.03, abs=1e-3)


def test_it_is_bound_as_every_method_is():
    learner = get("lattice").bind(SPEC)
    assert learner.recipe.sampler is not None
    assert learner.recipe.clip == 1.0
