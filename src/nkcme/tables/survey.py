"""One pass over a table: a sample of its rows, exact counts, and rows that the sample may miss.

The sample is that of the smallest hashes of row numbers, so it is the same for any number of
processes. What is learned from it (kinds of columns, categories, scales, the support of the target)
could miss what only a few rows show: a missing value, a rare category, a negative target. One row
for each of these, a witness, is kept beside the sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from nkcme.errors import TableError
from nkcme.tables.column_encoding import MAX_CATEGORIES
from nkcme.tables.parquet_folder import ParquetFolder, RowGroup
from nkcme.tables.row_hash import hash_limit, row_hash

if TYPE_CHECKING:
    import pyarrow

#: The levels of a column of text that get a witness; a column of more is not one of categories.
_MOST_LEVELS = MAX_CATEGORIES + 1


@dataclass
class Survey:
    """What was found in some row groups of a table.

    Attributes
    ----------
    rows : array (n,)
        The numbers of the sampled rows.
    sample : pyarrow.Table
    witnesses : dict
        One row each, by what it shows: its rank, less is better, its number, and a table of it.
    missing : dict of str to int
        The rows without a value, by column.
    """

    rows: np.ndarray
    sample: pyarrow.Table
    witnesses: dict[tuple[str, ...], tuple[float, int, pyarrow.Table]]
    missing: dict[str, int]

    def in_order(self, seed: int) -> tuple[np.ndarray, pyarrow.Table]:
        """The numbers of the sampled rows and the rows, in an order of their own."""
        order = np.argsort(row_hash(self.rows, seed), kind="stable")
        return self.rows[order], self.sample.take(order)

    def witness_table(self) -> pyarrow.Table:
        """The witnesses, in the order of the table; none for levels of which there are many."""
        from pyarrow import concat_tables

        levels = Counter(key[:2] for key in self.witnesses)
        rows = {
            number: table
            for key, (_, number, table) in self.witnesses.items()
            if levels[key[:2]] <= MAX_CATEGORIES
        }
        tables = [table for _, table in sorted(rows.items(), key=lambda pair: pair[0])]
        return concat_tables(tables, promote_options="permissive")

    @classmethod
    def joined(cls, parts: Sequence[Survey]) -> Survey:
        """The survey of several groups of rows, which different processes may have made."""
        from pyarrow import concat_tables

        rows = np.concatenate([part.rows for part in parts])
        order = np.argsort(rows)
        sample = concat_tables([part.sample for part in parts], promote_options="permissive")
        witnesses: dict[tuple[str, ...], tuple[float, int, pyarrow.Table]] = {}
        missing: dict[str, int] = {}
        for part in parts:
            for name, count in part.missing.items():
                missing[name] = missing.get(name, 0) + count
            for key, found in part.witnesses.items():
                if key not in witnesses or found[:2] < witnesses[key][:2]:
                    witnesses[key] = found
        return cls(rows[order], sample.take(order), witnesses, missing)


def survey(
    folder: ParquetFolder,
    target: str,
    share: float,
    seed: int,
    groups: Iterable[RowGroup] | None = None,
) -> Survey:
    """Survey row groups of a table, all of them by default.

    Parameters
    ----------
    folder : ParquetFolder
    target : str
        A column of numbers, without missing values.
    share : float
        Of the rows that are sampled.
    seed : int
    groups : iterable of RowGroup, optional
    """
    looking = _Looking(folder, target, hash_limit(share), seed)
    for group in folder.groups if groups is None else groups:
        first = group.first_row
        for table in folder.batches(group):
            looking.add(table, first, group)
            first += table.num_rows
    return looking.result()


def need_target(folder: ParquetFolder, target: str) -> None:
    """Refuse a target that is no column of numbers, or the only column."""
    if target not in folder.names:
        names = ", ".join(map(repr, folder.names[:10]))
        raise TableError(
            f"the table has no column {target!r} to be the target; is it one of {names}?"
        )
    kind = folder.kinds[folder.names.index(target)]
    if kind not in ("number", "boolean"):
        raise TableError(
            f"the target {target!r} holds {kind}, expected numbers; convert it or choose another"
        )
    if len(folder.names) == 1:
        raise TableError(
            f"the target {target!r} is the only column; a model needs at least one more to predict "
            "it from"
        )


def target_values(table: pyarrow.Table, target: str, first_row: int, group: RowGroup) -> np.ndarray:
    """The target (n,) of some rows of a file, which must be complete and finite."""
    y = table.column(target).to_numpy().astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(y))
    if len(bad):
        what = "missing" if np.isnan(y[bad[0]]) else "infinite"
        row = first_row - group.first_row + int(bad[0])
        raise TableError(
            f"{group.file}: the target {target!r} is {what} in row {row} of row group "
            f"{group.number} (counting from 0); drop such rows from the files"
        )
    return y


@dataclass
class _Looking:
    """A survey while it is made."""

    folder: ParquetFolder
    target: str
    limit: np.uint64
    seed: int
    rows: list[np.ndarray] = field(default_factory=list)
    sample: list[Any] = field(default_factory=list)
    witnesses: dict[tuple[str, ...], tuple[float, int, Any]] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    levels: dict[str, set[Any]] = field(default_factory=dict)

    def add(self, table: pyarrow.Table, first_row: int, group: RowGroup) -> None:
        """Look at some rows."""
        rows = np.arange(first_row, first_row + table.num_rows)
        chosen = np.flatnonzero(row_hash(rows, self.seed) < self.limit)
        self.rows.append(rows[chosen])
        # A copy: a slice would keep all rows in memory.
        self.sample.append(table.take(chosen))
        y = target_values(table, self.target, first_row, group)
        self._witness(("least",), float(y.min()), int(np.argmin(y)), table, first_row)
        self._witness(("largest",), -float(y.max()), int(np.argmax(y)), table, first_row)
        broken = np.flatnonzero(y != np.rint(y))
        if len(broken):
            self._witness(("broken",), 0.0, int(broken[0]), table, first_row)
        for name, kind in zip(self.folder.names, self.folder.kinds, strict=True):
            if name != self.target:
                self._look(name, kind, table, first_row)

    def _look(self, name: str, kind: str, table: pyarrow.Table, first_row: int) -> None:
        """Missing values of a column, and the levels of text."""
        import pyarrow.compute as compute

        column = table.column(name)
        if column.null_count or kind == "number":
            absent = compute.is_null(column, nan_is_null=True).to_numpy()
            count = int(absent.sum())
            if count:
                self.missing[name] = self.missing.get(name, 0) + count
                self._witness(("missing", name), 0.0, int(absent.argmax()), table, first_row)
        if kind != "text":
            return
        seen = self.levels.setdefault(name, set())
        if len(seen) >= _MOST_LEVELS:
            return
        for level in compute.unique(column).to_pylist():
            if level is not None and level not in seen and len(seen) < _MOST_LEVELS:
                seen.add(level)
                place = compute.index(column, level).as_py()
                self._witness(("level", name, level), 0.0, int(place), table, first_row)

    def _witness(
        self, key: tuple[str, ...], rank: float, place: int, table: pyarrow.Table, first_row: int
    ) -> None:
        known = self.witnesses.get(key)
        if known is None or (rank, first_row + place) < known[:2]:
            self.witnesses[key] = (rank, first_row + place, table.take([place]))

    def result(self) -> Survey:
        from pyarrow import concat_tables

        sample = concat_tables(self.sample, promote_options="permissive")
        return Survey(np.concatenate(self.rows), sample, self.witnesses, self.missing)
