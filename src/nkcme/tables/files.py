"""Tables in CSV, TSV, Parquet and Excel files. The only module that imports pandas.

It does so once a table is read or written: a missing file is refused without.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from nkcme.errors import TableError
from nkcme.model_files.atomic_files import replacing
from nkcme.tables.columns import DECIMAL_OF_FILE, Table
from nkcme.tables.excel_files import read_excel
from nkcme.tables.plain_frame import PlainFrame
from nkcme.tables.table_options import UNKNOWN, TableOptions
from nkcme.tables.table_source import EXCEL, PARQUET, SEPARATORS, WRITTEN, TableSource, extension_of
from nkcme.tables.text_structure import read_structure, refuse_repeated_names

if TYPE_CHECKING:
    import pandas as pd

    from nkcme.tables.encoding import TableEncoder


def read_table(
    path: str | Path,
    like: TableEncoder | None = None,
    target: str | None = None,
    *,
    options: TableOptions = UNKNOWN,
    note: Callable[[str], object] | None = None,
    check: Callable[[PlainFrame], object] | None = None,
) -> pd.DataFrame:
    """The table in a CSV, TSV (either gzipped or not), Parquet or Excel file.

    The first row of text and Excel files names the columns. Empty fields and the usual marks (NA,
    NaN, null) are missing values. Anything wrong is a TableError of one line.

    The types of a text file's columns are inferred, unless ``like`` is given: the encoder of a
    fitted model. Columns that were text in its training table are then read as text, so the
    code 01 does not become the number 1 in a file that holds no other kind of code. Where training
    had no column names, columns go by position, ``target`` not counted.

    Parameters
    ----------
    path : str or Path
        "-" for standard input, whose first bytes tell what it is.
    like : TableEncoder, optional
    target : str, optional
    options : TableOptions
    note : callable, optional
        Receives a line on what was found in the file: a separator or decimal mark that is not the
        usual one, more sheets than one.
    check : callable, optional
        Called with a small text file before pandas is imported, to raise at once what would be
        raised of the frame.
    """
    note = note or (lambda _: None)
    source = TableSource.of(path)
    try:
        source.open().close()  # so that a missing or locked file is reported alike for all formats
        if source.extension == PARQUET:
            frame = _read_parquet(source)
        elif source.extension == EXCEL:
            frame = _read_excel(source, note)
        else:
            frame = _read_text(source, like, target, options, note, check)
    except FileNotFoundError as error:
        raise TableError(f"{path} does not exist; check the path of the table") from error
    except OSError as error:
        raise TableError(f"{path} cannot be read: {_reason(error)}; check the file") from error
    if frame.empty:
        raise _without_rows(str(path), len(frame), len(frame.columns))
    if options.missing:
        frame = _without_marks(frame, options.missing)
    if source.extension not in SEPARATORS and (mark := Table.read(frame, "X").decimal_mark()):
        frame.attrs[DECIMAL_OF_FILE] = mark
    return frame


def _without_rows(name: str, n_rows: int, n_columns: int) -> TableError:
    return TableError(
        f"{name} has {n_rows} rows and {n_columns} columns; expected at least one of each below a "
        "header"
    )


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
            _write(frame, handle, extension_of(path, WRITTEN))
    except OSError as error:
        raise TableError(
            f"{path} cannot be written: {_reason(error)}; choose another place"
        ) from error


def check_output(path: str | Path | None) -> None:
    """Refuse an unknown extension or a missing directory, before the table is made."""
    if path is None or str(path) == "-":
        return
    path = Path(path)
    extension_of(path, WRITTEN)
    if not os.path.isdir(path.parent):
        raise TableError(f"{path} cannot be written: no directory {path.parent}; make it first")


def _write(frame: pd.DataFrame, handle: IO[bytes], extension: str) -> None:
    if extension == PARQUET:
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
            sep=SEPARATORS[extension],
            compression="gzip" if extension.endswith(".gz") else None,
        )


def _reason(error: OSError) -> str:
    return error.strerror or _first_line(error)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _without_marks(frame: pd.DataFrame, marks: tuple[str, ...]) -> pd.DataFrame:
    """The table in which these texts, and the numbers that they are, count as missing."""
    numbers = {float(mark) for mark in marks if _is_float(mark)}
    for name in frame.columns:
        column = frame[name]
        texts = column.map(lambda value: value.strip() if isinstance(value, str) else value)
        frame[name] = column.mask(texts.isin(marks) | texts.isin(numbers))
    return frame


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# --------------------------------------------------------------------------- Parquet and Excel


def _need_pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise TableError(
            "Parquet needs pyarrow, which is not installed; run pip install 'nkcme[parquet]' or "
            "use CSV"
        ) from error
    return pyarrow


def _read_parquet(source: TableSource) -> pd.DataFrame:
    import pandas as pd

    pyarrow = _need_pyarrow()
    try:
        refuse_repeated_names(pyarrow.parquet.read_schema(source.place).names, source.name)
        frame = pd.read_parquet(source.place, engine="pyarrow")
    except TableError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise TableError(
            f"{source.name} is no whole Parquet file ({_first_line(error)}); write it again"
        ) from error
    frame.columns = frame.columns.map(str)
    return frame


def _read_excel(source: TableSource, note: Callable[[str], object]) -> pd.DataFrame:
    import pandas as pd

    with source.open() as handle:
        columns, about_sheets = read_excel(handle, source.name)
    if about_sheets is not None:
        note(about_sheets)
    return pd.DataFrame(columns)


# ---------------------------------------------------------------------------------- CSV and TSV


def _read_text(
    source: TableSource,
    like: TableEncoder | None,
    target: str | None,
    options: TableOptions,
    note: Callable[[str], object],
    check: Callable[[PlainFrame], object] | None,
) -> pd.DataFrame:
    usual = SEPARATORS[source.extension]
    encoding = "utf-8-sig" if options.encoding == "utf-8" else options.encoding
    try:
        with io.TextIOWrapper(source.open_text(), encoding, newline="") as handle:
            try:
                structure = read_structure(handle, source.name, usual, options.separator)
            except UnicodeError as error:
                raise TableError(
                    f"{source.name} is not {options.encoding.upper()} text: byte "
                    f"{_first_bad_byte(source, options.encoding)} cannot be decoded; save it again "
                    "as UTF-8, or name its encoding, as in --encoding cp1252"
                ) from error
        if not structure.n_rows:
            raise _without_rows(source.name, 0, len(structure.names))
        decimal = options.decimal or structure.decimal or (None if like is None else like.decimal)
        if decimal == ",":
            as_text = list(structure.names)  # pandas would read 1.200 as 1.2
        else:
            features = [name for name in structure.names if name != target]
            as_text = [*structure.codes, *([] if like is None else like.text_columns(features))]
        if check is not None and structure.rows is not None and not options.missing:
            plain = PlainFrame.read(structure.names, structure.rows, as_text, decimal)
            if plain is not None:
                check(plain)
        import pandas as pd

        with source.open_text() as handle:
            # low_memory=False: a column of any length has one type.
            frame = pd.read_csv(
                handle,
                sep=structure.separator,
                encoding=encoding,
                low_memory=False,
                dtype=dict.fromkeys(as_text, "str"),
            )
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TableError(
            f"{source.name} is no whole gzip file ({error}); compress it again"
        ) from error
    if len(frame) != structure.n_rows:  # pandas loses rows at a carriage return before a separator
        raise TableError(
            f"{source.name} has {structure.n_rows} rows of which {len(frame)} can be read; save it "
            "again with one kind of line ending"
        )
    found = [] if structure.separator == usual else [f"separated by {structure.separator!r}"]
    found += ["with decimal commas"] if decimal == "," else []
    if found:
        note(f"read {source.name} as {' and '.join(found)}")
    if decimal is not None:
        frame.attrs[DECIMAL_OF_FILE] = decimal
    return frame


def _first_bad_byte(source: TableSource, encoding: str) -> int:
    offset = 0
    with source.open_text() as handle:
        for line in handle:
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                return offset + error.start
            offset += len(line)
    return offset
