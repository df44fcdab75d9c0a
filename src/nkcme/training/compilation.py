"""Waiting less for the compiler: its cache on disk, and programs that compile fast."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, cached_property
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
    config.update("jax_persistent_cache_min_compile_time_secs", 0.01)


def compilation_cache() -> Path | None:
    """Return the directory of compiled programs, which exists; None where they are not kept."""
    use_compilation_cache()
    config: Any = jax.config
    if not (config.jax_enable_compilation_cache and config.jax_compilation_cache_dir):
        return None
    directory = Path(config.jax_compilation_cache_dir)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return directory if os.access(directory, os.W_OK) else None


#: Without LLVM's optimisation programs of a CPU compile up to ten times faster, and run slower.
_UNOPTIMISED = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}

#: The simplifier of algebra finds other forms in a program for one device than in one for several
#: (jaxlib 0.10): the last digits would depend on the number of processes.
_LITERAL = {"xla_disable_hlo_passes": "algsimp"}

#: A GPU's compiler would try out many ways to multiply matrices, for longer than training takes.
_WITHOUT_TRIALS = {"xla_gpu_autotune_level": 0}


def jit_quickly(f: Callable[..., Any], **options: Any) -> Any:
    """`jax.jit` with these options, for programs that run only a few times."""
    return _Jitted(f, _UNOPTIMISED, options)


def jit_without_trials(f: Callable[..., Any], **options: Any) -> Any:
    """`jax.jit` with these options, for programs whose compilation takes as long as their run."""
    return _Jitted(f, {}, options)


def jit_literally(f: Callable[..., Any], **options: Any) -> Any:
    """`jax.jit` with these options, for programs with the same bits on one device and many."""
    return _Jitted(f, _LITERAL, options)


class _Jitted:
    """A function that is compiled with options of the compiler of a CPU or GPU."""

    def __init__(
        self, f: Callable[..., Any], of_cpu: dict[str, Any], options: dict[str, Any]
    ) -> None:
        self._f, self._of_cpu, self._options = f, of_cpu, options

    @cached_property
    def _jitted(self) -> Any:
        options = {"cpu": self._of_cpu, "gpu": _WITHOUT_TRIALS}.get(jax.default_backend())
        if options is not None and _takes(tuple(options.items())):
            return jax.jit(self._f, compiler_options=options, **self._options)
        return jax.jit(self._f, **self._options)

    def __call__(self, *args: Any) -> Any:
        return self._jitted(*args)

    def lower(self, *args: Any) -> Any:
        """As the method of a jitted function."""
        return self._jitted.lower(*args)

    def eval_shape(self, *args: Any) -> Any:
        """As the method of a jitted function, which a later call need not trace again."""
        return self._jitted.eval_shape(*args)


@cache
def _takes(options: tuple[tuple[str, Any], ...]) -> bool:
    """Whether the compiler knows the options: their names are not part of JAX's interface."""
    try:
        jax.jit(lambda x: x, compiler_options=dict(options)).lower(0.0).compile()
    except Exception:
        return False
    return True
