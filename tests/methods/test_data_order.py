"""The negatives are the batch's other transitions: so no batch may hold a transition twice."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acf.training.population import MAX_CHUNK, Schedule, _order


def epochs(seed, schedule):
    """The rows of each epoch, in the order in which the trainer's chunks ask for them."""
    chunk = jax.jit(lambda seed, first: _order(seed, schedule, first))
    rows = [chunk(jnp.int32(seed), jnp.int32(first)) for first in range(0, schedule.steps, schedule.chunk)]
    return np.stack(rows).reshape(schedule.epochs, -1)


# several chunks an epoch with a rest; one chunk; a batch that is the whole epoch
SCHEDULES = [Schedule(1000, 3, 3), Schedule(100, 8, 3), Schedule(16, 16, 3)]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_an_epoch_has_no_transition_twice(schedule):
    rows = epochs(7, schedule)
    assert rows.shape == (3, schedule.steps_per_epoch * schedule.batch_size)
    assert rows.min() >= 0
    assert rows.max() < schedule.transitions
    for epoch in rows:
        assert len(set(epoch.tolist())) == len(epoch)
    # what is dropped is less than a batch and less than a step a chunk
    dropped = schedule.transitions - rows.shape[1]
    assert dropped < schedule.batch_size * schedule.chunks_per_epoch + schedule.batch_size


def test_several_chunks_are_several():
    schedule = SCHEDULES[0]
    assert (schedule.chunks_per_epoch, schedule.chunk) == (3, 111)
    assert schedule.chunk <= MAX_CHUNK


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_epochs_and_seeds_are_shuffled_differently(schedule):
    orders = [*epochs(7, schedule), *epochs(3, schedule)]
    by_chance = 0.1 if schedule.transitions > 16 else 0.5
    for i, one in enumerate(orders):
        assert (one == np.arange(len(one))).mean() < by_chance, "shuffled at all"
        for other in orders[:i]:
            assert (one == other).mean() < by_chance
    np.testing.assert_array_equal(epochs(7, schedule), orders[:3])
