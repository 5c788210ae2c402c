from dataclasses import replace

import pytest

import acf
from acf.training import presets

TINY = {"transitions": 600, "encoder": "places", "depth": 2, "hidden": 8, "epochs": 2, "batch_size": 32}

collect_ignore = ["conftest.py"]  # of no use to doctest, which would find its name taken by the other folders' ones


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def small(monkeypatch):
    """The quick preset trains a tiny network on little data."""
    monkeypatch.setattr(presets, "QUICK", TINY)


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """`lamp`: two seeds on Lamp; `unknown`: the same frames without their true factors. Not evaluated."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(presets, "QUICK", TINY)
        data = acf.collect("lamp", 600, out=folder / "data")
        acf.train(folder / "data", folder / "lamp", preset="quick", seeds=[7, 3])
        unknown = replace(data, factors=None, factor_names=(), controllable=())
        acf.train(unknown, folder / "unknown", preset="quick", latents=4, seeds=[7, 3])
    return folder
