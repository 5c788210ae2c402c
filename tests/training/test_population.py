"""A member's result is its own: not its neighbours', not its place's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trained_runs import assert_same_tensors, metrics, model

import acf
from acf.methods import get
from acf.training import RunDir, population
from acf.training.flat import layout
from acf.training.population import Schedule

pytestmark = pytest.mark.usefixtures("small")

# Batched matrix products round differently from single ones, and training amplifies that.
TOLERANCE = 1e-4


@pytest.fixture
def train(lamp, tmp_path):
    def train(name, **options):
        return acf.train(lamp, tmp_path / name, **{"preset": "quick", "method": "toy"} | options).path

    return train


def columns(run):
    """[chunks, terms, members]"""
    return np.array([[row[name] for name in sorted(row) if name not in ("step", "epoch")] for row in metrics(run)])


@pytest.mark.parametrize("side_by_side", [True, False])
@pytest.mark.parametrize(
    ("method", "seeds"), [("toy", [7, 3]), ("toy", [3, 7]), pytest.param("acf", [7, 3], marks=pytest.mark.slow)]
)
def test_member_alone_equals_member_in_population(train, monkeypatch, method, seeds, side_by_side):
    """32 steps in float32; by place, not by the seed's value. Together as on a GPU, and in turn as on a CPU."""
    monkeypatch.setattr(population, "side_by_side", lambda: side_by_side)
    both = train("both", seeds=seeds, method=method)
    for place, seed in enumerate(seeds):
        alone = train(f"alone-{seed}", seeds=[seed], method=method)
        assert_same_tensors(model(both, place), model(alone, 0), TOLERANCE)
        np.testing.assert_allclose(columns(both)[..., place], columns(alone)[..., 0], rtol=1e-3, atol=1e-4)
        assert acf.load(both, place).seed == seed
    # The two seeds are two results: the comparisons above can fail.
    first, second = (model(both, n).values() for n in (0, 1))
    assert max(abs(a - b).max() for a, b in zip(first, second, strict=True)) > 100 * TOLERANCE


def test_own_hyperparameters(train):
    settings = [{"lr": 0.0}, {"lr": 1e-2}, {"noise": 1.0}]
    run = train("three", seeds=[5, 5, 5], hparams=settings)
    for n, own in enumerate(settings):
        assert_same_tensors(model(run, n), model(train(f"alone-{n}", seeds=[5], hparams=own), 0), TOLERANCE)
    spec = RunDir(run).read_config().spec
    learner = get("toy").bind(spec)
    start = population.init(learner, jnp.array([5])).params[0]
    params = layout(jax.eval_shape(learner.init, jax.random.key(0))).unravel(start)
    (kernel,) = (leaf for leaf in jax.tree.leaves(params) if leaf.ndim == 2)
    moved = [abs(model(run, n)["linear.kernel.value"] - kernel).max() for n in range(3)]
    assert moved[0] < 1e-6  # rounding of the initialiser
    assert min(moved[1:]) > 1e-3


@pytest.mark.parametrize(
    ("transitions", "batch_size", "chunk", "steps_per_epoch"),
    [(540, 16, 33, 33), (16, 16, 1, 1), (1000, 4, 125, 250), (128 * 129, 128, 64, 128)],
)
def test_schedule(transitions, batch_size, chunk, steps_per_epoch):
    schedule = Schedule(transitions, batch_size, 3)
    assert (schedule.chunk, schedule.steps_per_epoch, schedule.steps) == (chunk, steps_per_epoch, 3 * steps_per_epoch)
