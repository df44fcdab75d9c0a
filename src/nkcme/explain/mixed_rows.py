"""Rows whose columns come from different rows of a table, of any kind of column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals.stable.v1 as nw
import numpy as np

from nkcme.evaluation import native

if TYPE_CHECKING:
    from nkcme.evaluation import Table


class MixedRows:
    """Makes tables in which each value is that of some row of the original table.

    Parameters
    ----------
    table : Table
        As `nkcme.evaluation.as_table` gives it.
    """

    def __init__(self, table: Table):
        self._table = table
        self.names: tuple[str, ...] = tuple(
            table.columns
            if isinstance(table, nw.DataFrame)
            else map("x{}".format, range(table.shape[1]))
        )

    def take(self, rows: np.ndarray) -> Any:
        """The table (m, p) with, in each column, the values of the original rows (m, p)."""
        if not isinstance(self._table, nw.DataFrame):
            return np.take_along_axis(self._table, rows, axis=0)
        columns = [self._table[:, j][rows[:, j]] for j in range(len(self.names))]
        taken = dict(zip(self.names, columns, strict=True))
        return native(nw.from_dict(taken, backend=self._table.implementation))

    def with_column_of(self, column: int, rows: np.ndarray) -> Any:
        """The table in which one column has the values of other rows (n,)."""
        mixed = np.repeat(np.arange(len(self._table))[:, None], len(self.names), axis=1)
        mixed[:, column] = rows
        return self.take(mixed)
