"""The measurements of ``python -m benchmarks scale``, each a row of results/scale-DEVICE.jsonl."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.provenance import device_name, provenance
from benchmarks.scale.cost_model import measured_constants, predictions
from benchmarks.scale.fits import measured
from benchmarks.scale.kills import killed_fits
from benchmarks.scale.large_table import write_folder
from benchmarks.scale.training_steps import compared

#: The measurements by name.
PARTS = ("disk", "memory", "processes", "kills")

_STEPS_ROWS = 2_000_000

#: Cross-fitting takes 4 kB a row.
_MOST_CROSS_FITTED = 2_000_000


def main(
    parts: list[str], rows: int, compared_rows: int, kills: int, place: Path, out: Path
) -> None:
    """Run measurements, and append their rows as they are made; generated tables are deleted."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"scale-{device_name()}.jsonl"
    for part in parts:
        for row in _measure(part, rows, compared_rows, kills, place):
            line = json.dumps({"part": part, **provenance(), **row})
            print(line, flush=True)
            with file.open("a", encoding="utf-8") as handle:
                handle.write(line + "\n")


def _measure(
    part: str, rows: int, compared_rows: int, kills: int, place: Path
) -> Iterator[dict[str, Any]]:
    folder = place / f"nkcme-{part}"
    try:
        if part == "disk":
            yield measured(folder, rows, in_memory=False)
        elif part == "memory":
            for in_memory in (False, True):
                yield measured(folder, compared_rows, in_memory=in_memory)
            if compared_rows <= _MOST_CROSS_FITTED:
                yield measured(folder, compared_rows, in_memory=True, cross_fitted=True)
        elif part == "processes":
            write_folder(folder, _STEPS_ROWS)
            found = compared(folder)
            yield from found
            yield from predictions(measured_constants(folder, found))
        else:
            yield from killed_fits(kills)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
