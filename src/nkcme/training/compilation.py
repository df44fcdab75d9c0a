"""The cache of compiled programs on disk, which a new process reads instead of compiling again."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import jax
import platformdirs


@cache
def use_compilation_cache() -> None:
    """Keep compiled programs in the user's cache directory.

    A cache that the user has configured (or disabled, with ``JAX_ENABLE_COMPILATION_CACHE=false``)
    is left unchanged. Where the directory is not writable, programs are not cached.
    """
    config: Any = jax.config  # its flags are not typed
    if config.jax_compilation_cache_dir or not config.jax_enable_compilation_cache:
        return
    directory = Path(platformdirs.user_cache_dir("nkcme")) / "compiled"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    if not os.access(directory, os.W_OK):
        return
    config.update("jax_compilation_cache_dir", str(directory))
    # Most programs here compile in less than JAX's threshold of one second, and there are several.
    config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
