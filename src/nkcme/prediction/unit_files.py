"""One unit predicted and written: the file appears whole or not at all."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nkcme.errors import TableError, UnknownCategoryWarning
from nkcme.model_files.atomic_files import fsync_directory, replacing
from nkcme.prediction.predictor import Predictor
from nkcme.prediction.units import Unit
from nkcme.tables.messages import one_line

if TYPE_CHECKING:
    import pyarrow

#: The key of a Parquet file's metadata under which the fingerprint of its unit is kept.
_FINGERPRINT = b"nkcme.prediction"

_PARTIAL = ".partial"


class Done(NamedTuple):
    """A unit that is finished: its file, its rows, and what is to be reported about it."""

    output: Path
    n_rows: int
    notes: tuple[str, ...]


def is_finished(unit: Unit) -> bool:
    """Whether the file of a unit is there; one that holds anything else is refused."""
    if not unit.output.exists():
        return False
    import pyarrow
    from pyarrow.parquet import read_metadata

    try:
        found = (read_metadata(unit.output).metadata or {}).get(_FINGERPRINT)
    except (pyarrow.ArrowException, OSError):
        found = None
    if found != unit.fingerprint.encode():
        raise TableError(
            f"{unit.output} holds something other than the predictions of this model, input and "
            "columns; choose another folder for --out, or remove it"
        )
    return True


def predict_unit(predictor: Predictor, unit: Unit) -> Done:
    """Predict the rows of a unit and write its file; memory does not grow with the rows."""
    if is_finished(unit):  # by a worker that was believed lost
        return Done(unit.output, unit.rows.n_rows, ())
    unit.output.parent.mkdir(parents=True, exist_ok=True)
    for abandoned in unit.output.parent.glob(f".{unit.output.name}.*{_PARTIAL}"):
        abandoned.unlink(missing_ok=True)
    worker = f"{socket.gethostname()}-{os.getpid()}"
    partial = unit.output.with_name(f".{unit.output.name}.{worker}{_PARTIAL}")
    with warnings.catch_warnings(record=True) as caught, replacing(unit.output, partial) as file:
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UnknownCategoryWarning)
        n_rows = _write(file, _predicted(predictor, unit), unit.fingerprint)
    fsync_directory(unit.output.parent)
    notes = dict.fromkeys(f"{unit.file}: {one_line(warning.message)}" for warning in caught)
    return Done(unit.output, n_rows, tuple(notes))


def check_first_rows(predictor: Predictor, unit: Unit) -> None:
    """Predict a row of a unit, so that a table that does not fit the model is refused at once."""
    rows = unit.rows.batches(unit.rows.groups[0], batch_rows=1)
    _predict(predictor, unit, next(rows))
    rows.close()  # type: ignore[attr-defined]


def _predicted(predictor: Predictor, unit: Unit) -> Iterator[pyarrow.Table]:
    for group in unit.rows.groups:
        for table in unit.rows.batches(group):
            yield _predict(predictor, unit, table)


def _predict(predictor: Predictor, unit: Unit, table: pyarrow.Table) -> Any:
    try:
        return predictor(table)
    except TableError as error:
        raise TableError(f"{unit.file}: {error}") from error


def _write(file: Any, tables: Iterator[pyarrow.Table], fingerprint: str) -> int:
    """Write tables as the row groups of one Parquet file; the number of rows."""
    from pyarrow.parquet import ParquetWriter

    first = next(tables)
    n_rows = first.num_rows
    with ParquetWriter(file, first.schema) as writer:
        writer.add_key_value_metadata({_FINGERPRINT: fingerprint.encode()})
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)
            n_rows += table.num_rows
    return n_rows
