"""Compiled programs are kept between runs, in the user's cache folder: the second run of a program starts at once."""

import os
from pathlib import Path

import jax


def keep_compiled_programs() -> None:
    """Unless JAX was told where (`JAX_COMPILATION_CACHE_DIR`), or told not to (`JAX_ENABLE_COMPILATION_CACHE=0`)."""
    if jax.config.values["jax_compilation_cache_dir"] is None:
        try:
            caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        except RuntimeError:
            return  # a user without a home, as in some containers
        jax.config.update("jax_compilation_cache_dir", str(caches / "acf-rl" / "jax"))
        if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
            # JAX would leave out what compiles within a second: a command has several of those.
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
