"""Drawing and packing: the same plan and results, the same samples."""

import numpy as np
import pytest
from sweeps import plan

from acf.study.sweep.samples import Outcome, Sample, better_half, choose, draw, pack, rounds
from acf.training.ranges import Range

RANGES = {"lr": Range(1e-5, 1e-3), "fwd": Range(1.0, 100.0), "noise": Range(0.0, 0.1)}


def test_a_sample_depends_on_seed_and_number_alone():
    in_order = [draw(RANGES, 3, n) for n in range(1, 6)]
    assert [draw(RANGES, 3, n) for n in (5, 4, 3, 2, 1)] == in_order[::-1]
    everything = {tuple(draw(RANGES, seed, n).values()) for seed in range(3) for n in range(1, 6)}
    assert len(everything) == 15


def test_samples_fill_their_ranges():
    samples = [draw(RANGES, 0, n) for n in range(1, 2001)]
    for name, (low, high) in RANGES.items():
        values = np.array([sample[name] for sample in samples])
        assert low <= values.min() < values.max() <= high
        middle = (low * high) ** 0.5 if low else high / 2  # half of the samples lie below, in the range's own scale
        assert np.mean(values < middle) == pytest.approx(0.5, abs=0.04)


@pytest.mark.parametrize(
    ("samples", "seeds", "members", "sizes"),
    [(16, 2, 64, [16]), (51, 5, 64, [11, 10, 10, 10, 10]), (5, 2, 4, [2, 2, 1]), (3, 2, 3, [1, 1, 1]), (1, 1, 1, [1])],
)
def test_packing(samples, seeds, members, sizes):
    asked = [Sample(n, {}) for n in range(samples)]
    packed = pack(asked, plan(seeds=seeds, members=members), first=7, epochs=3)
    assert [len(population.samples) for population in packed] == sizes
    assert all(len(population.samples) * seeds <= members for population in packed)
    assert [sample for population in packed for sample in population.samples] == asked
    assert [population.number for population in packed] == list(range(7, 7 + len(sizes)))


def test_rounds():
    assert rounds(plan()) == [[0, 1, 2, 3, 4, 5]]
    assert rounds(plan(with_preset=False)) == [[1, 2, 3, 4, 5]]
    assert rounds(plan(sampler="tpe")) == [[0, 1], [2, 3], [4, 5]]
    assert rounds(plan(earlier=(2, 3))) == [[0, 1, 2], [3], [4, 5]]
    assert rounds(plan(sampler="tpe", earlier=(2,))) == [[0, 1], [2], [3, 4], [5]]


def test_the_preset_is_sample_0():
    first, second = choose(plan(), [0, 1], {})
    assert first == Sample(0, {})
    assert second == Sample(1, draw(plan().ranges, 0, 1))


def test_tpe_learns_and_repeats_itself():
    """The objective rises with the learning rate: TPE moves there, and proposes the same from the same results."""
    asked = plan(sampler="tpe", samples=44, members=8)
    done = {}
    for numbers in rounds(asked):
        samples = choose(asked, numbers, done)
        assert samples == choose(asked, numbers, done)
        for sample in samples:
            done[sample.number] = sample, Outcome(sample.number, float(np.log(sample.hparams.get("lr", 1e-3))), ())
    drawn = np.array([done[n][0].hparams["lr"] for n in range(1, 45)])
    assert np.median(drawn[-12:]) > 5e-3 > np.median(drawn[:12])
    # A sample whose seed diverged tells nothing, and is no reason to stop.
    assert len(choose(asked, [1, 2], {9: (done[9][0], Outcome(9, None, ()))})) == 2


@pytest.mark.parametrize(("maximise", "kept"), [(True, [0, 2, 4]), (False, [0, 1, 3])])
def test_better_half(maximise, kept):
    values = [0.45, 0.1, 0.8, 0.3, 0.9]
    assert better_half([Outcome(n, value, ()) for n, value in enumerate(values)], maximise) == kept


def test_better_half_of_what_did_not_diverge():
    values = [None, 0.1, None, 0.3]
    assert better_half([Outcome(n, value, ()) for n, value in enumerate(values)], True) == [1, 3]
    assert better_half([Outcome(1, 0.5, ()), Outcome(2, 0.5, ())], True) == [1]  # the first of equals
    assert better_half([Outcome(0, 0.1, ()), Outcome(1, 0.5, ()), Outcome(2, 0.7, ())], True) == [0, 1, 2]
