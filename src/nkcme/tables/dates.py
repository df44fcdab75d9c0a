"""Dates and times of day, as values and as text, in seconds.

A date or date-time is the number of seconds since 1970 in UTC; one without a zone counts as UTC. A
time of day is the number of seconds since midnight.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Collection
from typing import Any

import numpy as np

#: A calendar date, alone or with a time behind it. Compact forms such as 20240131 are left out:
#: they may as well be codes.
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}.*)?")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?")
_NUMBERS = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})(?:[T ]+(\d{1,2}:\d{2}(?::\d{2})?))?")
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})")

ISO, COMPACT = "iso", "yyyymmdd"

#: Ways to write dates other than ISO 8601, which are read only on request: which of the three
#: numbers is the year, the month and the day.
_ORDERS = {"year-month-day": (0, 1, 2), "day-month-year": (2, 1, 0), "month-day-year": (2, 0, 1)}

DATE_NOTATIONS = (ISO, *_ORDERS, COMPACT)


def parse_date(text: str, notation: str = ISO) -> float | None:
    """The seconds of a date in text; ISO 8601 is read with every notation. None if it is none."""
    text = text.strip()
    if _ISO_DATE.fullmatch(text):
        try:
            return _seconds(datetime.datetime.fromisoformat(text))
        except ValueError:
            return None
    if notation == COMPACT:
        found = _COMPACT.fullmatch(text.removesuffix(".0"))
        return None if found is None else _of_parts(*map(int, found.groups()))
    found = _NUMBERS.fullmatch(text)
    if found is None or notation not in _ORDERS:
        return None
    parts = [found[1], found[3], found[4]]
    year, month, day = (parts[place] for place in _ORDERS[notation])
    clock = 0.0 if found[5] is None else parse_clock(found[5])
    if len(year) not in (2, 4) or max(len(month), len(day)) > 2 or clock is None:
        return None
    century = 0 if len(year) == 4 else (2000 if int(year) < 70 else 1900)
    start = _of_parts(century + int(year), int(month), int(day))
    return None if start is None else start + clock


def parse_clock(text: str) -> float | None:
    """The seconds since midnight of a time of day such as 9:05 or 23:59:59; None if it is none."""
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        return None
    hour, minute, second = int(found[1]), int(found[2]), float(found[3] or 0.0)
    return 3600.0 * hour + 60.0 * minute + second if hour < 24 and minute < 60 > second else None


def find_date_notations(texts: Collection[str]) -> list[str]:
    """The ways in which all of the texts are dates, ISO first; none where some text is no date."""
    return [
        notation
        for notation in DATE_NOTATIONS
        if all(parse_date(text, notation) is not None for text in texts)
    ]


def date_seconds(value: Any) -> float:
    """The seconds of a date or date-time of Python, NumPy or pandas; NaN where it is missing."""
    if isinstance(value, np.datetime64):
        return float(datetime_seconds(np.array([value]))[0])
    if isinstance(value, datetime.datetime):
        return _seconds(value)
    return _seconds(datetime.datetime(value.year, value.month, value.day))


def clock_seconds(value: datetime.time) -> float:
    """The seconds since midnight of a time of day."""
    return 3600.0 * value.hour + 60.0 * value.minute + value.second + 1e-6 * value.microsecond


def datetime_seconds(array: np.ndarray) -> np.ndarray:
    """The seconds of an array of dates (datetime64), NaN where missing."""
    seconds = array.astype("datetime64[s]")
    whole = seconds.astype(np.int64).astype(np.float64)
    with np.errstate(invalid="ignore"):
        rest = (array - seconds).astype("timedelta64[ns]").astype(np.int64) * 1e-9
    return np.where(np.isnat(array), math.nan, whole + rest)


def _seconds(moment: datetime.datetime) -> float:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return (moment - epoch).total_seconds()


def _of_parts(year: int, month: int, day: int) -> float | None:
    try:
        return _seconds(datetime.datetime(year, month, day))
    except ValueError:
        return None
