"""Results as rows: JSON lines, one file a cell, one line a run (a seed or a fold).

A file is replaced as a whole, so a process that is killed leaves the old one or the new one. Rows
that are there and of today's specification are finished and never run again, unless they failed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.experiments.specs import Cell
from nkcme.model_files import strict_json
from nkcme.model_files.atomic_files import fsync_directory, replacing

Row = dict[str, Any]


def _warn(message: str) -> None:
    print(f"nkcme: {message}", file=sys.stderr)


class Rows:
    """The rows under one directory."""

    def __init__(self, directory: Path, note: Callable[[str], object] = _warn):
        self._directory = directory
        self._note = note

    def path(self, cell: Cell) -> Path:
        return self._directory / cell.experiment / f"{cell.name}.jsonl"

    def of(self, cell: Cell) -> list[Row]:
        """The rows of a cell as it is specified today, failed ones too, by run."""
        return [row for row in self._all(cell) if row["run"] < cell.n_runs and cell.owns(row)]

    def finished(self, cell: Cell) -> list[Row]:
        return [row for row in self.of(cell) if "error" not in row]

    def missing(self, cell: Cell) -> list[int]:
        """The runs that are not finished."""
        done = {row["run"] for row in self.finished(cell)}
        return [run for run in range(cell.n_runs) if run not in done]

    def put(self, cell: Cell, row: Row) -> None:
        """Add a row, in the place of one of the same run; it is on the disk when this returns."""
        others = [old for old in self._all(cell) if old["run"] != row["run"]]
        rows = sorted([*others, row], key=lambda row: row["run"])
        path = self.path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, path.with_suffix(".partial")) as file:
            for line in map(strict_json.dumps, rows):
                file.write(line + b"\n")
        fsync_directory(path.parent)

    def _all(self, cell: Cell) -> list[Row]:
        path = self.path(cell)
        if not path.exists():
            return []
        rows = {}
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            if (row := _parsed(line)) is None:
                self._note(f"{path}: line {number} is no whole row, and is ignored")
            else:
                rows[row["run"]] = row
        return [rows[run] for run in sorted(rows)]


def _parsed(line: bytes) -> Row | None:
    """The row of a line; None where it is torn or something else."""
    try:
        row = strict_json.loads(line)
    except ValueError:
        return None
    is_row = (
        isinstance(row, dict)
        and isinstance(row.get("run"), int)
        and isinstance(row.get("fingerprint"), str)
        and ("error" in row or isinstance(row.get("metrics"), dict))
    )
    return row if is_row else None
