"""A first pass over a CSV or TSV file, which checks its structure and names the line of a fault.

pandas accepts damaged files: it fills short rows and renames repeated columns. So the csv module
reads the file first, and what it refuses is never handed to pandas.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from nkcme.errors import TableError


@dataclass(frozen=True)
class TextStructure:
    """The columns of a text file, and the number of rows below its header."""

    names: tuple[str, ...]
    n_rows: int


def read_structure(handle: TextIO, separator: str, path: Path) -> TextStructure:
    """The structure of a text file; each row must have the width of the header.

    Blank lines are no rows.
    """
    reader = csv.reader(_lines(handle, path), delimiter=separator, strict=True)
    names: tuple[str, ...] = ()
    n_rows = -1
    line = 1
    try:
        for row in reader:
            is_blank = not row or (len(row) == 1 and row[0].isspace())
            n_rows += not is_blank
            if not names and not is_blank:
                _check_header(row, path)
                names = tuple(row)
            elif len(row) != len(names) and not is_blank:
                raise TableError(
                    f"{path}, line {line}: {len(row)} fields where the header has {len(names)}; "
                    "the file may be half-written, or a field with the separator lacks quotes"
                )
            line = reader.line_num + 1
    except csv.Error as error:
        raise TableError(f"{path}, line {line}: {_fault(error)}") from error
    if not names:
        raise TableError(f"{path} is empty, expected a header and rows; write the table again")
    return TextStructure(names, n_rows)


def _fault(error: csv.Error) -> str:
    if "field limit" in str(error):
        return (
            f"a field of more than {csv.field_size_limit():,} characters; close its quote if one "
            "is open, or drop the column if it holds long texts"
        )
    return f"a quoted field is not closed or is invalid ({error}); the file may be half-written"


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
    refuse_repeated_names(names, path)


def refuse_repeated_names(names: list[str], path: Path) -> None:
    """Refuse a file in which two columns have the same name."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise TableError(
            f"{path} has several columns named {', '.join(map(repr, repeated[:5]))}; give each "
            "column its own name"
        )
