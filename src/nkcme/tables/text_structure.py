"""A first pass over a CSV or TSV file, which checks its structure and finds how it is written.

pandas accepts damaged files: it fills short rows and renames repeated columns. So the csv module
reads the file first, and what it refuses is never handed to pandas.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TextIO

from nkcme.errors import TableError
from nkcme.tables.decimal_marks import DecimalEvidence
from nkcme.tables.text_numbers import is_code

#: Separators that are found without an option.
SEPARATORS = (",", ";", "\t", "|")

#: The rows in which decimal marks and codes are looked for.
_EXAMINED_ROWS = 10_000

#: Files with up to as many fields are kept, for checks before pandas reads them.
_FEW_FIELDS = 50_000


@dataclass(frozen=True)
class TextStructure:
    """The columns of a text file, the number of rows below its header, and how it is written.

    ``decimal`` is the decimal mark that its numbers show, None where they show none. ``codes`` are
    the columns with digits behind a zero, which numbers would lose. ``rows`` are the fields below
    the header of a small file, None for larger ones.
    """

    names: tuple[str, ...]
    n_rows: int
    separator: str
    decimal: str | None
    codes: tuple[str, ...]
    rows: list[list[str]] | None


def read_structure(
    handle: TextIO, path: str, usual: str, separator: str | None = None
) -> TextStructure:
    """The structure of a text file; each row must have the width of the header.

    Blank lines are no rows.

    Parameters
    ----------
    handle : text file
    path : str
        For messages.
    usual : str
        The separator of files with this extension, unless the header has more of another one.
    separator : str, optional
        The separator, where it was given.
    """
    lines = _lines(handle, path)
    skipped, header = next(((n, line) for n, line in enumerate(lines) if line.strip()), (0, ""))
    if not header:
        raise TableError(f"{path} is empty, expected a header and rows; write the table again")
    separator = separator or _separator_of(header, usual)
    reader = csv.reader(chain([header], lines), delimiter=separator, strict=True)
    names: tuple[str, ...] = ()
    n_rows = -1
    line = skipped + 1
    evidence, codes = DecimalEvidence(), set[int]()
    rows: list[list[str]] = []
    try:
        for row in reader:
            is_blank = not row or (len(row) == 1 and row[0].isspace())
            n_rows += not is_blank
            if not names:
                refuse_repeated_names(row, path)
                names = tuple(row)
            elif len(row) != len(names) and not is_blank:
                raise TableError(
                    f"{path}, line {line}: {len(row)} fields where the header has {len(names)}; "
                    "the file may be half-written, or a field with the separator lacks quotes"
                )
            elif n_rows <= _EXAMINED_ROWS:
                evidence.add(row)
                codes.update(place for place, field in enumerate(row) if is_code(field))
                if not is_blank and n_rows * len(names) <= _FEW_FIELDS:
                    rows.append(row)
            line = skipped + reader.line_num + 1
    except csv.Error as error:
        raise TableError(f"{path}, line {line}: {_fault(error)}") from error
    decimal = evidence.decimal(commas_are_decimal=separator == ";")
    codes_of = tuple(names[j] for j in sorted(codes))
    kept = rows if len(rows) == n_rows else None
    return TextStructure(names, n_rows, separator, decimal, codes_of, kept)


def _separator_of(header: str, usual: str) -> str:
    """The separator that occurs most often outside quotes, the usual one if several do."""
    bare = "".join(header.split('"')[::2])
    return max((usual, *SEPARATORS), key=bare.count)


def _fault(error: csv.Error) -> str:
    if "field limit" in str(error):
        return (
            f"a field of more than {csv.field_size_limit():,} characters; close its quote if one "
            "is open, or drop the column if it holds long texts"
        )
    return f"a quoted field is not closed or is invalid ({error}); the file may be half-written"


def _lines(handle: TextIO, path: str) -> Iterator[str]:
    for number, line in enumerate(handle, start=1):
        if "\0" in line:
            raise TableError(
                f"{path}, line {number}: a NUL character, so this is no text or a half-written "
                "file; save it again as UTF-8 text"
            )
        yield line


def refuse_repeated_names(names: Iterable[str], path: str) -> None:
    """Refuse a file in which two columns have the same name."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise TableError(
            f"{path} has several columns named {', '.join(map(repr, repeated[:5]))}; give each "
            "column its own name"
        )
