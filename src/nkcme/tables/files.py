"""Tables in CSV, TSV and Parquet files. The only module that imports pandas.

It does so once a table is read or written: a missing file is refused without.
"""

from __future__ import annotations

import difflib
import gzip
import os
import sys
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from nkcme.errors import TableError
from nkcme.model_files.atomic_files import replacing
from nkcme.tables.columns import reads_as_number
from nkcme.tables.target import as_target
from nkcme.tables.text_structure import read_structure, refuse_repeated_names

if TYPE_CHECKING:
    import pandas as pd

    from nkcme.tables.encoding import TableEncoder

_SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_PARQUET = ".parquet"


def read_table(
    path: str | Path, like: TableEncoder | None = None, target: str | None = None
) -> pd.DataFrame:
    """The table in a CSV, TSV (either gzipped or not) or Parquet file.

    Text is UTF-8, with or without a byte order mark; the first row names the columns. Empty fields
    and the usual marks (NA, NaN, null) are missing values. Anything wrong is a TableError of one
    line.

    The types of a text file's columns are inferred, unless ``like`` is given: the encoder of a
    fitted model. Columns that were categories in its training table are then read as text, so the
    code 01 does not become the number 1 in a file that holds no other kind of code. Where training
    had no column names, columns go by position, ``target`` not counted.
    """
    path = Path(path)
    if os.path.isdir(path):
        raise TableError(f"{path} is a directory, expected a table file; name the file in it")
    extension = _extension(path)
    try:
        with path.open("rb"):  # so that a missing or locked file is reported alike for all formats
            pass
        if extension == _PARQUET:
            frame = _read_parquet(path)
        else:
            frame = _read_text(path, extension, like, target)
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
        # The numbers of a column are text because of one value such as "n/k": show that one.
        row, example = next((pair for pair in texts if not reads_as_number(pair[1])), texts[0])
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
    """A table from its columns, for modules that do not import pandas."""
    import pandas as pd

    return pd.DataFrame(columns)


def write_table(frame: pd.DataFrame, path: str | Path | None) -> None:
    """Write a table by the extension of ``path``, or as CSV to stdout where it is None or "-".

    The file appears whole or not at all: after a crash the old file is still there.
    """
    if path is None or str(path) == "-":
        frame.to_csv(sys.stdout, index=False)
        return
    check_output(path)
    path = Path(path)
    try:
        with replacing(path, path.with_name(f".{os.getpid()}-{path.name}")) as handle:
            _write(frame, handle, _extension(path))
    except OSError as error:
        raise TableError(
            f"{path} cannot be written: {_reason(error)}; choose another place"
        ) from error


def check_output(path: str | Path | None) -> None:
    """Refuse an unknown extension or a missing directory, before the table is made."""
    if path is None or str(path) == "-":
        return
    path = Path(path)
    _extension(path)
    if not os.path.isdir(path.parent):
        raise TableError(f"{path} cannot be written: no directory {path.parent}; make it first")


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
    import pandas as pd

    pyarrow = _need_pyarrow()
    try:
        refuse_repeated_names(pyarrow.parquet.read_schema(path).names, path)
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


def _read_text(
    path: Path, extension: str, like: TableEncoder | None, target: str | None
) -> pd.DataFrame:
    separator = _SEPARATORS[extension]
    opener = gzip.open if extension.endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as handle:
            try:
                structure = read_structure(handle, separator, path)
            except UnicodeDecodeError as error:
                raise TableError(
                    f"{path} is not UTF-8 text: byte {_first_bad_byte(path, opener)} cannot be "
                    "decoded; save it again as UTF-8"
                ) from error
        features = [name for name in structure.names if name != target]
        as_text = [] if like is None else like.text_columns(features)
        import pandas as pd

        # low_memory=False: a column of any length has one type.
        frame = pd.read_csv(
            path, sep=separator, low_memory=False, dtype=dict.fromkeys(as_text, "str")
        )
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TableError(f"{path} is no whole gzip file ({error}); compress it again") from error
    if len(frame) != structure.n_rows:  # pandas loses rows at a carriage return before a separator
        raise TableError(
            f"{path} has {structure.n_rows} rows of which {len(frame)} can be read; save it again "
            "with one kind of line ending"
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
