import jax
import pytest
import small_acf
from jax.experimental.compilation_cache.compilation_cache import reset_cache

import acf

# Of no use to doctest, which would find the name taken by the other folders, and would take in the toy method for good.
collect_ignore = ["conftest.py", "workers"]


@pytest.fixture(scope="session", autouse=True)
def compilation_cache(tmp_path_factory):
    """Programs are compiled once a session, for this process and those it starts."""
    jax.config.update("jax_compilation_cache_dir", str(tmp_path_factory.getbasetemp() / "jax-cache"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
    reset_cache()  # what was compiled before this had none


@pytest.fixture
def small(monkeypatch):
    """The quick preset is tiny, and there is a method `toy`."""
    small_acf.install(monkeypatch)


@pytest.fixture(scope="session")
def lamp(tmp_path_factory):
    """600 transitions on disk: 54 of their 60 episodes are for the sweep, 5 of these to select on."""
    path = tmp_path_factory.mktemp("data") / "lamp"
    acf.collect("lamp", 600, out=path)
    return path
