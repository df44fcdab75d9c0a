"""Rows that belong together: groups, and moments of time; and splits that respect them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nkcme.errors import TableError
from nkcme.tables.column_reading import NOUNS, read_column, read_values
from nkcme.tables.columns import RawColumn, read_columns


class RowGroups(NamedTuple):
    """Which rows depend on each other: those of a group, or those near to each other in time."""

    codes: np.ndarray  # (n,) numbers of groups, or of moments in the order of time
    by_time: bool = False

    def rows(self, chosen: np.ndarray) -> RowGroups:
        """Those of some of the rows."""
        return self._replace(codes=self.codes[chosen])


def row_groups(groups: Any, times: Any, n_rows: int) -> RowGroups | None:
    """The group of each row, or its moment.

    Parameters
    ----------
    groups : array (n,) or None
        Any values; missing ones are a group.
    times : array (n,) or None
        Dates, times or numbers. At most one of both is given.
    n_rows : int

    Returns
    -------
    RowGroups or None
        None if neither is given.
    """
    if groups is None and times is None:
        return None
    if groups is not None and times is not None:
        raise TableError("give groups or times, not both: folds respect one of them")
    name = "times" if groups is None else "groups"
    raw = read_columns(times if groups is None else groups, name)
    if not isinstance(raw, RawColumn) or len(raw.array) != n_rows:
        raise TableError(f"{name} must be one value for each of {n_rows} rows")
    values: Any = moments_of(raw) if groups is None else [label or "" for label in raw.labels()]
    different, codes = np.unique(values, return_inverse=True)
    if len(different) < 2:
        raise TableError(f"{name} must have at least 2 different values to be held out; got one")
    return RowGroups(codes, by_time=times is not None)


def moments_of(raw: RawColumn) -> np.ndarray:
    """A column of dates, times or numbers as numbers, all of them present."""
    reading = read_column(raw)
    if reading.kind not in NOUNS:
        raise TableError(f"{raw.where} must hold dates, times or numbers to order rows by time")
    values = read_values(raw, reading.kind, reading.notation)
    missing = np.flatnonzero(np.isnan(values))
    if len(missing):
        raise TableError(
            f"{raw.where} has {len(missing)} missing values, the first in row {missing[0]} "
            "(counting from 0): each row needs its time; drop these rows"
        )
    return values


def held_out_groups(groups: RowGroups, n: int, rng: np.random.Generator) -> np.ndarray:
    """Which rows (a mask) are held out: about n of them, in whole groups.

    Those of random groups, or by time those of the last moments. At least one group is held
    out, and at least one is not.
    """
    present, place, count = np.unique(groups.codes, return_inverse=True, return_counts=True)
    order = np.arange(len(present))[::-1] if groups.by_time else rng.permutation(len(present))
    # The number of groups whose rows come nearest to n.
    upto = np.cumsum(count[order])
    n_groups = int(np.argmin(np.abs(upto[:-1] - n))) + 1
    return np.isin(place, order[:n_groups])
