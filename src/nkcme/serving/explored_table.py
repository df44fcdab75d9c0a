"""The rows of a table that an explorer starts from: ranges of inputs, and the nearest rows."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from nkcme.runtime.model import RuntimeModel
from nkcme.tables.column_encoding import Column
from nkcme.tables.column_reading import read_values
from nkcme.tables.columns import RawColumn, is_missing

#: Of longer tables, rows are chosen at random, so that an answer takes milliseconds.
MAX_ROWS = 20_000

#: Steps of a slider, at least.
_STEPS = 200


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
        self.numbers = np.arange(n_rows)
        if n_rows > MAX_ROWS:
            rng = np.random.default_rng(0)
            self.numbers = np.sort(rng.choice(n_rows, MAX_ROWS, replace=False))
        self.n_rows_of_file = n_rows
        self.names = names
        self._columns = [
            _as_read(one, [_plain(column[i]) for i in self.numbers])
            for one, column in zip(model.encoder_.columns, columns, strict=True)
        ]
        self._y = None if y is None else np.asarray(y, np.float64)[self.numbers]
        self._named = model.encoder_.feature_names is not None
        described = zip(names, model.encoder_.columns, self._columns, strict=True)
        self.inputs = [_input(*one) for one in described]
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
        return dict(zip(self.names, values, strict=True)) if self._named else values

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
            if one["kind"] != "number" or isinstance(value, str | None):
                continue
            if not one["min"] <= value <= one["max"]:
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


def _plain(value: Any) -> Any:
    """A value as JSON has it; None if missing."""
    if is_missing(value):
        return None
    return value.item() if isinstance(value, np.generic) else value


def _as_read(column: Column, values: list[Any]) -> list[Any]:
    """Numbers in text, and yes and no, as the numbers and booleans that the model reads."""
    if column.kind not in ("numeric", "boolean") or not any(isinstance(v, str) for v in values):
        return values
    raw = RawColumn.of_array(f"column {column.name!r}", np.fromiter(values, object, len(values)))
    read = read_values(raw, column.kind, column.notation).tolist()
    kind = bool if column.kind == "boolean" else float
    return [None if math.isnan(value) else kind(value) for value in read]


def _input(name: str, column: Column, values: list[Any]) -> dict[str, Any]:
    """The control of a column: a slider over its range, a menu, or a text field."""
    present = [value for value in values if value is not None]
    if column.kind in ("numeric", "boolean") and all(type(v) is bool for v in present):
        return _menu(name, [False, True], present)
    if column.kind == "category":
        return _menu(name, list(column.categories), [str(value) for value in present])
    if column.kind == "numeric" and present and all(isinstance(v, int | float) for v in present):
        finite = [float(value) for value in present if math.isfinite(value)] or [column.mean]
        low, high = min(finite), max(finite)
        step = _step(low, high, whole=all(value == round(value) for value in finite))
        return {
            "name": name,
            "kind": "number",
            # Whole steps, so that a slider stops at numbers with few digits.
            "min": float(f"{math.floor(low / step) * step:.12g}"),
            "max": float(f"{math.ceil(high / step) * step:.12g}"),
            "step": step,
            "typical": float(np.quantile(finite, 0.5, method="nearest")),
        }
    return {"name": name, "kind": "text", "typical": _most_common(present)}


def _menu(name: str, options: list[Any], present: list[Any]) -> dict[str, Any]:
    return {"name": name, "kind": "menu", "options": options, "typical": _most_common(present)}


def _most_common(values: list[Any]) -> Any:
    return Counter(values).most_common(1)[0][0] if values else None


def _step(low: float, high: float, *, whole: bool) -> float:
    """A power of ten that makes at least `_STEPS` steps, or one for whole numbers."""
    if high <= low:
        return 1.0
    step = 10.0 ** math.floor(math.log10((high - low) / _STEPS))
    return max(step, 1.0) if whole else step
