"""How every column of a table was read, and the doubts about it, for people to check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nkcme.tables.column_encoding import Column
from nkcme.tables.column_reading import Reading, read_column
from nkcme.tables.columns import RawColumn, Table
from nkcme.tables.doubts import doubts_of
from nkcme.tables.encoding import ColumnTypes, TableEncoder, chosen_types
from nkcme.tables.hashed_words import N_HASHED

#: Doubts are looked for in this many rows, evenly over the table.
_EXAMINED_ROWS = 10_000

HEADINGS = ("column", "kind", "levels", "missing", "becomes")


@dataclass(frozen=True)
class ColumnSummary:
    """How one column was read.

    Attributes
    ----------
    name : str or int
        Or its position, where columns have no names.
    kind : str
        number, boolean, category, text, date, time, empty or unused.
    levels : int or None
        The different values of a category or text.
    missing : int or None
        Rows without a value; None for a model that was loaded, which does not keep the number.
    becomes : str
        The inputs of the model.
    """

    name: str | int
    kind: str
    levels: int | None
    missing: int | None
    becomes: str

    def cells(self) -> tuple[str, ...]:
        """The row of a printed table."""
        numbers = ("" if n is None else f"{n:,}" for n in (self.levels, self.missing))
        return str(self.name), self.kind, *numbers, self.becomes


@dataclass(frozen=True)
class TableSummary:
    """How every column of the training table was read; printed, it is a table.

    Attributes
    ----------
    columns : tuple of ColumnSummary
    doubts : tuple of str
        What may be wrong, one line each.
    """

    columns: tuple[ColumnSummary, ...]
    doubts: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        X: Any,
        encoder: TableEncoder,
        y: np.ndarray,
        types: ColumnTypes | None = None,
    ) -> TableSummary:
        """The summary of a training table, of its rows that count.

        Parameters
        ----------
        X : table
        encoder : TableEncoder
            That was fitted to it.
        y : array (n, d)
        types : mapping, optional
            The types that the user chose.
        """
        table = Table.read(X, "X").with_decimal_mark()
        chosen = chosen_types(types, table)
        some = np.unique(np.linspace(0, table.n_rows - 1, _EXAMINED_ROWS).astype(int))
        summaries, doubts = [], []
        for j, (column, raw) in enumerate(zip(encoder.columns, table, strict=True)):
            name = j if column.name is None else column.name
            reading = read_column(raw, chosen.get(j))
            summaries.append(_summary(name, column, reading, raw))
            examined = raw if len(some) == table.n_rows else raw.rows(some)
            doubts += doubts_of(examined, reading, column, repr(name), y[some], j in chosen)
        return cls(tuple(summaries), tuple(doubts))

    @classmethod
    def of_encoder(cls, encoder: TableEncoder) -> TableSummary:
        """The summary of a model that was loaded: without numbers of missing values and doubts."""
        pairs = enumerate(encoder.columns)
        return cls(tuple(_summary(j if c.name is None else c.name, c) for j, c in pairs))

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[ColumnSummary]:
        return iter(self.columns)

    def __getitem__(self, name: str | int) -> ColumnSummary:
        """The summary of one column, by its name or position."""
        named = {summary.name: summary for summary in self.columns}
        return named[name] if name in named else self.columns[int(name)]

    def __str__(self) -> str:
        rows = [HEADINGS, *(summary.cells() for summary in self.columns)]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([*lines, *(f"doubt: {doubt}" for doubt in self.doubts)])

    __repr__ = __str__


def _summary(
    name: str | int, column: Column, reading: Reading | None = None, raw: RawColumn | None = None
) -> ColumnSummary:
    levels = missing = None
    if raw is not None:
        if column.has_categories:
            levels = len(set(raw.labels()) - {None})
        numbers = bool(column.number_columns)
        missing = int((np.isnan(column.numbers(raw)[:, 0]) if numbers else raw.missing).sum())
    kind = "number" if column.kind == "numeric" else column.kind
    return ColumnSummary(name, kind, levels, missing, _becomes(column, reading))


def _becomes(column: Column, reading: Reading | None) -> str:
    """What a column becomes, in a few words."""
    if column.kind in ("empty", "unused"):
        return "nothing"
    if column.kind == "boolean":
        words = "0 or 1"
    elif column.features:
        # The sine and the cosine of a cycle are one word.
        names = (str(feature.name) for feature in column.features)
        words = ", ".join(
            dict.fromkeys(name.removesuffix(" sine").removesuffix(" cosine") for name in names)
        )
    elif column.kind == "numeric":
        facts = [{".": "from text", ",": "from text with decimal comma"}.get(column.notation, "")]
        facts += [reading.unit] if reading is not None else []
        written = ", ".join(fact for fact in facts if fact)
        words = f"number ({written})" if written else "number"
    else:
        n_levels = len(column.categories)
        words = f"{n_levels} level{'s' * (n_levels != 1)}"
        words += f", {N_HASHED} numbers from words" if column.kind == "text" else ""
    if column.notation and column.kind == "date":
        words += f" (from text, {column.notation})"
    return words + (", missing marked" if column.has_missing else "")
