"""The types of columns that a user chose: checks, and the options of the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nkcme.errors import NkcmeError
from nkcme.tables.column_reading import TYPES
from nkcme.tables.messages import shown


def need_types(name: str, types: Any) -> None:
    """Refuse a parameter that is neither None nor types of columns by name or position."""
    if types is None:
        return
    if not isinstance(types, Mapping):
        raise NkcmeError(
            f"{name} must be a dict of types by column, as in {{'sold': 'date'}}; got "
            f"{shown(types)}"
        )
    for column, wanted in types.items():
        if isinstance(column, bool) or not isinstance(column, str | int):
            raise NkcmeError(
                f"{name} must have names or positions of columns as keys; got {shown(column)}"
            )
        if wanted not in TYPES:
            raise NkcmeError(
                f"the type of column {column!r} must be one of {', '.join(TYPES)}; got "
                f"{shown(wanted)}"
            )


def types_of_options(types: Sequence[str], drop: Sequence[str]) -> dict[str, str] | None:
    """The types that options name, such as ``sold=date,zip=category``; None if there are none.

    Parameters
    ----------
    types : sequence of str
        The values of ``--types``.
    drop : sequence of str
        The values of ``--drop``, names with commas between them.
    """
    chosen = {}
    for pair in ",".join(types).split(",") if types else []:
        column, equals, wanted = pair.rpartition("=")
        if not equals or not column:
            raise NkcmeError(
                f"--types must be types by column, as in sold=date,zip=category; got {pair!r}"
            )
        chosen[column.strip()] = wanted.strip()
    for column in ",".join(drop).split(",") if drop else []:
        chosen[column.strip()] = "drop"
    need_types("--types", chosen or None)
    return chosen or None
