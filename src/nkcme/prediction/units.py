"""The units of a folder's prediction: some row groups of one file, whose predictions are one file.

Units follow from the folder alone, not from the number of workers, so that the same files are
written in any division of the work. Each file records a fingerprint of what it is made from; a
finished one is known by it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nkcme.errors import TableError
from nkcme.prediction.predictor import Predictor
from nkcme.tables.parquet_folder import ParquetFolder, RowGroup

#: A file of more rows is predicted in several units, divided between row groups.
UNIT_ROWS = 1_000_000

#: Of a Parquet file, its last bytes: the length of the footer, and the name of the format.
_TAIL_BYTES = 8


@dataclass(frozen=True)
class Unit:
    """Rows of one file, and where their predictions go.

    Attributes
    ----------
    rows : ParquetFolder
        The file and its row groups.
    output : Path
    fingerprint : str
        Of the model, the columns requested and the input.
    """

    rows: ParquetFolder
    output: Path
    fingerprint: str

    @property
    def file(self) -> Path:
        """The file that is read."""
        return self.rows.files[0]


def units_of(
    table: ParquetFolder, out: Path, predictor: Predictor, unit_rows: int = UNIT_ROWS
) -> list[Unit]:
    """The units of a table, in the order of its rows; their files lie as those of the input."""
    root = os.path.commonpath([file.parent.absolute() for file in table.files])
    model = hashlib.sha256((Path(predictor.path) / "config.json").read_bytes()).hexdigest()
    request = [model, predictor.columns, predictor.keep]
    units = []
    for file in table.files:
        own = [group for group in table.groups if group.file == file]
        parts = _divided(own, unit_rows)
        beside = out / os.path.relpath(file.absolute(), root)
        footer = _footer_digest(file) if parts else ""
        for number, groups in enumerate(parts, start=1):
            suffix = f"-{number:04d}-of-{len(parts):04d}" if len(parts) > 1 else ""
            made_from = [*request, footer, [group.number for group in groups]]
            units.append(
                Unit(
                    replace(table, files=(file,), groups=tuple(groups)),
                    beside.with_name(f"{beside.stem}{suffix}{beside.suffix}"),
                    hashlib.sha256(json.dumps(made_from).encode()).hexdigest(),
                )
            )
    outputs = [unit.output for unit in units]
    if repeated := [path for path in outputs if outputs.count(path) > 1]:
        raise TableError(
            f"two files of the folder give predictions named {repeated[0].name}; rename one"
        )
    return units


def shard_of(units: Sequence[Unit], number: int, count: int) -> list[Unit]:
    """The units of shard ``number``, from 1 to ``count``."""
    return list(units[number - 1 :: count])


def _divided(groups: Sequence[RowGroup], unit_rows: int) -> list[list[RowGroup]]:
    """Neighbouring row groups together, up to a number of rows."""
    parts: list[list[RowGroup]] = []
    n_rows = 0
    for group in groups:
        if not parts or n_rows + group.n_rows > unit_rows:
            parts.append([])
            n_rows = 0
        parts[-1].append(group)
        n_rows += group.n_rows
    return parts


def _footer_digest(file: Path) -> str:
    """A digest of the footer of a Parquet file, which has the place and size of every column."""
    with file.open("rb") as opened:
        size = opened.seek(0, os.SEEK_END)
        opened.seek(size - _TAIL_BYTES)
        n_footer = int.from_bytes(opened.read(4), "little")
        opened.seek(max(size - _TAIL_BYTES - n_footer, 0))
        return f"{size} {hashlib.sha256(opened.read()).hexdigest()}"
