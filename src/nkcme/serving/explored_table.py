"""The rows of a table that an explorer starts from: ranges of inputs, and the nearest rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkcme.runtime.model import RuntimeModel
from nkcme.serving.controls import control, on_slider, values_as_read

#: Of longer tables, rows are chosen at random, so that an answer takes milliseconds.
MAX_ROWS = 20_000


class ExploredTable:
    """The inputs of a model as a table has them.

    Parameters
    ----------
    model : RuntimeModel
    names : list of str
        The columns, in the order of the model.
    columns : list of lists
        Their values, as JSON has them or missing.
    y : array (n_rows,) or None
        The true values, where the table holds them.
    """

    def __init__(
        self, model: RuntimeModel, names: list[str], columns: list[list[Any]], y: Any = None
    ):
        n_rows = len(columns[0])
        learned = model.encoder_.columns
        #: The columns that move predictions: keys and dropped columns do not.
        self._used = [j for j, column in enumerate(learned) if column.kind != "unused"]
        self._n_columns = len(learned)
        self.numbers = np.arange(n_rows)
        if n_rows > MAX_ROWS:
            rng = np.random.default_rng(0)
            self.numbers = np.sort(rng.choice(n_rows, MAX_ROWS, replace=False))
        self.n_rows_of_file = n_rows
        self.names = [names[j] for j in self._used]
        self._columns = [
            values_as_read(learned[j], [columns[j][i] for i in self.numbers]) for j in self._used
        ]
        self._y = None if y is None else np.asarray(y, np.float64)[self.numbers]
        self._named = model.encoder_.feature_names is not None
        used = [learned[j] for j in self._used]
        self.inputs = list(map(control, self.names, used, self._columns))
        self.encoded = model._encode([self.row(i) for i in range(len(self))])
        self._squares = np.square(self.encoded, dtype=np.float64).sum(axis=1)
        self._usual = self._usual_distance()

    def __len__(self) -> int:
        return len(self.numbers)

    def row(self, i: int) -> dict[str, Any] | list[Any]:
        """A row as the model takes it: values by name, or in order where it has no names."""
        return self.as_row([column[i] for column in self._columns])

    def as_row(self, values: list[Any]) -> dict[str, Any] | list[Any]:
        """Values in the order of the inputs, as the model takes them."""
        if self._named:
            return dict(zip(self.names, values, strict=True))
        row: list[Any] = [None] * self._n_columns
        for j, value in zip(self._used, values, strict=True):
            row[j] = value
        return row

    def described_row(self, i: int) -> dict[str, Any]:
        """A row for the page: its number in the file, its values, its true value."""
        y = None if self._y is None or not np.isfinite(self._y[i]) else float(self._y[i])
        values = [column[i] for column in self._columns]
        return {"number": int(self.numbers[i]) + 1, "values": values, "actual": y}

    def row_of_number(self, number: int) -> dict[str, Any] | None:
        """The row with a number in the file, counted from one, if it is here."""
        place = int(np.searchsorted(self.numbers, number - 1))
        if place == len(self) or self.numbers[place] != number - 1:
            return None
        return self.described_row(place)

    def nearest(self, encoded: np.ndarray, n: int) -> list[dict[str, Any]]:
        """The rows nearest to one encoded row (p,), the nearest first."""
        distances = self._distances(encoded[None])[0]
        order = np.argsort(distances, kind="stable")[:n]
        return [self.described_row(int(i)) for i in order]

    def distance(self, encoded: np.ndarray) -> float:
        """The distance of an encoded row (p,) from the nearest row, in units of the usual one."""
        return float(self._distances(encoded[None]).min() / self._usual)

    def outside(self, values: list[Any]) -> list[str]:
        """What lies beyond the values of the table, in words."""
        found = []
        for one, value in zip(self.inputs, values, strict=True):
            place = on_slider(one, value)
            if place is not None and not one["min"] <= place <= one["max"]:
                found.append(one["name"])
        return found

    def _distances(self, rows: np.ndarray) -> np.ndarray:
        rows = rows.astype(np.float64)
        squares = self._squares - 2.0 * rows @ self.encoded.T.astype(np.float64)
        return np.sqrt(np.maximum(squares + np.square(rows).sum(axis=1)[:, None], 0.0))

    def _usual_distance(self) -> float:
        """A distance to the nearest other row that one row in a hundred exceeds."""
        chosen = np.random.default_rng(0).permutation(len(self))[:300]
        apart = self._distances(self.encoded[chosen])
        apart[np.arange(len(chosen)), chosen] = np.inf
        if len(self) < 2:
            return 1.0
        return max(float(np.quantile(apart.min(axis=1), 0.99)), 1e-6)
