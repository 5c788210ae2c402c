"""What is shown, before it is drawn: labels, alignment, groups, traversals, frames."""

from dataclasses import replace

import numpy as np
import pytest
from looks import NAMES, make_look

from acf.report.frames import stretch, to_rgb
from acf.report.groups import group
from acf.report.look import aligned_r2, latent_label, latent_order, mean_std
from acf.report.traversal import BINS, SAMPLES, traverse


def test_rows_are_aligned_with_the_factors():
    r2 = np.array([[0.1, 0.9, 0.2], [0.3, 0.0, 0.8]])
    aligned = aligned_r2({"r2": r2.tolist(), "matching": [1, 2]})
    assert np.isnan(aligned[0]).all()
    np.testing.assert_array_equal(aligned[1:], r2)


def test_mean_over_those_that_have_an_entry():
    mean, std = mean_std([np.array([1.0, np.nan, np.nan]), np.array([3.0, 2.0, np.nan])])
    np.testing.assert_array_equal(mean, [2, 2, np.nan])
    np.testing.assert_array_equal(std, [1, 0, np.nan])


def test_latents_are_ordered_and_named_by_their_factors():
    look = make_look(latents=4)
    assert latent_order(look.members[0], 4) == [2, 1, 0, 3]
    assert [latent_label(look, 0, k) for k in range(4)] == ["z0 → is_open", "z1 → hue", "z2 → size", "z3"]
    look.members[0]["r2"][1][1] = 0.3
    assert latent_label(look, 0, 1) == "z1 (hue?)"  # matched, but tells little
    unknown = make_look(factors=False)
    assert latent_order(unknown.members[0], 3) == [0, 1, 2]
    assert latent_label(unknown, 0, 1) == "z1"


def test_seeds_of_one_setting_are_one_bar():
    first, second = make_look("a", seeds=(0,)), make_look("b", seeds=(1, 2))
    (one,) = group([first, second])
    assert (one.domain, one.label, len(one.members)) == ("toy", "acf", 3)
    other = replace(make_look("c"), settings={"seeds": [0], "epochs": 9})
    assert [g.label for g in group([first, other])] == ["acf (a)", "acf (c)"]
    assert [g.label for g in group([first, make_look("d", method="gcl")])] == ["acf", "gcl"]
    assert [g.label for g in group([first, make_look("e", domain="taxi")])] == ["acf", "acf"]
    assert group([make_look(factors=False)]) == []


def test_traversal_goes_from_low_to_high():
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, 5000)
    frames = np.zeros((5000, 16, 16, 1), np.uint8)
    frames[:, 0, 0, 0] = 100 * (z + 1)
    found = traverse(z, frames, z[:, None], rng)
    assert len(found.values) == BINS
    assert found.counts.sum() == 5000
    assert (np.diff(found.values) > 0).all()
    np.testing.assert_allclose(found.means[:, 0, 0, 0], 100 * (found.values + 1), atol=1)
    # random samples lie in the step too: an eleventh of the range wide, the two ends a little wider
    middle = found.samples[1:-1, :, 0, 0, 0]
    assert middle.shape == (BINS - 2, SAMPLES)
    assert np.abs(middle / 100.0 - 1 - found.values[1:-1, None]).max() < 0.13
    assert found.factor_means is not None
    np.testing.assert_allclose(found.factor_means[:, 0], found.values, atol=1e-6)


@pytest.mark.parametrize("z", [np.zeros(50), np.arange(50) % 2])
def test_traversal_of_few_levels_has_no_empty_step(z):
    found = traverse(z.astype(float), np.zeros((50, 16, 16, 3), np.uint8), None, np.random.default_rng(0))
    assert len(found.values) == len(np.unique(z))
    assert found.factor_means is None


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_any_channels_become_rgb(channels):
    frames = np.random.default_rng(0).integers(0, 256, (5, 16, 20, channels), dtype=np.uint8)
    shown = to_rgb(frames)
    assert shown.shape == (5, 16, 20, 3)
    assert shown.dtype == np.uint8
    np.testing.assert_array_equal(shown[..., 0], frames[..., 0])
    np.testing.assert_array_equal(shown[..., 1], frames[..., min(channels - 1, 1)])


def test_large_frames_are_shrunk():
    frames = np.full((2, 210, 160, 3), 77, np.uint8)
    shown = to_rgb(frames)
    assert shown.shape == (2, 52, 40, 3)
    assert (shown == 77).all()


def test_stretch():
    assert stretch(np.array([10.0, 15.0, 20.0])).tolist() == [0, 128, 255]
    assert stretch(np.full((2, 2), 9.0)).tolist() == [[0, 0], [0, 0]]


def test_names_are_the_factors():
    assert make_look().factor_names == NAMES
