"""Numbers written as text: "1,200", "1.200,5", "EUR 7,958", "12 %".

A column has one decimal mark, a point or a comma, and at most one currency or unit. "1,200" alone
could be either; then the mark of the table decides, and without one the comma groups thousands.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

#: Before or behind a number, in lower case.
CURRENCIES = frozenset(
    {"€", "$", "£", "¥", "₹", "us$", "eur", "euro", "usd", "gbp", "chf", "sek", "nok", "dkk"}
    | {"pln", "czk", "jpy", "cny", "inr", "cad", "aud"}
)

#: Behind a number, in lower case.
UNITS = frozenset(
    {"%", "‰", "mm", "cm", "m", "km", "m2", "m²", "qm", "sqm", "ft", "sqft", "kg", "lb", "ml", "h"}
    | {"min", "kw", "kwh", "mb", "gb", "°c", "°f"}
)

_GROUPS = "' \u00a0\u2009\u202f’"
_SIGNS = {"-": -1.0, "−": -1.0, "+": 1.0}

#: A code rather than a number: 007, 01067.
_LEADING_ZERO = re.compile(r"[-+]?0\d+")


def _pattern(decimal: str, group: str) -> re.Pattern[str]:
    mark = re.escape(decimal)
    grouped = rf"\d{{1,3}}(?P<mark>[{re.escape(group)}{_GROUPS}])\d{{3}}(?:(?P=mark)\d{{3}})*"
    number = rf"(?:{grouped}|\d+)(?:{mark}\d*)?|{mark}\d+"
    return re.compile(
        r"(?P<sign>[-+−]?)\s*(?P<before>[^\W\d]+\$?|[€$£¥₹])?\s*(?P<inner>[-+−]?)\s*"
        rf"(?P<number>(?:{number})(?:[eE][-+]?\d+)?)\s*(?P<behind>[^\d\s][^\s]*)?"
    )


_PATTERNS = {".": _pattern(".", ","), ",": _pattern(",", ".")}


class TextNumber(NamedTuple):
    """The value of a text, and the currency or unit beside it in lower case."""

    value: float
    unit: str


def parse_number(text: str, decimal: str) -> TextNumber | None:
    """The number that a text holds with this decimal mark, "." or ","; None if it holds none."""
    found = _PATTERNS[decimal].fullmatch(text.strip())
    if found is None or (found["sign"] and found["inner"]):
        return None
    before, behind = (found["before"] or "").lower(), (found["behind"] or "").lower()
    if (before and behind) or before not in {"", *CURRENCIES}:
        return None
    if behind and behind not in CURRENCIES | UNITS:
        return None
    digits = found["number"]
    if found["mark"]:
        digits = digits.replace(found["mark"], "")
    value = float(digits.replace(decimal, "."))
    return TextNumber(_SIGNS.get(found["sign"] or found["inner"], 1.0) * value, before or behind)


class NumberNotation(NamedTuple):
    """How the numbers of a column are written; ``decimal`` is empty where they show no mark.

    ``could_differ`` is true where the other decimal mark fits as well and gives other numbers, and
    that of the file is not known.
    """

    decimal: str
    unit: str
    could_differ: bool


def find_notation(texts: Collection[str], decimal: str | None) -> NumberNotation | None:
    """How the numbers in texts are written; None where some text is no number, or is a code.

    Parameters
    ----------
    texts : collection of str
        At least one.
    decimal : {".", ",", None}
        The decimal mark of the file, where it is known: it decides what could be either.
    """
    if any(_LEADING_ZERO.fullmatch(text.strip()) for text in texts):
        return None
    fits = {mark: parsed for mark in _PATTERNS if (parsed := _parsed(texts, mark)) is not None}
    if not fits:
        return None
    mark = decimal if decimal in fits else next(iter(fits))
    units = {number.unit for number in fits[mark]}
    if not any("." in text or "," in text for text in texts):
        return NumberNotation("", max(units), False)  # new ones may have either
    differ = len(fits) == 2 and fits["."] != fits[","] and decimal is None
    return NumberNotation(mark, max(units), differ)


def _parsed(texts: Collection[str], decimal: str) -> list[TextNumber] | None:
    numbers = []
    for text in texts:
        number = parse_number(text, decimal)
        if number is None:
            return None
        numbers.append(number)
    units = {number.unit for number in numbers}
    # Amounts of several currencies are no column of numbers; nor are 12 % beside 0.12.
    if len(units - {""}) > 1 or (len(units) > 1 and units & {"%", "‰"}):
        return None
    return numbers


def is_code(text: str) -> bool:
    """Whether a text is digits with a zero in front, which numbers would lose."""
    return _LEADING_ZERO.fullmatch(text) is not None
