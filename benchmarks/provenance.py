"""Where a result comes from: time, commit, device and versions; and results as JSON files."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

import nkcme

#: Names the commit on machines that have a copy of the tree but no repository.
COMMIT_VARIABLE = "NKCME_COMMIT"

_LIBRARIES = ("jax", "jaxlib", "equinox", "optax", "numpy", "flowjax")


def provenance() -> dict[str, Any]:
    """The time now, and the commit, device, cores, Python and versions of this process."""
    return {"when": datetime.now(UTC).isoformat(timespec="seconds"), **_machine()}


def write_result(name: str, command: str, results: dict[str, Any], directory: Path) -> Path:
    """Write a result with its command and provenance to ``directory/name.json``; its path."""
    record = {"command": command, **provenance(), **results}
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return path


def device_name() -> str:
    """``cpu-2`` for two cores, else the name of the accelerator."""
    kind = jax.devices()[0].device_kind
    if jax.default_backend() == "cpu":
        return f"cpu-{os.cpu_count()}"
    return kind.lower().replace("nvidia ", "").replace(" ", "-")


def commit() -> str:
    """The commit of the library that is imported: ``NKCME_COMMIT``, else what git reports.

    "unknown" where the imported library is not a tracked file of the checkout that holds these
    benchmarks: the commit of that checkout would describe other code.
    """
    if named := os.environ.get(COMMIT_VARIABLE):
        return named
    try:
        _git("ls-files", "--error-unmatch", nkcme.__file__, folder=Path(__file__).parent)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit_of(Path(__file__).parent)


def commit_of(folder: Path) -> str:
    """The commit of the checkout that a folder is part of, or "unknown"."""
    try:
        return _git("describe", "--always", "--dirty", "--abbrev=12", folder=folder)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str, folder: Path) -> str:
    """What a git command prints, run in a folder."""
    done = subprocess.run(
        ["git", *arguments], capture_output=True, text=True, check=True, cwd=folder
    )
    return done.stdout.strip()


@cache
def _machine() -> dict[str, Any]:
    """The part of the provenance that does not change while a process runs."""
    return {
        "commit": commit(),
        "device": device_name(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {"nkcme": nkcme.__version__} | {p: v for p in _LIBRARIES if (v := _version(p))},
    }


def _version(package: str) -> str | None:
    """The installed version of a package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
