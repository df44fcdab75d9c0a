"""Tables in Excel files. The only module that imports openpyxl."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any
from zipfile import BadZipFile

from nkcme.errors import TableError
from nkcme.tables.text_structure import refuse_repeated_names

#: What CSV files have as empty fields or marks, and Excel as text or results of formulas.
_EMPTY = frozenset({"", "NA", "NaN", "nan", "null", "N/A", "n/a", "#N/A", "#VALUE!", "#REF!"})


def read_excel(handle: IO[bytes], path: str) -> tuple[dict[str, list[Any]], str | None]:
    """The columns of the first sheet by name, and a note where there are more sheets."""
    openpyxl = _need_openpyxl()
    try:
        book = openpyxl.load_workbook(handle, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        rows = list(_filled(sheet.iter_rows(values_only=True)))
    except (BadZipFile, KeyError, ValueError, OSError, EOFError, IndexError) as error:
        raise TableError(
            f"{path} is no whole Excel file ({type(error).__name__}); save it again as .xlsx"
        ) from error
    if not rows:
        raise TableError(f"{path} is empty, expected a header and rows; write the table again")
    width = max(_width(row) for row in rows)
    names = [None if name is None else str(name) for name in rows[0][:width]]
    nameless = [place for place, name in enumerate(names) if name is None]
    if nameless or len(names) < width:
        place = nameless[0] + 1 if nameless else width
        raise TableError(
            f"{path}, sheet {sheet.title!r}: column {place} has no name in the first row; give "
            "each column a name, and keep notes out of the sheet"
        )
    texts = [str(name) for name in names]
    refuse_repeated_names(texts, path)
    columns = {name: [row[place] for row in rows[1:]] for place, name in enumerate(texts)}
    note = None
    if len(book.worksheets) > 1:
        note = f"read the first of {len(book.worksheets)} sheets of {path}, {sheet.title!r}"
    return columns, note


def _filled(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The rows that have a value, with None for cells that count as empty."""
    for row in rows:
        cells = tuple(None if isinstance(x, str) and x.strip() in _EMPTY else x for x in row)
        if _width(cells):
            yield cells


def _width(row: tuple[Any, ...]) -> int:
    return max((place + 1 for place, cell in enumerate(row) if cell is not None), default=0)


def _need_openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError as error:
        raise TableError(
            "Excel files need openpyxl, which is not installed; run pip install 'nkcme[excel]' or "
            "use CSV"
        ) from error
    return openpyxl
