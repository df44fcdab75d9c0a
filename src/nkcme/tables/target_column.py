"""The columns of a table file that are no features: the target, and others that hold numbers."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import numpy as np

from nkcme.errors import TableError
from nkcme.tables.column_reading import read_column, read_values
from nkcme.tables.columns import Table
from nkcme.tables.messages import one_line
from nkcme.tables.target import as_target, first_other_value

if TYPE_CHECKING:
    import pandas as pd


def split_target(
    frame: pd.DataFrame, target: str, *, drop_missing: bool = False
) -> tuple[pd.DataFrame, np.ndarray]:
    """The features and the float64 target of a table, the target being one of its columns.

    Parameters
    ----------
    frame : DataFrame
    target : str
    drop_missing : bool
        Whether rows without a target are left out, instead of being an error.
    """
    need_column(frame, target, "the target")
    if len(frame.columns) == 1:
        raise TableError(
            f"the target {target!r} is the only column; a model needs at least one more to predict "
            "it from"
        )
    y = read_numbers(frame, target, "the target", "correct it or choose another target")
    missing = np.isnan(y)
    if missing.any() and not drop_missing:
        raise TableError(
            f"the target {target!r} has {missing.sum()} missing values, the first in data row "
            f"{missing.argmax() + 1} (the header not counted); fill or drop these rows, or add "
            "--drop-missing-target"
        )
    if missing.all():
        raise TableError(f"the target {target!r} has no value; choose another target")
    try:
        y = as_target(y[~missing])
    except TableError as error:
        raise TableError(f"the target {target!r} cannot be used: {error}") from error
    return frame[~missing].drop(columns=target), y


def need_column(frame: pd.DataFrame, name: str, what: str) -> None:
    """Refuse a table without the column ``name``; ``what`` is what it is to be."""
    if name not in frame.columns:
        names = [str(known) for known in frame.columns]
        close = difflib.get_close_matches(name, names, n=3) or names[:10]
        raise TableError(
            f"the table has no column {name!r} to be {what}; is it one of "
            f"{', '.join(map(repr, close))}?"
        )


def read_numbers(frame: pd.DataFrame, name: str, what: str, advice: str) -> np.ndarray:
    """The numbers of a column, also those in text, NaN where missing; others are refused."""
    raw = Table.read(frame[[name]], "the table").column(0)
    reading = read_column(raw)
    if reading.kind not in ("numeric", "boolean", "empty"):
        row, value = first_other_value(raw)
        kind = "text" if isinstance(value, str) else f"{reading.kind}s"
        raise TableError(
            f"{what} {name!r} is {kind}, such as {one_line(value)[:40]!r} in data row {row + 1} "
            f"(the header not counted), expected numbers; {advice}"
        )
    try:
        return read_values(raw, reading.kind, reading.notation)
    except TableError as error:
        raise TableError(f"{what} {name!r} cannot be used: {error}") from error
