"""The floor of a step, counted by hand; the parts of a step; the command's errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acf.cli import main
from acf.data import collect
from acf.methods.base import Batch, Spec
from acf.study import bench
from acf.study.floor import Rates, floor
from acf.training.config import make_hparams


def test_floor_by_hand():
    """8x8 frames of one channel, one block of 2 channels to 4x4, then 32 → 3 → 3 → 2."""
    spec = Spec((8, 8, 1), n_actions=3, noop=0, latents=2, depth=2, hidden=3, encoder="residual")
    N, frames, pixels = 5, 10, 10 * 16
    block = 2 * pixels * (9 * 3 * 2 * 2 + 2 * 2 * 2 * 3)  # no gradient of the frames
    head = 2 * frames * (32 * 3 + 3 * 3 + 3 * 2) * 3
    moved = frames * 64 + 2 * pixels * 2 * 5
    units = N * N * 2 * 3
    one = Rates(1, 1, 1)
    assert floor(spec, N, 100, one).encoder == max(block + head, moved)
    assert floor(spec, N, 100, one._replace(matrix=1e9)).encoder == moved
    assert floor(spec, N, 100, one._replace(units=2)).energies == units / 2
    assert floor(spec, N, 100, one).optimiser == 2800


def test_floor_of_places_by_hand():
    """8x8 frames of one channel: 64 places with patches of 2x2, 4 → 3 → 3 → 3 features, three sums."""
    spec = Spec((8, 8, 1), n_actions=3, noop=0, latents=2, hidden=6)
    rows = 10 * 64
    products = 2 * rows * 3 * (4 * 2 + 3 * 3 * 2 + 3 * 3)
    moved = 10 * 64 + rows * (4 + 2 * 3 * 5 * 3)
    found = floor(spec, 5, 100, Rates(1, 1, 1)).encoder
    assert found == max(products, moved)


@pytest.fixture(scope="module")
def case():
    return bench.make_case("lamp", "quick", 1, data=collect("lamp", 50))


def test_the_parts_leave_the_rest_out(case):
    """What a part's loss does not hang on has no gradient."""
    data, N = case.data, 8
    rows = np.arange(N)
    frames = [jnp.asarray(data.frames[at[rows]]) for at in (data.i, data.j)]
    batch = Batch(frames[0], jnp.asarray(data.action[rows]), frames[1], jnp.float32(0))
    touched = {}
    for part in bench.parts(case):
        learner = part.method.bind(part.spec)
        params, hparams = learner.init(jax.random.key(0)), make_hparams(part.method, part.hparams)
        gradient = jax.jit(
            jax.grad(lambda p, learner=learner, hparams=hparams: learner.loss(p, batch, jax.random.key(1), hparams)[0])
        )(params)
        found = jax.tree.leaves_with_path(gradient)
        touched[part.name] = {
            jax.tree_util.keystr(path, simple=True, separator=".").split(".")[0] for path, leaf in found if leaf.any()
        }
    assert touched["encoder"] == {"encode"}
    assert touched["losses"] == {"energies", "policy"}
    assert touched["optimiser"] >= {"encode", "energies", "policy"}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("lamp", "--members", "0"), "population sizes of at least 1"),
        (("nowhere",), "unknown domain 'nowhere'"),
        (("lamp", "--methods", "magic"), "unknown method 'magic'"),
    ],
)
def test_bad_input(args, message, capsys):
    with pytest.raises(SystemExit):
        main(["bench", *args])
    assert message in capsys.readouterr().err.replace("\n", " ")
