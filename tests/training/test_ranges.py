from dataclasses import asdict

import pytest

from acf.errors import AcfError
from acf.methods import METHODS, get
from acf.training.config import make_hparams
from acf.training.presets import get_preset
from acf.training.ranges import RANGES, Range, get_ranges

DOMAINS = ("doorkey", "taxi", "grid2d", "fourrooms")


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("preset", ["paper", "quick"])
@pytest.mark.parametrize("method", METHODS)
def test_the_ranges_hold_what_the_presets_have(method, preset, domain):
    own = get_preset("quick" if method == "lattice" else preset, method, domain).hparams
    hparams = asdict(make_hparams(get(method), own))
    for name, (low, high) in get_ranges(get(method), own).items():
        assert low <= hparams[name] <= high, name


@pytest.mark.parametrize("method", [name for name in METHODS if name != "lattice"])
def test_what_the_paper_tunes_is_searched(method):
    assert set(RANGES[method]) == set(get_preset("paper", method, "taxi").hparams)
    assert all(range.log for range in RANGES[method].values())


def test_own_ranges():
    acf = get("acf")
    ranges = get_ranges(acf, {}, {"lr": (1e-4, 1e-2), "noise": (0, 0.1)})
    assert ranges == RANGES["acf"] | {"lr": Range(1e-4, 1e-2), "noise": Range(0.0, 0.1)}
    assert (ranges["lr"].log, ranges["noise"].log) == (True, False)


def test_a_term_that_is_off_stays_off():
    hparams = get_preset("no-inv", "acf", "taxi").hparams
    assert "inv" not in get_ranges(get("acf"), hparams)
    assert get_ranges(get("acf"), hparams, {"inv": (1, 2)})["inv"] == Range(1.0, 2.0)


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"warp": (1, 2)}, "range of 'warp': acf has no such hyperparameter, only lr, fwd, ratio,"),
        ({"fwd": (2, 2)}, "range of fwd: expected two finite numbers, the lower one first, got 2 2"),
        ({"fwd": (2, float("inf"))}, "range of fwd: expected two finite numbers"),
        ({"fwd": (-1, 2)}, "range of fwd: expected 0 or more, since all settings are scales, got -1"),
        ({"lr": (0, 0.1)}, "range of lr: expected learning rates above 0 and up to 1, got 0 to 0.1"),
        ({"lr": (0.1, 10)}, "range of lr: expected learning rates above 0 and up to 1, got 0.1 to 10"),
    ],
)
def test_bad_ranges(own, message):
    with pytest.raises(AcfError, match=message):
        get_ranges(get("acf"), {}, own)


@pytest.mark.usefixtures("small")
def test_a_method_without_ranges():
    with pytest.raises(AcfError, match="there are no ranges for toy: give some with --ranges NAME LOW HIGH"):
        get_ranges(get("toy"), {})
