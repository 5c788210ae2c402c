"""Presets: the paper's table, and what differs from it."""

import dataclasses

import pytest

from acf.methods import get
from acf.training.config import make_hparams
from acf.training.presets import PRESETS, default_preset, get_preset

# Table "Hyperparameters and coefficient weights for the ACF baseline across four domains", column by column:
# batch_size, lr, epochs, λ_fwd, λ_r, λ_inv, λ_π.
TABLE = {
    "doorkey": (128, 4.0966e-4, 100, 97.815, 25.623, 22.094, 1.610),
    "taxi": (128, 2.9126e-4, 200, 31.444, 5.018, 1.000, 9.916),
    "grid2d": (128, 2.27497e-4, 200, 95.395, 48.560, 1.000, 1.332),
    "fourrooms": (128, 3.6392e-4, 200, 40.736, 16.963, 97.365, 22.764),
}


def hparams(preset):
    return make_hparams(get("acf"), preset.hparams)


@pytest.mark.parametrize("domain", TABLE)
def test_paper(domain):
    preset = get_preset("paper", "acf", domain)
    own = hparams(preset)
    found = (preset.batch_size, own.lr, preset.epochs, own.fwd, own.ratio, own.inv, own.policy)
    assert found == TABLE[domain]
    assert preset.transitions == 150_000  # "All experiments used 150K transitions"
    assert (preset.depth, preset.hidden) == (24, 256)
    assert own.sparsity == 0  # not in the paper


@pytest.mark.parametrize("domain", [*TABLE, "lamp", None])
def test_sparse_is_paper_with_the_sparsity_term(domain):
    paper, sparse = (get_preset(name, "acf", domain) for name in ("paper", "sparse"))
    assert hparams(sparse).sparsity > 0
    assert dataclasses.replace(hparams(sparse), sparsity=0.0) == hparams(paper)
    assert dataclasses.replace(sparse, hparams=paper.hparams) == paper


@pytest.mark.parametrize("domain", [*TABLE, "lamp", None])
def test_quick_is_paper_made_small(domain):
    paper, quick = (get_preset(name, "acf", domain) for name in ("paper", "quick"))
    smaller = {
        name for name in ("transitions", "depth", "hidden", "epochs") if getattr(quick, name) < getattr(paper, name)
    }
    assert smaller == {"transitions", "depth", "hidden", "epochs"}
    same = {name: getattr(paper, name) for name in (*smaller, "hparams")}
    assert dataclasses.replace(quick, **same) == paper
    assert dataclasses.replace(hparams(quick), lr=hparams(paper).lr) == hparams(paper)


def test_quick_is_the_default_without_a_gpu(monkeypatch):
    for backend, name in (("cpu", "quick"), ("gpu", "paper")):
        monkeypatch.setattr("jax.default_backend", lambda backend=backend: backend)
        assert default_preset() == name
    assert default_preset() in PRESETS
