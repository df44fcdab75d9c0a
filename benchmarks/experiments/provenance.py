"""Where a number comes from: the machine, the commit and the versions behind it."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

from nkcme._version import __version__

_PACKAGE = Path(__file__).parents[1]
_LIBRARIES = ("jax", "jaxlib", "equinox", "optax", "numpy", "flowjax")


def device_name() -> str:
    """``cpu-2`` for two cores, else the accelerator's name."""
    kind = jax.devices()[0].device_kind
    if jax.default_backend() == "cpu":
        return f"cpu-{os.cpu_count()}"
    return kind.lower().replace("nvidia ", "").replace(" ", "-")


def commit() -> str:
    """The commit that is checked out; ``NKCME_COMMIT`` says it where there is no repository."""
    if named := os.environ.get("NKCME_COMMIT"):
        return named
    try:
        # An installed package may lie in a checkout of something else, whose commit says nothing.
        _git("ls-files", "--error-unmatch", "__init__.py")
        return _git("describe", "--always", "--dirty", "--abbrev=12")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    told = subprocess.run(
        ["git", *arguments], capture_output=True, text=True, check=True, cwd=_PACKAGE
    )
    return told.stdout.strip()


@cache
def _machine() -> dict[str, Any]:
    """What stays the same while a process runs."""
    return {
        "commit": commit(),
        "device": device_name(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {"nkcme": __version__} | {p: v for p in _LIBRARIES if (v := _version(p))},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def provenance() -> dict[str, Any]:
    """When, from which commit, on what device and with which versions."""
    return {"when": datetime.now(UTC).isoformat(timespec="seconds"), **_machine()}
