"""What `to_json` writes comes back as it was, and nothing else is read."""

import copy
import json

import numpy as np
import pytest
from hand_made import found_in, latents, world

from acf.errors import AcfError
from acf.factors import Factors, Share

CASES = {
    "certified": lambda: latents(world("fourrooms"), heading_as_bits(), rotate=True),
    "not certified": lambda: latents(world("fourrooms"), world("fourrooms").factors[:, :2]),
    "continuous": lambda: np.random.default_rng(0).normal(size=(len(world("fourrooms").picture), 5)),
    "nothing": lambda: np.ones((len(world("fourrooms").picture), 5)),
}


def heading_as_bits():
    x, y, heading = world("fourrooms").factors.T
    return [x, y, heading // 2, (heading + 1) // 2 % 2]


@pytest.mark.parametrize("case", CASES)
def test_round_trip(case):
    z = CASES[case]()
    found = found_in(world("fourrooms"), z)
    text = json.dumps(found.to_json(), allow_nan=False)
    back = Factors.from_json(json.loads(text))
    assert json.dumps(back.to_json(), allow_nan=False) == text
    assert back.factors == found.factors and back.certificate.because == found.certificate.because
    assert np.array_equal(back.read(z), found.read(z))


def without(part, name):
    def change(found):
        del found[part][name]

    return change


def with_value(part, name, value):
    def change(found):
        found[part][name] = value

    return change


def with_axis(found):
    found["factors"][0]["pieces"][0][0] = 99


@pytest.mark.parametrize(
    "change",
    [
        without("levels", "weights"),
        without("certificate", "still"),
        with_value("levels", "offset", [1.0]),
        with_value("levels", "weights", [["x"]]),
        with_value("certificate", "worse", 3),
        with_value("certificate", "one_step", {"value": 1.0}),
        with_value("certificate", "one_step", 1.0),
        with_value("certificate", "certified", "yes"),
        with_axis,
    ],
)
def test_anything_else_is_refused(change):
    found = found_in(world("fourrooms"), CASES["certified"]()).to_json()
    changed = copy.deepcopy(found)
    change(changed)
    with pytest.raises(AcfError, match="factors: expected"):
        Factors.from_json(changed)


def test_names():
    found = found_in(world("fourrooms"), CASES["certified"]())
    names = found.describe(world("fourrooms").action_names)
    assert sorted(names)[-1].startswith("moved by ") and len(names) == 3
    turn = next(name for name in names if "cycle" in name)
    assert turn in (
        "moved by rotate_cw, rotate_ccw; cycle of 4",
        "moved by rotate_ccw, rotate_cw; cycle of 4",
    )


def test_share_is_wilsons():
    share = Share.of(0.5, 100)
    assert (round(share.low, 4), round(share.high, 4)) == (0.4038, 0.5962)
    means = Share.of_means(np.array([1.0, 0.5]), np.array([100, 100]))
    assert means.value == 0.75 and means == Share.of(0.75, 200)
    rare = Share.of_means(np.array([1.0, 1.0]), np.array([10_000, 10]))
    assert rare.low < 0.92  # as sure as the rare one lets it be
