"""Partial dependence: the prediction along one feature, the others at typical values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals.stable.v1 as nw
import numpy as np

from nkcme.errors import TableError
from nkcme.evaluation import as_table
from nkcme.short_repr import shapes_in_repr
from nkcme.tables.column_encoding import Column
from nkcme.tables.columns import Table as RawTable
from nkcme.tables.encoding import TableEncoder
from nkcme.tables.files import to_frame
from nkcme.tables.values import is_missing

if TYPE_CHECKING:
    from nkcme.evaluation import Table

#: The quantiles drawn: the median and the ends of the central 50 % and 90 % intervals.
QUANTILE_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)

#: The influence of at most this many numeric columns is computed, the first ones of the table.
MAX_COMPARED = 100


@shapes_in_repr
@dataclass(frozen=True)
class PartialDependence:
    """The predicted distribution of y at ``values`` of one feature."""

    feature: str
    values: np.ndarray  # (m,)
    quantiles: np.ndarray  # (m, 5), at QUANTILE_LEVELS
    grid: np.ndarray  # (k,) of y
    density: np.ndarray  # (m, k)

    @property
    def shade(self) -> np.ndarray:
        """The density relative to its maximum at the same value of the feature, (m, k)."""
        highest = self.density.max(axis=1, keepdims=True)
        return self.density / np.where(highest > 0, highest, 1.0)


class Features:
    """The columns of a table, and tables like it in which one feature varies.

    Columns are numeric if the encoder treats them as numeric. The typical value of a numeric column
    is its median, that of any other the most common one; missing values are ignored.
    """

    def __init__(self, X: Any, encoder: TableEncoder | None = None):
        """``encoder`` is that of the model, by default one that is fitted to X."""
        table = as_table(X)
        learned = (encoder or TableEncoder.fit(X)).in_order_of(X)
        kinds = [column.kind for column in learned]
        self._keys = list(table.columns) if isinstance(table, nw.DataFrame) else None
        self.names = [str(name) for name in self._keys or map("x{}".format, range(len(kinds)))]
        self.columns = [_values(X, table, j, column) for j, column in enumerate(learned)]
        self.kinds = kinds

    @property
    def varying(self) -> list[int]:
        """The numeric columns that are not constant."""
        return [
            j
            for j, (column, kind) in enumerate(zip(self.columns, self.kinds, strict=True))
            if kind == "numeric" and np.nanmin(column) < np.nanmax(column)
        ]

    def position(self, feature: str | int) -> int:
        """The position of a feature, by its name or number; it must be numeric and not constant."""
        known = feature in self.names or feature in range(len(self.names))
        j = self.names.index(feature) if feature in self.names else feature
        if not known or j not in self.varying:
            able = ", ".join(repr(self.names[i]) for i in self.varying[:10]) or "none"
            raise TableError(
                f"{feature!r} is no numeric feature that varies in this table; these are: {able}"
            )
        return int(j)

    def typical(self, n_rows: int) -> list[np.ndarray]:
        """The columns of ``n_rows`` rows in which every feature has its typical value."""
        return [np.full(n_rows, _typical(column), column.dtype) for column in self.columns]

    def table(self, columns: list[np.ndarray]) -> Any:
        """A table of these columns of the same kind as the original."""
        if self._keys is not None:
            return to_frame(dict(zip(self._keys, columns, strict=True)))
        numeric = all(column.dtype != object for column in columns)
        return np.stack(columns, axis=1, dtype=np.float64 if numeric else object)

    def by_influence(self, model: Any) -> list[int]:
        """The varying numeric columns, in decreasing order of their influence on the median.

        The influence of a feature is the change of the predicted median between its 5th and 95th
        percentile, the others at typical values.
        """
        compared = self.varying[:MAX_COMPARED]
        if not compared:
            return []
        columns = self.typical(2 * len(compared))
        for i, j in enumerate(compared):
            columns[j][2 * i : 2 * i + 2] = np.nanquantile(self.columns[j], [0.05, 0.95])
        medians = model.predict_dist(self.table(columns)).median().reshape(-1, 2)
        change = np.abs(medians[:, 1] - medians[:, 0])
        return [compared[i] for i in np.argsort(-change, kind="stable")]

    def partial_dependence(
        self, model: Any, j: int, *, n_values: int = 81, n_levels: int = 160, y: Any = None
    ) -> PartialDependence:
        """The prediction along column j; the grid of y also covers ``y`` if given."""
        low, high = np.nanquantile(self.columns[j], [0.01, 0.99])
        if low == high:
            low, high = np.nanmin(self.columns[j]), np.nanmax(self.columns[j])
        values = np.linspace(low, high, n_values)
        columns = self.typical(n_values)
        columns[j] = values
        dist = model.predict_dist(self.table(columns))
        reach = dist.ppf([0.01, 0.99])
        if y is not None:
            reach = np.append(reach, np.quantile(y, [0.005, 0.995]))
        margin = 0.04 * np.ptp(reach)
        grid = np.linspace(reach.min() - margin, reach.max() + margin, n_levels)
        # Between the levels rather than at them, so that point masses are shaded too.
        ends = np.append(grid, 2 * grid[-1] - grid[-2]) - 0.5 * (grid[1] - grid[0])
        density = np.diff(dist.cdf(ends, grid=True), axis=1) / (grid[1] - grid[0])
        return PartialDependence(self.names[j], values, dist.ppf(QUANTILE_LEVELS), grid, density)


def _values(X: Any, table: Table, j: int, learned: Column) -> np.ndarray:
    """Column j as numbers where it is numeric, else as objects."""
    if learned.kind == "numeric":
        return learned.numbers(RawTable.read(X, "X").column(j))[:, 0]
    values = table[:, j]
    plain = values.to_list() if isinstance(values, nw.Series) else values.tolist()
    column = np.empty(len(plain), object)
    column[:] = plain
    return column


def _typical(column: np.ndarray) -> Any:
    if column.dtype != object:
        return np.nanmedian(column)
    present = [value for value in column if not is_missing(value)]
    return Counter(present).most_common(1)[0][0] if present else None
