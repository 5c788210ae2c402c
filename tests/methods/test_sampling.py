"""Batches by episode and class: what is drawn, how often, and when two pictures count as one."""

import jax
import numpy as np
import pytest

import acf
from acf.methods.sampling import FRAMES, draw, know, picture_distances, still_distance

pytestmark = pytest.mark.filterwarnings("ignore::acf.data.checks.DataWarning")  # where pressing happens to do nothing


def world(episodes=40, steps=24, seed=0, noise=0.0):
    """A light on a row of eight cells: stay, go right, and a button that lights the corner once in a hundred times."""
    rng = np.random.default_rng(seed)
    x, a, x_next, episode = [], [], [], []
    for number in range(episodes):
        place, lit = rng.integers(8), 0
        for _ in range(steps):
            action = rng.integers(3)
            then = min(place + (action == 1), 7), lit | int(action == 2 and rng.random() < 0.01)
            for frames, state in ((x, (place, lit)), (x_next, then)):
                frame = np.zeros((16, 16, 1))
                frame[:4, 2 * state[0] : 2 * state[0] + 2], frame[12:, 14:] = 200, 200 * state[1]
                frames.append(frame + noise * rng.normal(size=frame.shape) + 20)
            a.append(action)
            episode.append(number)
            place, lit = then
    pictures = [np.clip(np.round(frames), 0, 255).astype(np.uint8) for frames in (x, x_next)]
    names = ["stay", "go", "press"]
    return acf.Transitions.from_arrays(pictures[0], a, pictures[1], noop=0, episode=episode, action_names=names)


def drawn(data, batches=400, n=4 * FRAMES):
    known = jax.device_put(know(data))
    keys = jax.random.split(jax.random.key(0), batches)
    return np.asarray(jax.jit(jax.vmap(lambda key: draw(known, key, n)))(keys)).reshape(-1, FRAMES)


@pytest.fixture(scope="module")
def data():
    return world(episodes=200)


def test_each_row_is_of_one_episode(data):
    episodes = data.episode[data.i[drawn(data)]]
    assert (episodes == episodes[:, :1]).all()
    assert len(np.unique(episodes[:, 0])) == 200


def test_transitions_of_an_episode_are_different_ones_spread_over_it(data):
    rows = drawn(data)
    assert all(len(np.unique(row)) >= FRAMES - 1 for row in rows), "the anchor may stand where another was"
    place = rows - data.i.searchsorted(0) - 24 * (rows // 24)
    assert (np.sort(place, axis=1)[:, 0] < 4).all()
    assert (np.sort(place, axis=1)[:, -1] > 19).all()


def test_what_is_rare_is_drawn_as_often_as_what_is_not(data):
    known = know(data)
    moved = np.asarray(picture_distances(data)) > known.still
    rare = (data.action == 2) & moved
    assert 10 <= rare.sum() < 0.01 * len(data), "pressing lights the corner once in a hundred times"
    share = rare[drawn(data)].any(1).mean()
    # Five classes: stay, go and go against the wall, press with an effect and without.
    assert share > 0.18


def test_classes_that_are_too_rare_have_no_share(data):
    few = data.select(np.flatnonzero(data.action != 2))
    once = np.flatnonzero(data.action == 2)[:3]
    some = data.select(np.concatenate([np.flatnonzero(data.action != 2), once]))
    assert len(know(some).size) == len(know(few).size)


def test_short_episodes_give_transitions_twice():
    short = world(episodes=60, steps=5)
    rows = drawn(short)
    assert (short.episode[short.i[rows]] == short.episode[short.i[rows[:, :1]]]).all()
    assert all(len(np.unique(row)) == 5 for row in rows)


def test_the_distance_of_pictures(data):
    by_hand = [
        ((data.frames[j].astype(float) - data.frames[i]) ** 2).sum() / 255**2
        for i, j in zip(data.i, data.j, strict=True)
    ]
    np.testing.assert_allclose(picture_distances(data), by_hand, rtol=1e-5)


@pytest.mark.parametrize("noise", [0.0, 10.0])
def test_what_changed_is_told_with_and_without_noise(noise):
    """With noise no two pictures are equal: what the no-op changes counts as nothing."""
    noisy, clean = world(noise=noise), world()
    changed = picture_distances(noisy) > know(noisy).still
    truth = picture_distances(clean) > 0
    assert (changed == truth).mean() > 0.99
    assert (changed[truth]).all()


def test_still_is_as_far_as_the_noop_goes():
    assert still_distance(np.zeros(50)) == still_distance(np.zeros(0)) < 0.02
    assert still_distance(np.r_[np.zeros(60), np.ones(40)]) < 0.02, "a world that sometimes moves by itself"
    assert 1.1 < still_distance(np.linspace(0.5, 1, 100)) < 1.3


def test_one_key_one_batch(data):
    known = jax.device_put(know(data))
    first, again, other = (draw(known, jax.random.key(n), 4 * FRAMES) for n in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (np.asarray(first) != np.asarray(other)).any()
