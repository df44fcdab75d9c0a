"""Tables in files: CSV, TSV and Parquet in, the same out. The only place that imports pandas.

pandas reads damaged CSV with few questions (short rows are filled, repeated names renamed), so a
first pass with the csv module looks at the structure, and what it refuses it refuses by line.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import os
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, TextIO

import numpy as np
import pandas as pd

from nkcme.errors import TableError
from nkcme.model_files.atomic_files import replacing
from nkcme.tables.encoding import as_target

_SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_PARQUET = ".parquet"


def read_table(path: str | Path) -> pd.DataFrame:
    """The table in a CSV, TSV (either gzipped or not) or Parquet file.

    Text is UTF-8, with or without a byte order mark; the first row names the columns. Empty fields
    and the usual marks (NA, NaN, null) are missing values. Anything wrong is a TableError of one
    line.
    """
    path = Path(path)
    if os.path.isdir(path):
        raise TableError(f"{path} is a directory, expected a table file; name the file in it")
    extension = _extension(path)
    try:
        with path.open("rb"):  # missing or locked is told before what reads it has its own words
            pass
        frame = _read_parquet(path) if extension == _PARQUET else _read_text(path, extension)
    except FileNotFoundError as error:
        raise TableError(f"{path} does not exist; check the path of the table") from error
    except OSError as error:
        raise TableError(f"{path} cannot be read: {_reason(error)}; check the file") from error
    if frame.empty:
        raise TableError(
            f"{path} has {len(frame)} rows and {len(frame.columns)} columns; expected at least one "
            "of each below a header"
        )
    return frame


def split_target(frame: pd.DataFrame, target: str) -> tuple[pd.DataFrame, np.ndarray]:
    """The features and the float64 target of a table, the target being one of its columns."""
    if target not in frame.columns:
        names = [str(name) for name in frame.columns]
        close = difflib.get_close_matches(target, names, n=3) or names[:10]
        raise TableError(
            f"the table has no column {target!r} to be the target; is it one of "
            f"{', '.join(map(repr, close))}?"
        )
    if len(frame.columns) == 1:
        raise TableError(
            f"the target {target!r} is the only column; a model needs at least one more to predict "
            "it from"
        )
    column = frame[target]
    missing = np.flatnonzero(column.isna())
    if len(missing):
        raise TableError(
            f"the target {target!r} has {len(missing)} missing values, the first in data row "
            f"{missing[0] + 1} (the header not counted); fill or drop these rows"
        )
    texts = [(row, text) for row, text in enumerate(column) if isinstance(text, str)]
    if texts:
        # "n/k" among numbers says more than the numbers, which are text only for its sake.
        row, example = next((pair for pair in texts if not _is_number(pair[1])), texts[0])
        raise TableError(
            f"the target {target!r} is text, such as {example[:40]!r} in data row {row + 1} (the "
            "header not counted), expected numbers; correct it or choose another target"
        )
    try:
        y = as_target(column)
    except TableError as error:
        raise TableError(f"the target {target!r} cannot be used: {error}") from error
    return frame.drop(columns=target), y


def to_frame(columns: dict[str, np.ndarray]) -> pd.DataFrame:
    """A table from its columns, for those who may not import pandas."""
    return pd.DataFrame(columns)


def write_table(frame: pd.DataFrame, path: str | Path | None) -> None:
    """Write a table by the extension of ``path``, or as CSV to stdout where it is None or "-".

    The file appears whole or not at all: a crash leaves what was there before.
    """
    if path is None or str(path) == "-":
        frame.to_csv(sys.stdout, index=False)
        return
    path = Path(path)
    extension = _extension(path)
    if not os.path.isdir(path.parent):
        raise TableError(f"{path} cannot be written: no directory {path.parent}; make it first")
    try:
        with replacing(path, path.with_name(f".{os.getpid()}-{path.name}")) as handle:
            _write(frame, handle, extension)
    except OSError as error:
        raise TableError(
            f"{path} cannot be written: {_reason(error)}; choose another place"
        ) from error


def _write(frame: pd.DataFrame, handle: IO[bytes], extension: str) -> None:
    if extension == _PARQUET:
        pyarrow = _need_pyarrow()
        try:
            frame.to_parquet(handle, engine="pyarrow", index=False)
        except pyarrow.ArrowException as error:
            raise TableError(
                f"the table does not fit in Parquet ({_first_line(error)}); write CSV instead"
            ) from error
    else:
        frame.to_csv(
            handle,
            index=False,
            sep=_SEPARATORS[extension],
            compression="gzip" if extension.endswith(".gz") else None,
        )


def _extension(path: Path) -> str:
    known = (*_SEPARATORS, _PARQUET)
    for extension in known:
        if path.name.lower().endswith(extension):
            return extension
    raise TableError(
        f"{path} has no known extension, expected {', '.join(known)}; convert or rename the file"
    )


def _reason(error: OSError) -> str:
    return error.strerror or _first_line(error)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# ------------------------------------------------------------------------------------- Parquet


def _need_pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise TableError(
            "Parquet needs pyarrow, which is not installed; run pip install 'nkcme[parquet]' or "
            "use CSV"
        ) from error
    return pyarrow


def _read_parquet(path: Path) -> pd.DataFrame:
    pyarrow = _need_pyarrow()
    try:
        _refuse_repeated(pyarrow.parquet.read_schema(path).names, path)
        frame = pd.read_parquet(path, engine="pyarrow")
    except TableError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise TableError(
            f"{path} is no whole Parquet file ({_first_line(error)}); write it again"
        ) from error
    frame.columns = frame.columns.map(str)
    return frame


# ---------------------------------------------------------------------------------- CSV and TSV


def _read_text(path: Path, extension: str) -> pd.DataFrame:
    separator = _SEPARATORS[extension]
    opener = gzip.open if extension.endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as handle:
            try:
                n_rows = _count_rows(handle, separator, path)
            except UnicodeDecodeError as error:
                raise TableError(
                    f"{path} is not UTF-8 text: byte {_first_bad_byte(path, opener)} cannot be "
                    "decoded; save it again as UTF-8"
                ) from error
        # low_memory=False: a column has one type, whatever its length.
        frame = pd.read_csv(path, sep=separator, low_memory=False)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TableError(f"{path} is no whole gzip file ({error}); compress it again") from error
    if len(frame) != n_rows:  # pandas loses a row at a lone carriage return before a separator
        raise TableError(
            f"{path} has {n_rows} rows of which {len(frame)} can be read; save it again with one "
            "kind of line ending"
        )
    return frame


def _first_bad_byte(path: Path, opener: Any) -> int:
    offset = 0
    with opener(path, "rb") as handle:
        for line in handle:
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return offset + error.start
            offset += len(line)
    return offset


def _count_rows(handle: TextIO, separator: str, path: Path) -> int:
    """Rows below the header, each of which must have its width; blank lines are no rows."""
    reader = csv.reader(_lines(handle, path), delimiter=separator, strict=True)
    n_rows = -1
    width = 0
    line = 1
    try:
        for row in reader:
            is_blank = not row or (len(row) == 1 and row[0].isspace())
            n_rows += not is_blank
            if not width and not is_blank:
                _check_header(row, path)
                width = len(row)
            elif len(row) != width and not is_blank:
                raise TableError(
                    f"{path}, line {line}: {len(row)} fields where the header has {width}; the "
                    "file may be half-written, or a field with the separator lacks quotes"
                )
            line = reader.line_num + 1
    except csv.Error as error:
        raise TableError(
            f"{path}, line {line}: a quoted field is not closed or goes wrong ({error}); the file "
            "may be half-written"
        ) from error
    if not width:
        raise TableError(f"{path} is empty, expected a header and rows; write the table again")
    return n_rows


def _lines(handle: TextIO, path: Path) -> Iterator[str]:
    for number, line in enumerate(handle, start=1):
        if "\0" in line:
            raise TableError(
                f"{path}, line {number}: a NUL character, so this is no text or a half-written "
                "file; save it again as UTF-8 text"
            )
        yield line


def _check_header(names: list[str], path: Path) -> None:
    if len(names) == 1 and ";" in names[0]:
        raise TableError(
            f"{path} seems to be separated by ';', expected ','; save it with commas, and points "
            "in decimal numbers"
        )
    _refuse_repeated(names, path)


def _refuse_repeated(names: list[str], path: Path) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise TableError(
            f"{path} has several columns named {', '.join(map(repr, repeated[:5]))}; give each its "
            "own name"
        )
