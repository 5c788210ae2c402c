import warnings

import jax
import pytest
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from acf.cli import main
from acf.terminal import console
from acf.training import presets

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
    tiny = {"transitions": 600, "depth": 2, "hidden": 8, "epochs": 2, "batch_size": 32}
    monkeypatch.setattr(presets, "QUICK", tiny)


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
