"""A result is a file: what was run, on what, from which commit, and what came out."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

RESULTS = Path(__file__).parent.parent / "results"


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
        told = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            check=True,
            cwd=RESULTS.parent,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return told.stdout.strip()


def write(name: str, command: str, results: dict[str, Any], directory: Path = RESULTS) -> Path:
    """Write ``results/name.json`` with everything needed to read it later."""
    record = {
        "command": command,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "device": device_name(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {p: version(p) for p in ("jax", "jaxlib", "equinox", "optax", "numpy")},
        **results,
    }
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    path.write_text(json.dumps(record, indent=2) + "\n")
    return path
