import warnings
from dataclasses import replace

import jax
import pytest
from jax.experimental.compilation_cache.compilation_cache import reset_cache

import acf
from acf.cli import main
from acf.terminal import console
from acf.training import presets

TINY = {"transitions": 600, "depth": 2, "hidden": 8, "epochs": 2, "batch_size": 32}

collect_ignore = ["conftest.py"]  # of no use to doctest, which would find its name taken by the other folders' ones


@pytest.fixture(scope="session", autouse=True)
def compilation_cache(tmp_path_factory):
    """Programs are compiled once a session."""
    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.getbasetemp() / "jax-cache"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
    reset_cache()  # what was compiled before this had none


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


@pytest.fixture
def command(capsys, monkeypatch):
    """Runs `acf ARGS` here; returns its exit code, and what it wrote to stdout and to stderr."""
    monkeypatch.setattr(console, "width", 120)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # which the command replaces

    def command(*args):
        code = 0
        try:
            main([*map(str, args)])
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return command
