"""A result is a file: what was run, on what, from which commit, and what came out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.experiments.provenance import provenance

RESULTS = Path(__file__).parents[2] / "results"


def write(name: str, command: str, results: dict[str, Any], directory: Path = RESULTS) -> Path:
    """Write ``results/name.json`` with everything needed to read it later."""
    record = {"command": command, **provenance(), **results}
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    path.write_text(json.dumps(record, indent=2) + "\n")
    return path
