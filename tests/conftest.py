"""Settings of the whole suite. Warnings are errors (pyproject.toml); so is rank promotion."""

import gc
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import jax
import pytest

# A test never compiles into, nor reads from, the user's own cache. The processes that share the
# suite, and those that tests start, inherit the directory: what one compiles the others find.
_CACHE = os.environ.get("NKCME_TEST_CACHE") or tempfile.mkdtemp(prefix="nkcme-tests-")
os.environ["NKCME_TEST_CACHE"] = os.environ["JAX_COMPILATION_CACHE_DIR"] = _CACHE


def _compiler_flags() -> str:
    """The suite is little else than compiling small programs: those that come fast will do. A
    compiler that has lost one of the flags ends its process, so they are tried in another."""
    flags = (
        "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
        "--xla_cpu_parallel_codegen_split_count=1"
    )
    flags = f"{os.environ.get('XLA_FLAGS', '')} {flags}"
    command = [sys.executable, "-c", "import jax; jax.devices()"]
    tried = subprocess.run(command, env=os.environ | {"XLA_FLAGS": flags}, capture_output=True)
    return os.environ.get("XLA_FLAGS", "") if tried.returncode else flags


# Processes that tests start find what tests find: tests/support, and benchmarks.
_ROOT = Path(__file__).parents[1]
os.environ["PYTHONPATH"] = os.pathsep.join(map(str, (_ROOT / "src", _ROOT / "tests", _ROOT)))


def _use_one_core(worker: str) -> None:
    """Each of several test processes on a core of its own: programs are then compiled for one group
    of replicas, and the threads of two processes do not compete."""
    if hasattr(os, "sched_getaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})


if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    _use_one_core(worker)
else:  # whose environment the workers inherit
    os.environ["XLA_FLAGS"] = _compiler_flags()
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
# shap brings numba along, which compiles for ten seconds where Python takes milliseconds.
os.environ["NUMBA_DISABLE_JIT"] = "1"
jax.config.update("jax_compilation_cache_dir", _CACHE)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
jax.config.update("jax_numpy_rank_promotion", "raise")
# On a GPU the default is ten bits of a float's 24, and tests compare digits.
jax.config.update("jax_default_matmul_precision", "highest")

_SLOW = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=_SLOW
)
hypothesis.settings.register_profile(
    "search", deadline=None, max_examples=2000, suppress_health_check=_SLOW
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


_MAPS = Path("/proc/self/maps")
_MANY_MAPS = 30_000
_TESTS_BETWEEN_LOOKS = 20
_tests_run = itertools.count(1)


@pytest.fixture(autouse=True)
def _forget_programs() -> Iterator[None]:
    """A compiled program holds a dozen maps of memory, of which Linux gives a process 65,530: a
    suite that kept all its programs would end in a segmentation fault. On disk they stay."""
    yield
    if next(_tests_run) % _TESTS_BETWEEN_LOOKS or not _MAPS.exists():
        return
    if len(_MAPS.read_bytes().splitlines()) > _MANY_MAPS:
        jax.clear_caches()
        gc.collect()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the others may still be at work
        shutil.rmtree(_CACHE, ignore_errors=True)
