"""How a column is read: the kind of its values, and the numbers that they stand for.

Values of a type have the kind of that type. In text, each of these needs all values but the marks
of missing ones: yes and no, numbers, ISO dates, times of day. Other text is categories.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nkcme.errors import TableError
from nkcme.tables.columns import Kind, RawColumn
from nkcme.tables.dates import (
    COMPACT,
    ISO,
    clock_seconds,
    date_seconds,
    datetime_seconds,
    find_date_notations,
    parse_clock,
    parse_date,
)
from nkcme.tables.messages import shown
from nkcme.tables.text_numbers import find_notation, parse_number
from nkcme.tables.values import as_float, family, is_mark

#: The types that users can choose, and the kind of column that each becomes.
TYPES: Mapping[str, Kind] = {
    "number": "numeric",
    "boolean": "boolean",
    "category": "category",
    "text": "text",
    "date": "date",
    "time": "time",
    "drop": "unused",
}

#: Words for true and false, in lower case. A column has the words of one pair.
BOOLEAN_WORDS = (
    ("yes", "no"),
    ("y", "n"),
    ("true", "false"),
    ("t", "f"),
    ("on", "off"),
    ("ja", "nein"),
    ("oui", "non"),
    ("si", "no"),
    ("sí", "no"),
)
_TRUTH = {word: 1.0 - place for pair in BOOLEAN_WORDS for place, word in enumerate(pair)}

NOUNS = {"numeric": "numbers", "boolean": "booleans", "date": "dates", "time": "times of day"}


@dataclass(frozen=True)
class Reading:
    """The kind of a column, and how its text is written.

    ``notation`` is the decimal mark of numbers in text or the notation of dates in text, ``unit``
    the currency or unit beside numbers. ``could_differ`` is true where another decimal mark would
    fit as well.
    """

    kind: Kind
    notation: str = ""
    unit: str = ""
    could_differ: bool = False


class UnreadableValueError(ValueError):
    """A value that is not of the kind of its column, and its row."""

    def __init__(self, row: int, value: Any):
        super().__init__(f"{shown(value)} in row {row} (counting from 0)")


def read_column(raw: RawColumn, wanted: str | None = None) -> Reading:
    """How a column is read; ``wanted`` is one of `TYPES` that the user chose."""
    if wanted == "drop":
        return Reading("unused")
    if raw.kind == "empty":
        return Reading("empty")
    if wanted is not None:
        return _reading_as(raw, wanted)
    if raw.declared or raw.kind != "category":
        return Reading("category" if raw.declared else raw.kind)
    texts, families = texts_and_families(raw)
    if not texts and len(families) == 1:  # beside marks of missing values
        return Reading(next(iter(families)))
    if not texts or not families <= {"boolean", "numeric", "date", "time"}:
        return Reading("category")
    return _reading_of_text(raw, texts, families) or Reading("category")


def texts_and_families(raw: RawColumn) -> tuple[set[str], set[Any]]:
    """The different texts of a column, less the marks of missing values, and the families of its
    other values."""
    values = raw.present.tolist() if raw.array.dtype.kind == "O" else []
    texts = {value.strip() for value in values if isinstance(value, str)}
    families = {family(type(value)) for value in values if not isinstance(value, str)}
    return {text for text in texts if not is_mark(text)}, families


def _reading_of_text(raw: RawColumn, texts: set[str], families: set[Any]) -> Reading | None:
    words = {text.lower() for text in texts}
    if families <= {"boolean"} and any(words <= set(pair) for pair in BOOLEAN_WORDS):
        return Reading("boolean")
    if families <= {"numeric"}:
        found = find_notation(texts, raw.decimal)
        if found is not None:
            return Reading("numeric", found.decimal, found.unit, found.could_differ)
    if families <= {"date"} and all(parse_date(text) is not None for text in texts):
        return Reading("date", ISO)
    if families <= {"time"} and all(parse_clock(text) is not None for text in texts):
        return Reading("time")
    return None


def _reading_as(raw: RawColumn, wanted: str) -> Reading:
    """The reading that a user chose; whether the values allow it shows when they are read."""
    kind = TYPES[wanted]
    texts, _ = texts_and_families(raw)
    if kind == "numeric" and texts:
        found = find_notation(texts, raw.decimal)
        fallback = Reading("numeric", raw.decimal or ".")
        return fallback if found is None else Reading("numeric", found.decimal, found.unit)
    if kind == "date" and texts:
        return Reading("date", _date_notation(raw, texts))
    if kind == "date" and raw.kind == "numeric":
        return Reading("date", COMPACT)
    return Reading(kind)


def _date_notation(raw: RawColumn, texts: set[str]) -> str:
    fitting = find_date_notations(texts)
    if len(fitting) < 2 or fitting[0] == ISO:
        return fitting[0] if fitting else ISO
    if any("/" in text for text in texts):
        raise TableError(
            f"{raw.where} has dates such as {shown(min(texts))}, which could be "
            f"{' or '.join(fitting)}; write them as 2024-01-31"
        )
    return fitting[0]  # with points and hyphens the day comes before the month


def read_values(raw: RawColumn, kind: Kind, notation: str) -> np.ndarray:
    """The numbers (n,) that the values of a column stand for, NaN where missing.

    Dates and times are seconds.

    Raises
    ------
    UnreadableValueError
        If a value is not of this kind.
    TableError
        If a number is infinite.
    """
    if kind == "date" and raw.array.dtype.kind == "M":
        return datetime_seconds(raw.array)
    if kind in ("numeric", "boolean") and raw.kind in ("numeric", "boolean", "empty"):
        return raw.numbers()
    values = np.full(len(raw.array), math.nan)
    convert = partial(_CONVERTERS[kind], notation)
    known: dict[str, float] = {}
    for row in np.flatnonzero(~raw.missing):
        value = raw.array[row]
        if isinstance(value, str) and value in known:
            values[row] = known[value]
            continue
        if isinstance(value, str) and is_mark(value):
            number: float | None = math.nan
        else:
            number = convert(value)
        if number is None:
            raise UnreadableValueError(int(row), value)
        values[row] = number
        if isinstance(value, str):
            known[value] = number
    return RawColumn(raw.where, values).numbers()  # which refuses infinite ones


def _number(decimal: str, value: Any) -> float | None:
    if isinstance(value, str):
        number = parse_number(value, decimal or ".")
        return None if number is None else number.value
    return as_float(value) if family(type(value)) in ("numeric", "boolean") else None


def _truth(_: str, value: Any) -> float | None:
    if isinstance(value, str):
        return _TRUTH.get(value.strip().lower())
    return as_float(value) if family(type(value)) in ("numeric", "boolean") else None


def _date(notation: str, value: Any) -> float | None:
    if isinstance(value, str):
        return parse_date(value, notation or ISO)
    if notation == COMPACT and family(type(value)) == "numeric":
        return parse_date(str(value), COMPACT)
    return date_seconds(value) if family(type(value)) == "date" else None


def _clock(_: str, value: Any) -> float | None:
    if isinstance(value, str):
        return parse_clock(value)
    return clock_seconds(value) if family(type(value)) == "time" else None


_CONVERTERS: dict[str, Callable[[str, Any], float | None]] = {
    "numeric": _number,
    "boolean": _truth,
    "date": _date,
    "time": _clock,
}
