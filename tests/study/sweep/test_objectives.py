"""The objectives on members whose worth is known."""

from dataclasses import replace

import numpy as np
import pytest

from acf.errors import AcfError
from acf.study.held_out import open_run
from acf.study.sweep.objectives import OBJECTIVES, check_validation
from acf.training import train

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture(scope="module")
def module_patch():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def held_out(lamp, tmp_path_factory, module_patch):
    """Two samples of two seeds, without noise."""
    import small_acf

    small_acf.install(module_patch)
    run = tmp_path_factory.mktemp("run")
    hparams = [{"lr": lr, "noise": 0.0} for lr in (1e-3, 1e-2) for _ in range(2)]
    train(lamp, run, method="toy", preset="quick", seeds=[0, 1, 0, 1], hparams=hparams)
    return open_run(run)


def test_supervised_is_diag_minus_off_diag(held_out):
    s, (perfect, useless) = held_out.factors, (held_out.factors, np.zeros_like(held_out.factors))
    # Position and shape never change within an episode, and there are few: what counts is that knowing all is best.
    known = replace(held_out, z=np.stack([useless, useless, perfect, useless]), factors=s)
    best, worst = OBJECTIVES["supervised"].of_seeds(known, range(2, 4))
    assert best > 0.5
    assert worst == 0
    assert OBJECTIVES["supervised"].of_seeds(known, range(2)).tolist() == [0, 0]


def test_udr_compares_the_seeds_of_a_sample(held_out):
    z = held_out.z
    turned = replace(held_out, z=np.stack([z[0], -z[0][:, ::-1], z[1], np.zeros_like(z[1])]))
    same = OBJECTIVES["udr"].of_seeds(turned, range(2))
    assert same[0] == same[1] > 0.3
    assert OBJECTIVES["udr"].of_seeds(turned, range(2, 4)).tolist() == [0, 0]


def test_validation_loss(held_out):
    """The toy's loss is the squared distance of each latent's change from the action's number."""
    found = OBJECTIVES["loss"].of_seeds(held_out, range(2, 4))
    rows = len(held_out.action) // held_out.config.batch_size * held_out.config.batch_size
    assert 0 < rows < len(held_out.action)
    for n, loss in zip((2, 3), found, strict=True):
        change = (held_out.z[n][held_out.j] - held_out.z[n][held_out.i])[:rows]
        assert loss == pytest.approx(np.mean((change - held_out.action[:rows, None]) ** 2), rel=1e-4)


def test_the_weights_do_not_count_in_the_loss(held_out):
    """`fwd` is what the toy adds to its terms; `nats` does not name it."""
    members = tuple(replace(m, hparams=m.hparams | {"fwd": 1e6}) for m in held_out.config.members)
    heavier = replace(held_out, config=replace(held_out.config, members=members))
    a, b = (OBJECTIVES["loss"].of_seeds(found, range(2)) for found in (held_out, heavier))
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("supervised", 100, 10, False, 32), "the data has no true factors to select by: choose --objective udr or"),
        (("supervised", 20, 2, True, 32), "has 20 transitions in 2 episodes, scoring needs 3 episodes: collect more"),
        (("loss", 20, 2, True, 32), "has 20 transitions in 2 episodes, less than one batch of 32: collect more"),
    ],
)
def test_too_little_to_select_by(args, message):
    with pytest.raises(AcfError, match=message):
        check_validation(*args)


def test_enough_to_select_by():
    check_validation("udr", 20, 2, False, 32)
    check_validation("loss", 32, 2, False, 32)
    check_validation("supervised", 20, 3, True, 32)
