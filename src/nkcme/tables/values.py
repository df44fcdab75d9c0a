"""Single values of a table: whether they are missing, their family, their number and text."""

from __future__ import annotations

import datetime
import math
import numbers
from decimal import Decimal
from typing import Any, Literal

import numpy as np

Family = Literal["numeric", "boolean", "category", "date", "time"]

_MISSING_TYPES = ("NAType", "NaTType")  # of pandas; by name, as pandas is not imported here

#: What people write for a missing value, in lower case. In a column of text these are categories;
#: where all other values are numbers, dates, times or yes and no, they are missing.
MISSING_MARKS = frozenset(
    {"", "-", "--", "---", "–", "—", "?", ".", "..", "na", "n/a", "n.a.", "nan", "nil", "null"}
    | {"none", "missing", "unknown", "not available", "k.a.", "keine angabe", "unbekannt"}
)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN of any type, or a missing value of pandas."""
    if isinstance(value, (float, np.floating, Decimal)):
        return bool(value != value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return value is None or type(value).__name__ in _MISSING_TYPES


def is_mark(text: str) -> bool:
    """Whether text is one of `MISSING_MARKS`, up to case and spaces around it."""
    return text.strip().lower() in MISSING_MARKS


def family(value_type: type) -> Family | None:
    """The family of a type; None for one that tables do not hold."""
    if issubclass(value_type, str):
        return "category"
    if issubclass(value_type, (bool, np.bool_)):
        return "boolean"
    # Before numbers: NumPy's durations are integers too. They are numbers of seconds.
    if issubclass(value_type, (datetime.timedelta, np.timedelta64)):
        return "numeric"
    if issubclass(value_type, (datetime.date, np.datetime64)):
        return "date"
    if issubclass(value_type, datetime.time):
        return "time"
    if issubclass(value_type, (numbers.Real, Decimal)):
        return "numeric"
    return None


def as_float(value: Any) -> float:
    """Any number as a float, a duration in seconds; infinite where it is out of range."""
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "s"))
    try:
        return float(value)
    except OverflowError:  # an integer beyond the range of float64
        return math.inf


def label_of(value: Any) -> str:
    """The text of a category; 1.0 is "1", because missing values turn integers into floats."""
    if isinstance(value, (float, np.floating)) and value.is_integer() and abs(float(value)) < 2**53:
        return str(int(value))
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ").removesuffix(" 00:00:00")
    return str(value)
