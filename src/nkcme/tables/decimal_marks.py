"""The decimal mark of a table, as the texts of all its columns show it."""

from __future__ import annotations

import re
from collections.abc import Iterable

_POINT = re.compile(r"\d+\.(?:\d{1,2}|\d{4,})|0\.\d+|\d{1,3}(?:,\d{3})+\.\d+")
_COMMA = re.compile(r"\d+,(?:\d{1,2}|\d{4,})|0,\d+|\d{1,3}(?:\.\d{3})+,\d+")
_EITHER = re.compile(r"\d{1,3},\d{3}")

#: A number between a sign, a currency and a unit.
_NUMBER = re.compile(r"[-+−]?\s*[^\W\d]*[€$£¥]?\s*([\d.,]+)\s*[^\W\d]*[²%‰€$£¥]?")


class DecimalEvidence:
    """What texts show of the decimal mark."""

    def __init__(self) -> None:
        self._marks: set[str] = set()

    def add(self, texts: Iterable[str]) -> None:
        """Look at more texts."""
        for text in texts:
            if "." not in text and "," not in text:
                continue
            found = _NUMBER.fullmatch(text.strip())
            if found is None:
                continue
            if _POINT.fullmatch(found[1]):
                self._marks.add(".")
            elif _COMMA.fullmatch(found[1]):
                self._marks.add(",")
            elif _EITHER.fullmatch(found[1]):
                self._marks.add("?")

    def decimal(self, *, commas_are_decimal: bool = False) -> str | None:
        """The mark, if all texts that show one show the same; None if they show none, or both.

        ``commas_are_decimal`` decides where all that there is are numbers such as 1,200: in a file
        that is separated by semicolons the comma is the decimal mark, the usual reason for them.
        """
        shown = self._marks - {"?"}
        if len(shown) == 1:
            return shown.pop()
        return "," if not shown and self._marks and commas_are_decimal else None
