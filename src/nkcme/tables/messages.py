"""Parts of messages about columns and their values."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any

from nkcme.errors import TableError


def one_line(value: object) -> str:
    """The text of a value without line breaks."""
    return " ".join(str(value).split())


def shown(value: object) -> str:
    """A value in short, on one line."""
    return one_line(reprlib.repr(value))


def listed(names: list[Any]) -> str:
    """The first few columns by name, and how many more there are."""
    first = ", ".join(map(repr, names[:5]))
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"column{'s' if len(names) > 1 else ''} {first}{more}"


def listed_values(values: list[Any]) -> str:
    """The first few values, and how many more there are."""
    more = f" and {len(values) - 3} more" if len(values) > 3 else ""
    return ", ".join(map(shown, values[:3])) + more


def note_on_columns(
    found: Iterable[str], names: Iterable[str], unused: Iterable[str] = ()
) -> str | None:
    """A note on the columns of a table that the model was not fitted on; None if there are none.

    A table that lacks some of the model's columns is refused, but for ``unused`` ones.
    """
    found, names = dict.fromkeys(found), dict.fromkeys(names)
    absent = [name for name in names if name not in found and name not in set(unused)]
    if absent:
        raise TableError(f"the table lacks {listed(absent)}, which the model was fitted on")
    extra = [name for name in found if name not in names]
    return f"ignored {listed(extra)}, which the model was not fitted on" if extra else None
