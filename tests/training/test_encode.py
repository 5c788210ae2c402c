"""Latents of one frame and of many: the same whoever comes with it, at the price of what is asked."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

import acf
from acf.data import Transitions
from acf.errors import AcfError
from acf.training import run_dir

CLOSE = 1e-5


@pytest.fixture(scope="module")
def trained(lamp, tmp_path_factory):
    run = tmp_path_factory.mktemp("encode") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acf.training.presets.QUICK", {"transitions": 600, "depth": 2, "hidden": 8, "batch_size": 32})
        acf.train(lamp, run, preset="quick", epochs=1)
    return acf.load(run)


@pytest.fixture(scope="module")
def frames(lamp):
    few = np.asarray(Transitions.open(lamp).frames)
    return np.concatenate([few, few, few])[:1500]


@pytest.fixture(scope="module")
def z(trained, frames):
    """Of each frame, by the network as it is."""
    return np.asarray(jax.jit(trained.learner.encode)(trained.params, frames))


@pytest.mark.parametrize("n", [1, 2, 3, 16, 17, 1024, 1025, 1500])
def test_the_company_does_not_matter(trained, frames, z, n):
    np.testing.assert_allclose(trained.encode(frames[-n:]), z[-n:], atol=CLOSE)


def test_one_frame(trained, frames, z):
    found = trained.encode(frames[5])
    assert found.shape == (4,)
    np.testing.assert_allclose(found, z[5], atol=CLOSE)


def test_lists_and_arrays_of_jax(trained, frames, z):
    for given in (list(frames[:3]), jnp.asarray(frames[:3])):
        found = trained.encode(given)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, z[:3], atol=CLOSE)
    assert trained.encode(frames[:0]).shape == (0, 4)


def test_few_frames_are_filled_up_to_few(trained, frames, monkeypatch):
    sizes = []

    def encode(function, params, block):
        assert all(isinstance(leaf, Array) for leaf in jax.tree.leaves(params))  # on the device already
        sizes.append(len(block))
        return np.zeros((len(block), 4), np.float32)

    monkeypatch.setattr(run_dir, "_encode", encode)
    for n in (1, 2, 3, 5, 600, 1024, 1500):
        assert trained.encode(frames[:n]).shape == (n, 4)
    assert sizes == [1, 2, 4, 8, 1024, 1024, 1024, 1024]


def test_in_a_program_of_your_own(trained, frames, z):
    np.testing.assert_allclose(jax.jit(trained.apply)(frames[:7]), z[:7], atol=CLOSE)
    np.testing.assert_allclose(jax.jit(trained.apply)(frames[0]), z[0], atol=CLOSE)
    np.testing.assert_allclose(jax.vmap(trained.apply)(frames[:7]), z[:7], atol=CLOSE)
    _, scanned = jax.lax.scan(lambda carry, x: (carry, trained.apply(x)), 0, jnp.asarray(frames[:7]))
    np.testing.assert_allclose(scanned, z[:7], atol=CLOSE)


def test_frames_of_another_kind(trained, frames):
    for wrong in (frames[0] / 255, frames[0, 0], frames[:2, :16]):
        for use in (trained.encode, trained.apply):
            with pytest.raises(AcfError, match=r"expected frames uint8\[N, 32, 32, 3\] or one of uint8\[32, 32, 3\]"):
                use(wrong)
