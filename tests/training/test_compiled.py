"""Where compiled programs are kept."""

from pathlib import Path

import jax
import pytest

from acf.training.compiled import keep_compiled_programs

NAMES = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")


@pytest.fixture
def settings(monkeypatch):
    """JAX's, as a user has them who has set nothing; what was there is put back."""
    before = {name: jax.config.values[name] for name in NAMES}
    jax.config.update(NAMES[0], None)
    jax.config.update(NAMES[1], 1.0)
    for name in ("XDG_CACHE_HOME", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"):
        monkeypatch.delenv(name, raising=False)
    yield lambda: [jax.config.values[name] for name in NAMES]
    for name, value in before.items():
        jax.config.update(name, value)


def test_in_the_users_cache_folder(settings, monkeypatch, tmp_path):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    keep_compiled_programs()
    assert settings() == [str(tmp_path / ".cache" / "acf-rl" / "jax"), 0]


def test_where_the_user_keeps_caches(settings, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep_compiled_programs()
    assert settings()[0] == str(tmp_path / "acf-rl" / "jax")


def test_where_jax_was_told(settings):
    jax.config.update(NAMES[0], "elsewhere")
    keep_compiled_programs()
    assert settings() == ["elsewhere", 1.0]


def test_nowhere_without_a_home(settings, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    keep_compiled_programs()
    assert settings() == [None, 1.0]
