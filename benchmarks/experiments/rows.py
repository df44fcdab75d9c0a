"""Results as rows: JSON lines, one file per cell, one line per run (a seed or a fold).

A file is replaced as a whole, so after a kill it is either the old file or the new one. A run is
finished, and not run again, if its row matches the current specification and is not an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.experiments.cell import Cell
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

    @property
    def trials(self) -> Path:
        """The folder of runs on a cluster that are finished but not yet rows."""
        return self._directory / "trials"

    def path(self, cell: Cell) -> Path:
        """The file of a cell's rows."""
        return self._directory / cell.experiment / f"{cell.name}.jsonl"

    def of(self, cell: Cell) -> list[Row]:
        """The rows of a cell as it is specified now, including failed ones, ordered by run."""
        found = self._all(self.path(cell))
        return [row for row in found if row["run"] < cell.n_runs and cell.owns(row)]

    def finished(self, cell: Cell) -> list[Row]:
        """The rows of a cell that did not fail."""
        return [row for row in self.of(cell) if "error" not in row]

    def missing(self, cell: Cell) -> list[int]:
        """The runs of a cell that are not finished."""
        done = {row["run"] for row in self.finished(cell)}
        return [run for run in range(cell.n_runs) if run not in done]

    def latest(self, experiment: str) -> list[Row]:
        """The latest row of each file of an experiment, ordered by the names of the files."""
        files = sorted((self._directory / experiment).glob("*.jsonl"))
        return [max(rows, key=lambda row: row["when"]) for rows in map(self._all, files) if rows]

    def put(self, cell: Cell, row: Row) -> None:
        """Add a row, or replace that of the same run; it is on disk when this returns."""
        path = self.path(cell)
        others = [old for old in self._all(path) if old["run"] != row["run"]]
        rows = sorted([*others, row], key=lambda row: row["run"])
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, path.with_suffix(".partial")) as file:
            for line in map(strict_json.dumps, rows):
                file.write(line + b"\n")
        fsync_directory(path.parent)

    def _all(self, path: Path) -> list[Row]:
        """All rows in a file, of any recipe, ordered by run."""
        if not path.exists():
            return []
        rows = {}
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            if (row := _parsed(line)) is None:
                self._note(f"{path}: line {number} is not a complete row and is ignored")
            else:
                rows[row["run"]] = row
        return [rows[run] for run in sorted(rows)]


def _parsed(line: bytes) -> Row | None:
    """The row of a line, or None where the line is incomplete or something else."""
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
