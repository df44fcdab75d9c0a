"""The rows that `nkcme fit` learns from, and those that it holds out for scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nkcme.errors import NkcmeError, TableError
from nkcme.tables.columns import Table
from nkcme.tables.files import read_table
from nkcme.tables.parquet_folder import ParquetFolder, is_folder
from nkcme.tables.row_groups import held_out_groups, moments_of, row_groups
from nkcme.tables.sample_weights import checked_weight
from nkcme.tables.table_options import TableOptions
from nkcme.tables.target_column import need_column, read_numbers, split_target

_MIN_ROWS = 2  # of any fit


class TableColumns(NamedTuple):
    """The columns of a training table that have a meaning of their own."""

    target: str
    weights: str | None = None
    group: str | None = None
    time: str | None = None
    drop_missing_target: bool = False


class TrainingRows(NamedTuple):
    """Features, target, and for each row its weight and its group or time where it has one."""

    X: Any  # a frame
    y: np.ndarray
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None
    times: np.ndarray | None = None

    def rows(self, chosen: np.ndarray) -> TrainingRows:
        """Some of the rows."""
        others = (None if array is None else array[chosen] for array in self[1:])
        return TrainingRows(self.X.iloc[chosen], *others)  # type: ignore[arg-type]

    def split(self, test_size: float, seed: int) -> tuple[TrainingRows, TrainingRows]:
        """The rows to fit on and those held out, both in the order of the table."""
        n_rows, rng = len(self.y), np.random.default_rng(seed)
        n_test = round(test_size * n_rows)
        groups = row_groups(self.groups, self.times, n_rows)
        if n_test and groups is not None:
            held = held_out_groups(groups, n_test, rng)
        else:
            held = np.isin(np.arange(n_rows), rng.permutation(n_rows)[:n_test])
        if n_test and n_rows - held.sum() < _MIN_ROWS:
            raise NkcmeError(
                f"a test size of {test_size:g} holds out {held.sum()} of {n_rows} rows, and a fit "
                f"needs at least {_MIN_ROWS}; choose a smaller --test-size, or 0 for none"
            )
        return self.rows(np.flatnonzero(~held)), self.rows(np.flatnonzero(held))


def read_training_rows(
    path: str | Path,
    columns: TableColumns,
    options: TableOptions,
    note: Callable[[str], object],
    check: Callable[[TrainingRows], object] = lambda _: None,
) -> TrainingRows:
    """The rows of a training table.

    The columns of weights and groups are no features; that of time is one. ``check`` is called with
    the rows of a small text file before pandas reads it.
    """
    if columns.group is not None and columns.time is not None:
        raise NkcmeError("--group and --time hold out different rows; give one of them")
    if is_folder(path):
        return _training_rows(ParquetFolder.open(path).read().to_pandas(), columns, note)
    frame = read_table(
        path,
        options=options,
        note=note,
        check=lambda plain: check(_training_rows(plain, columns, lambda _: None)),
    )
    return _training_rows(frame, columns, note)


def _training_rows(
    frame: Any, columns: TableColumns, note: Callable[[str], object]
) -> TrainingRows:
    for name, what in ((columns.weights, "the weights"), (columns.group, "the groups")):
        if name is not None:
            need_column(frame, name, what)
        if name == columns.target:
            raise TableError(f"{name!r} cannot be the target and {what}; choose another column")
    if columns.time is not None:
        need_column(frame, columns.time, "the time")
    X, y = split_target(frame, columns.target, drop_missing=columns.drop_missing_target)
    if len(y) < len(frame):
        note(f"left out {len(frame) - len(y)} of {len(frame)} rows without {columns.target!r}")
    weight = groups = times = None
    if columns.weights is not None:
        weight = read_numbers(X, columns.weights, "the column of weights", "correct it")
        checked_weight(weight, len(X))
    if columns.group is not None:
        raw = Table.read(X[[columns.group]], "the table").column(0)
        groups = np.array([label or "" for label in raw.labels()], object)
    if columns.time is not None:
        times = moments_of(Table.read(X[[columns.time]], "the table").column(0))
    X = X.drop(columns=[name for name in (columns.weights, columns.group) if name is not None])
    if not len(X.columns):
        raise TableError("no column is left to predict the target from; add one to the table")
    return TrainingRows(X, y, weight, groups, times)
