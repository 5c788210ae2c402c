from dataclasses import replace

import jax
import numpy as np
import pytest
import small_acf

import acf


@pytest.fixture(scope="session", autouse=True)
def compilation_cache(tmp_path_factory):
    """Programs are compiled once a session, for this process and those it starts."""
    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.getbasetemp() / "jax-cache"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


@pytest.fixture
def small(monkeypatch):
    """The quick preset is tiny, and there is a method `toy`."""
    small_acf.install(monkeypatch)


@pytest.fixture(scope="session")
def lamp(tmp_path_factory):
    """Transitions on disk: 540 of them in the training part, the frames a quarter of their size."""
    path = tmp_path_factory.mktemp("data") / "lamp"
    data = acf.collect("lamp", 600)
    replace(data, frames=np.ascontiguousarray(data.frames[:, ::2, ::2])).save(path)
    return path
