"""Small tables of text files, as pandas reads them, without pandas.

Importing pandas takes longer than everything else that refuses a table. So the checks of a table
first see a `PlainFrame`: what they refuse in it, they would refuse in the frame of pandas too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: The texts that pandas reads as missing values.
_MISSING = frozenset(
    (
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
        *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    )
)

#: Texts that are numbers to pandas and to Python, and the whole ones among them.
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]{1,18}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,2})?|inf)"
)
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")

_BOOLEANS = dict.fromkeys(("True", "TRUE", "true"), True)
_BOOLEANS |= dict.fromkeys(("False", "FALSE", "false"), False)

#: What no number has: letters but those of nan, inf and infinity and of exponents, marks of dates
#: and times, signs of currencies.
_TEXT = re.compile(r"[^\W\d_aefintyAEFINTY]|[/:%$£€]|[0-9]-")


@dataclass(frozen=True, eq=False)
class PlainFrame:
    """Columns by name: arrays of numbers or truth values, or of text and None.

    It has the few methods of a pandas frame that checks use. ``decimal`` is the decimal mark of its
    file, if that is known.
    """

    columns: dict[str, np.ndarray]
    decimal: str | None = None

    @classmethod
    def read(
        cls,
        names: Sequence[str],
        rows: Sequence[Sequence[str]],
        as_text: Collection[str],
        decimal: str | None,
    ) -> PlainFrame | None:
        """The table of these fields; None if it is not plain how pandas reads some column.

        Parameters
        ----------
        names : sequence of str
        rows : sequence of sequences of str
            As long as ``names``.
        as_text : collection of str
            The columns that are not read as numbers.
        decimal : str or None
        """
        if not all(names) or not rows:  # pandas makes up names
            return None
        columns = {}
        for name, fields in zip(names, zip(*rows, strict=True), strict=True):
            array = _texts(fields) if name in as_text else _column(fields)
            if array is None:
                return None
            columns[name] = array
        return cls(columns, decimal)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, chosen: list[str] | np.ndarray) -> PlainFrame:
        """The columns of a list of names, or the rows of a mask or of positions."""
        if isinstance(chosen, list):
            return PlainFrame({name: self.columns[name] for name in chosen}, self.decimal)
        return PlainFrame({name: a[chosen] for name, a in self.columns.items()}, self.decimal)

    @property
    def iloc(self) -> PlainFrame:
        """Rows by position."""
        return self

    def drop(self, columns: str | list[Any], errors: str = "raise") -> PlainFrame:
        """The table without some columns."""
        dropped = [columns] if isinstance(columns, str) else columns
        return self[[name for name in self.columns if name not in dropped]]


def _column(fields: Sequence[str]) -> np.ndarray | None:
    """The values of a column, None if it is not plain."""
    present = [field for field in fields if field not in _MISSING]
    if all(map(_NUMBER.fullmatch, present)):
        if len(present) == len(fields) and all(map(_WHOLE.fullmatch, fields)):
            return np.array(list(map(int, fields)))
        return np.array([np.nan if field in _MISSING else float(field) for field in fields])
    if all(field in _BOOLEANS for field in present):
        complete = len(present) == len(fields)
        return np.array([_BOOLEANS[field] for field in fields]) if complete else None
    return _texts(fields) if any(map(_TEXT.search, present)) else None


def _texts(fields: Sequence[str]) -> np.ndarray:
    values = (None if field in _MISSING else field for field in fields)
    return np.fromiter(values, object, len(fields))
