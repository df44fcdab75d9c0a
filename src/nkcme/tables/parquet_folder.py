"""Tables in several Parquet files, read a few rows at a time.

All files must have the same columns, each of one kind; a file that differs, or that is not whole,
is refused by its name before anything is computed. Rows are read by
``ParquetFile.iter_batches``, whose memory does not grow; that of ``pyarrow.dataset`` does.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nkcme.errors import TableError
from nkcme.tables.messages import listed, one_line
from nkcme.tables.table_source import PARQUET
from nkcme.tables.text_structure import refuse_repeated_names

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

#: Rows that are decoded together.
BATCH_ROWS = 65_536

#: The columns in which pandas keeps the index of a frame.
_INDEX = re.compile(r"__index_level_\d+__")

#: Bytes of a column that are read from a file together; without a buffer a row group is read whole.
_BUFFER_BYTES = 1 << 18


@dataclass(frozen=True)
class RowGroup:
    """Some neighbouring rows of a Parquet file, the least that is read on its own."""

    file: Path
    number: int  # in its file
    first_row: int  # counted over all files
    n_rows: int


@dataclass(frozen=True)
class ParquetFolder:
    """Parquet files that are one table, in the order of their names.

    Attributes
    ----------
    files : tuple of Path
    names : tuple of str
        The columns, in the order of the first file.
    kinds : tuple of str
        What each holds: number, boolean, text, date, time, nothing, or another type by its name.
    groups : tuple of RowGroup
        All row groups that have rows.
    """

    files: tuple[Path, ...]
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    groups: tuple[RowGroup, ...]

    @classmethod
    def open(cls, source: str | Path | Sequence[str | Path]) -> ParquetFolder:
        """The table in a folder, in the files of a pattern such as ``data/*.parquet``, in one file,
        or in a list of files; their schemas are read and compared, their rows are not.

        Raises
        ------
        TableError
            If there is no file, or one is not whole, lacks a column, has another one, or has one
            of another kind. The message names the file.
        """
        files = parquet_files(source)
        with _opened(files[0]) as opened:
            first = opened.schema_arrow
        names = columns_of(first)
        refuse_repeated_names(list(names), str(files[0]))
        kinds = {name: kind_of(first.field(name).type) for name in names}
        from_file = dict.fromkeys(names, files[0])
        groups: list[RowGroup] = []
        n_rows = 0
        for file in files:
            with _opened(file) as opened:
                _compare(opened.schema_arrow, file, kinds, from_file)
                metadata = opened.metadata
            for number in range(metadata.num_row_groups):
                of_group = metadata.row_group(number).num_rows
                if of_group:
                    groups.append(RowGroup(file, number, n_rows, of_group))
                n_rows += of_group
        if not n_rows:
            raise TableError(
                f"{_named(source)} has no rows: all of its {len(files)} files are empty"
            )
        return cls(files, names, tuple(kinds[name] for name in names), tuple(groups))

    @cached_property
    def n_rows(self) -> int:
        """The rows of all files."""
        return sum(group.n_rows for group in self.groups)

    def batches(
        self,
        group: RowGroup,
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pyarrow.Table]:
        """The rows of a row group, a few at a time, with their columns in the order of ``columns``.

        Raises
        ------
        TableError
            If the file changed, or its rows cannot be decoded.
        """
        import pyarrow

        wanted = list(self.names if columns is None else columns)
        n_rows = 0
        try:
            with _opened(group.file, buffer_size=_BUFFER_BYTES) as opened:
                for batch in opened.iter_batches(
                    batch_rows, [group.number], wanted, use_threads=False
                ):
                    n_rows += batch.num_rows
                    yield pyarrow.Table.from_batches([batch]).select(wanted)
        except (pyarrow.ArrowException, OSError, KeyError, IndexError) as error:
            raise _damaged(group.file, error) from error
        if n_rows != group.n_rows:
            raise TableError(
                f"{group.file} changed while it was read: {n_rows} instead of {group.n_rows} rows; "
                "start again"
            )

    def read(self, columns: Sequence[str] | None = None) -> pyarrow.Table:
        """All rows at once, for folders that fit into memory."""
        import pyarrow

        tables = [table for group in self.groups for table in self.batches(group, columns)]
        return pyarrow.concat_tables(tables, promote_options="permissive")


def is_folder(path: str | Path) -> bool:
    """Whether a path is a folder, or a pattern of several files, rather than one file."""
    return os.path.isdir(path) or (glob.has_magic(os.fspath(path)) and not os.path.exists(path))


def parquet_files(source: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    """The Parquet files of a folder, of a pattern, or of a list of files, in the order of names.

    Files whose name starts with a dot or an underscore, as Spark's ``_SUCCESS``, do not count.
    """
    if isinstance(source, str | os.PathLike):
        text = os.fspath(source)
        if os.path.isdir(text):
            found = [
                os.path.join(folder, name)
                for folder, _, names in os.walk(text)
                for name in names
                if name.lower().endswith(PARQUET) and not name.startswith((".", "_"))
            ]
        elif is_folder(text):
            found = [path for path in glob.glob(text, recursive=True) if os.path.isfile(path)]
        else:
            found = [text]
        if not found:
            raise TableError(f"{text} has no {PARQUET} file; check the path of the table")
    else:
        found = [os.fspath(path) for path in source]
        if not found:
            raise TableError("the list of Parquet files is empty; name at least one")
    return tuple(Path(path) for path in sorted(found))


def columns_of(schema: pyarrow.Schema) -> tuple[str, ...]:
    """The names of the columns of a Parquet file, without those of a pandas index."""
    return tuple(name for name in schema.names if not _INDEX.fullmatch(name))


def kind_of(arrow_type: pyarrow.DataType) -> str:
    """What a column of this type holds; types of one kind may differ between files."""
    from pyarrow import types

    if types.is_dictionary(arrow_type):
        return kind_of(arrow_type.value_type)
    kinds: dict[str, tuple[Any, ...]] = {
        "number": (types.is_integer, types.is_floating, types.is_decimal, types.is_duration),
        "boolean": (types.is_boolean,),
        "text": (types.is_string, types.is_large_string, types.is_string_view),
        "date": (types.is_timestamp, types.is_date),
        "time": (types.is_time,),
        "nothing": (types.is_null,),
    }
    found = (kind for kind, checks in kinds.items() if any(is_one(arrow_type) for is_one in checks))
    return next(found, str(arrow_type))


def _opened(file: Path, buffer_size: int = 0) -> pyarrow.parquet.ParquetFile:
    """A Parquet file, of which the schema was read."""
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise TableError(
            "Parquet needs pyarrow, which is not installed; run pip install 'nkcme[parquet]'"
        ) from error
    try:
        return ParquetFile(file, buffer_size=buffer_size, pre_buffer=False)
    except FileNotFoundError as error:
        raise TableError(f"{file} does not exist; check the path of the table") from error
    except (pyarrow.ArrowException, OSError) as error:
        raise _damaged(file, error) from error


def _compare(
    schema: pyarrow.Schema, file: Path, kinds: dict[str, str], from_file: dict[str, Path]
) -> None:
    """Refuse a file whose columns are not those of the first; a column without any value so far
    takes the kind that this file has."""
    names = columns_of(schema)
    first = next(iter(from_file.values()))
    absent = [name for name in kinds if name not in names]
    added = [name for name in names if name not in kinds]
    if absent or added:
        faults = [f"lacks {listed(absent)}"] if absent else []
        faults += [f"has {listed(added)} beside them"] if added else []
        raise TableError(
            f"{file} {' and '.join(faults)}: expected the columns of {first}; correct or remove it"
        )
    for name in kinds:
        kind = kind_of(schema.field(name).type)
        if kinds[name] == "nothing":
            kinds[name], from_file[name] = kind, file
        elif kind not in (kinds[name], "nothing"):
            raise TableError(
                f"{file} holds {kind} in column {name!r} ({schema.field(name).type}), and "
                f"{from_file[name]} holds {kinds[name]}; write both with one type"
            )


def _damaged(file: Path, error: Exception) -> TableError:
    return TableError(f"{file} is no whole Parquet file ({one_line(error)[:120]}); write it again")


def _named(source: Any) -> str:
    return str(source) if isinstance(source, str | os.PathLike) else "the list of Parquet files"
