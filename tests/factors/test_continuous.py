"""A world that moves continuously has directions; nothing of it is certified."""

import numpy as np
import pytest
from hand_made import latents, split, world

from acf.factors import find_factors


def found(z):
    train, judge = split(world("grid2d"), z)
    return find_factors(train, judge, len(world("grid2d").action_names))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_coordinates_of_rotated_latents(seed):
    true = world("grid2d").all_factors
    z = latents(world("grid2d"), true, rotate=True, units=30.0, seed=seed)
    out = found(z)
    assert out.levels.continuous and out.certificate.kind == "directions"
    assert not out.certificate.certified and "no levels" in out.certificate.because[0]
    r = np.abs(np.corrcoef(out.read(z).T, true.T)[:2, 2:])
    assert np.allclose(r.max(1), 1, atol=1e-3) and r.min(1).max() < 0.05
    assert set(r.argmax(1)) == {0, 1}


def test_one_is_a_step():
    true = world("grid2d").all_factors
    z = latents(world("grid2d"), true, rotate=True, units=30.0)
    spread = np.ptp(found(z).read(z), axis=0)
    assert np.allclose(spread, 10, rtol=0.1)  # a stride of a tenth


def test_how_much_lies_along_one_direction():
    true = world("grid2d").all_factors
    straight = found(latents(world("grid2d"), true, rotate=True, units=30.0)).certificate.along
    assert 0.7 < straight.value < 0.95  # the rest is the world's noise
    assert straight.low < straight.value < straight.high


def test_sum_of_both_is_not_certified():
    z = latents(world("grid2d"), world("grid2d").all_factors.sum(1, keepdims=True), units=30.0)
    assert not found(z).certificate.certified
