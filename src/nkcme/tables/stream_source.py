"""What tables that do not fit into memory are given as: all of it becomes Parquet files.

Fitting reads a table several times and in another order of rows, so frames that come once, one
after the other, are first written to a temporary folder, a few at a time.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nkcme.errors import TableError
from nkcme.tables.messages import one_line
from nkcme.tables.parquet_folder import ParquetFolder

if TYPE_CHECKING:
    import pyarrow

#: Rows of a file, and of a row group, in a temporary folder.
_FILE_ROWS = 131_072


@contextmanager
def parquet_of(source: Any) -> Iterator[ParquetFolder]:
    """The Parquet files of a table, within this context.

    Parameters
    ----------
    source : str, Path, list of paths, pyarrow dataset, polars LazyFrame, iterable or callable
        A folder, pattern, file or list of Parquet files is read where it is, and so are the local
        Parquet files of a pyarrow dataset without filters. A lazy frame, another dataset, and
        frames of pandas, polars or pyarrow from an iterable, or from a callable that returns one,
        are written to a temporary folder first.
    """
    files = _files_of(source)
    if files is not None:
        yield ParquetFolder.open(files)
        return
    with tempfile.TemporaryDirectory(prefix="nkcme-") as folder:
        if hasattr(source, "sink_parquet"):  # polars' lazy frame
            source.sink_parquet(Path(folder) / "frame.parquet", row_group_size=_FILE_ROWS)
        else:
            _write(_frames_of(source), Path(folder))
        yield ParquetFolder.open(folder)


def is_stream(source: Any) -> bool:
    """Whether this is a table for `parquet_of`, rather than one in memory."""
    return (
        isinstance(source, str | os.PathLike)
        or callable(source)
        or hasattr(source, "sink_parquet")
        or _is_dataset(source)
        or isinstance(source, Iterator)
        or (isinstance(source, list | tuple) and _are_paths(source))
    )


def _are_paths(source: Any) -> bool:
    return bool(source) and all(isinstance(one, str | os.PathLike) for one in source)


def _is_dataset(source: Any) -> bool:
    return hasattr(source, "get_fragments") and hasattr(source, "scanner")


def _files_of(source: Any) -> Any:
    """The paths of Parquet files, where the source is or has them; else None."""
    if isinstance(source, str | os.PathLike):
        return source
    if isinstance(source, list | tuple) and (not source or _are_paths(source)):
        return source
    if _is_dataset(source) and not getattr(source, "_scan_options", None):
        from pyarrow.fs import LocalFileSystem

        kind = getattr(getattr(source, "format", None), "default_extname", "")
        local = isinstance(getattr(source, "filesystem", None), LocalFileSystem)
        if kind == "parquet" and local:
            return list(source.files)
    return None


def _frames_of(source: Any) -> Iterable[Any]:
    if _is_dataset(source):
        # Without reading ahead: it would hold many batches at once.
        return source.scanner(batch_readahead=0, fragment_readahead=0).to_batches()
    frames: Callable[[], Any] | Iterable[Any] = source
    given = frames() if callable(frames) else frames
    try:
        return iter(given)
    except TypeError:
        raise TableError(
            "a table to be read from disk must be a folder of Parquet files, a pyarrow dataset, a "
            "polars LazyFrame, or frames from an iterable or a callable; got "
            f"{type(given).__name__}"
        ) from None


def _write(frames: Iterable[Any], folder: Path) -> None:
    """Write frames to files of about `_FILE_ROWS` rows."""
    from pyarrow import concat_tables
    from pyarrow.parquet import write_table

    waiting: list[pyarrow.Table] = []
    first = 0

    def flush(number: int) -> None:
        nonlocal first
        if waiting:
            file = folder / f"frame-{first:09d}.parquet"
            write_table(concat_tables(waiting), file, row_group_size=_FILE_ROWS)
            waiting.clear()
        first = number

    number = 0
    for number, frame in enumerate(frames):
        table = _arrow_table(frame, number)
        n_waiting = sum(one.num_rows for one in waiting)
        if waiting and (n_waiting >= _FILE_ROWS or waiting[-1].schema != table.schema):
            flush(number)
        waiting.append(table)
    flush(number)
    if not any(folder.iterdir()):
        raise TableError("the table has no frames; give at least one")


def _arrow_table(frame: Any, number: int) -> pyarrow.Table:
    import narwhals.stable.v1 as nw
    import pyarrow

    if isinstance(frame, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([frame])
    try:
        table = nw.from_native(frame, eager_only=True).to_arrow()
    except (TypeError, ValueError, pyarrow.ArrowException) as error:
        raise TableError(
            f"frame {number} (counting from 0) is no pandas, polars or pyarrow frame that Parquet "
            f"can hold ({one_line(error)[:120]}); convert it"
        ) from error
    return table.replace_schema_metadata(None)
