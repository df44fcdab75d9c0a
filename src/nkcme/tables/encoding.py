"""A table of anything to standardised float arrays, and back.

`nkcme.tables.columns` reads the table; this file says what each column becomes:

* numbers and booleans: one output, standardised; a missing value stands at the training mean, and
  an extra 0/1 output marks it where training had missing values too. A column that never varied in
  training taught the model nothing, so it encodes to 0 whatever comes later;
* categories, text, and mixtures of numbers and text: one 0/1 output for each of the most frequent
  categories, compared by their text (an integer-valued float reads as an integer). Rare and unseen
  categories are all zeros. Missing is a category of its own where training had it;
* a column with no value at all in training: one output, always 0.

Rows of weight zero count as absent and whole weights as repetition, to the last bit. The order of
rows makes no difference. Outputs are always finite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from nkcme.errors import ModelFileError, TableError
from nkcme.tables.columns import (
    MAX_COLUMNS,
    Kind,
    RawColumn,
    Table,
    as_float,
    listed,
    read_columns,
    shown,
)

MAX_CATEGORIES = 50
MAX_STANDARDISED = 1e6
"""Standardised inputs are clipped here: a network learns nothing a million deviations away."""

_FLOAT32_MAX = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Column:
    """What was learned of one column of X.

    ``mean`` and ``scale`` are those of the present values; a scale of 0 says that they never
    varied. ``has_missing`` says that some training values were missing, but not all.
    """

    name: str | None
    kind: Kind
    mean: float = 0.0
    scale: float = 0.0
    categories: tuple[str, ...] = ()
    has_missing: bool = False

    @property
    def n_outputs(self) -> int:
        return max(1, len(self.categories)) + self.has_missing


@dataclass(frozen=True)
class TableEncoder:
    """What was learned of the columns of X: encodes tables to a matrix of standardised inputs.

    With ``standardize`` off, numbers and booleans keep their values (clipped to the range of
    float32) and missing ones are still replaced by the mean.
    """

    columns: tuple[Column, ...]
    standardize: bool = True

    @classmethod
    def fit(
        cls, X: Any, *, standardize: bool = True, sample_weight: np.ndarray | None = None
    ) -> TableEncoder:
        table = Table.read(X, "X")
        weight = checked_weight(sample_weight, table.n_rows)
        names = table.names or (None,) * table.n_columns
        learned = (_learn(name, raw, weight) for name, raw in zip(names, table, strict=True))
        return cls(tuple(learned), standardize)

    @property
    def n_outputs(self) -> int:
        return sum(column.n_outputs for column in self.columns)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the training columns, or None where they had none."""
        names = tuple(column.name for column in self.columns if column.name is not None)
        return names or None

    def transform(self, X: Any) -> np.ndarray:
        """X as a finite float32 matrix of shape (rows, n_outputs).

        Columns are matched by name where training and X both have names, else by position.
        """
        table = Table.read(X, "X")
        outputs = np.zeros((table.n_rows, self.n_outputs), dtype=np.float32)
        start = 0
        for column, position in zip(self.columns, self._positions(table), strict=True):
            stop = start + column.n_outputs
            if column.kind == "category":
                _encode_category(column, table.column(position), outputs[:, start:stop])
            elif column.kind != "empty":
                self._encode_number(column, table.column(position), outputs[:, start:stop])
            start = stop
        return outputs

    def _positions(self, table: Table) -> list[int]:
        """Where each training column is in the table."""
        names = self.feature_names
        if names is None or table.names is None:
            if table.n_columns != len(self.columns):
                raise TableError(
                    f"X has {table.n_columns} columns but the model was fitted on "
                    f"{len(self.columns)}; pass the same columns in the same order"
                )
            return list(range(table.n_columns))
        place = {name: position for position, name in enumerate(table.names)}
        absent = [name for name in names if name not in place]
        unknown = [name for name in table.names if name not in set(names)]
        if absent or unknown:
            faults = [f"lacks {listed(absent)}"] if absent else []
            faults += [f"has the unknown {listed(unknown)}"] if unknown else []
            raise TableError(
                f"X {' and '.join(faults)}; pass the {len(names)} columns the model was fitted on"
            )
        return [place[name] for name in names]

    def _encode_number(self, column: Column, raw: RawColumn, outputs: np.ndarray) -> None:
        if raw.kind == "category":
            row, value = raw.first_text()
            raise TableError(
                f"{raw.where} held numbers in training but has {shown(value)} in row {row} "
                "(counting from 0); convert the column to numbers"
            )
        values = raw.numbers()
        missing = np.isnan(values)
        if self.standardize:
            limit = MAX_STANDARDISED
            values = _standardised(values, column.mean, column.scale)
            values[missing] = 0.0
        else:
            limit = _FLOAT32_MAX
            values[missing] = column.mean
        outputs[:, 0] = np.clip(values, -limit, limit)
        if column.has_missing:
            outputs[:, 1] = missing

    def to_config(self) -> dict[str, Any]:
        """A JSON-able description, exact to the last bit."""
        columns = [{**vars(column), "categories": [*column.categories]} for column in self.columns]
        return {"standardize": self.standardize, "columns": columns}

    @classmethod
    def from_config(cls, config: Any) -> TableEncoder:
        """The encoder that gave this description; nothing in it is trusted."""
        _check_keys(config, {"standardize", "columns"}, "the table encoder")
        _check(isinstance(config["standardize"], bool), "'standardize' is not true or false")
        columns = config["columns"]
        _check(
            isinstance(columns, list) and 1 <= len(columns) <= MAX_COLUMNS,
            f"'columns' is not a list of 1 to {MAX_COLUMNS} columns",
        )
        encoder = cls(
            tuple(_column_from_config(column, f"column {j}") for j, column in enumerate(columns)),
            config["standardize"],
        )
        names = {column.name for column in encoder.columns}
        _check(names == {None} or len(names - {None}) == len(columns), "column names repeat")
        return encoder


@dataclass(frozen=True, eq=False)
class TargetScaler:
    """Location and scale of y per output, undone on the way out.

    An output that never varied has next to no scale, a millionth of its size: what is predicted of
    it has next to no width, whatever its units. Arrays may have any leading axes; outputs are last.
    """

    location: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(
        cls, y: np.ndarray, *, standardize: bool = True, sample_weight: np.ndarray | None = None
    ) -> TargetScaler:
        """Learn from finite y of shape (rows, outputs)."""
        if not standardize:
            return cls(np.zeros(y.shape[1]), np.ones(y.shape[1]))
        weight = checked_weight(sample_weight, len(y))
        present = weight > 0
        moments = [_moments(column[present], weight[present]) for column in y.T]
        location, scale = np.array(moments, dtype=np.float64).T
        narrow = np.maximum(1e-6 * np.abs(location), 1e-50)
        return cls(location.copy(), np.where(scale > 0, scale, narrow))

    def transform(self, y: np.ndarray) -> np.ndarray:
        """y in units of the scale, as float32 (values beyond its range are clipped to it)."""
        standardised = _standardised(np.asarray(y, np.float64), self.location, self.scale)
        return np.clip(standardised, -_FLOAT32_MAX, _FLOAT32_MAX).astype(np.float32)

    def inverse(self, z: np.ndarray) -> np.ndarray:
        """The float64 y whose standardised form is z."""
        with np.errstate(over="ignore"):
            return np.asarray(z, np.float64) * self.scale + self.location

    def to_config(self) -> dict[str, Any]:
        """A JSON-able description, exact to the last bit."""
        return {"location": self.location.tolist(), "scale": self.scale.tolist()}

    @classmethod
    def from_config(cls, config: Any) -> TargetScaler:
        """The scaler that gave this description; nothing in it is trusted."""
        _check_keys(config, {"location", "scale"}, "the target scaler")
        for key, values in config.items():
            _check(
                isinstance(values, list) and 1 <= len(values) <= MAX_COLUMNS,
                f"the target's {key!r} is not a list of 1 to {MAX_COLUMNS} numbers",
            )
        location, scale = (
            np.array([_finite_number(value, f"the target's {key!r}") for value in config[key]])
            for key in ("location", "scale")
        )
        _check(len(location) == len(scale), "the target has not as many scales as locations")
        with np.errstate(all="ignore"):
            sound = (scale > 0) & np.isfinite(location / scale)
        _check(bool(sound.all()), "a scale of the target is not positive or vanishes")
        return cls(location, scale)


def as_target(y: Any) -> np.ndarray:
    """A user's y as a finite float64 array of the same shape.

    A 1-D y stays 1-D; a y of shape (n, 1) stays (n, 1), and so will the predictions.
    """
    if y is None:
        raise TableError("fit requires y to be passed, but the target y is None; pass one y a row")
    columns = read_columns(y, "y")
    if isinstance(columns, RawColumn):
        return _target_values(columns)
    return np.stack([_target_values(raw) for raw in columns], axis=1)


def _target_values(raw: RawColumn) -> np.ndarray:
    if not len(raw.array):
        raise TableError("y is empty: expected one value a row, got none; pass at least one row")
    if raw.kind == "category":
        row, value = raw.first_text()
        raise TableError(
            f"{raw.where} is text ({shown(value)} in row {row}, counting from 0): the target must "
            "be numbers; convert it, or drop the rows that are no numbers"
        )
    values = raw.numbers()
    missing = np.flatnonzero(np.isnan(values))
    if len(missing):
        raise TableError(
            f"{raw.where} has {len(missing)} missing values (NaN), the first in row {missing[0]} "
            "(counting from 0): the target must be complete; drop these rows"
        )
    return values


# ------------------------------------------------------------------------- learning and encoding


def checked_weight(sample_weight: ArrayLike | None, n_rows: int) -> np.ndarray:
    """Weights of the rows: whole ones as they are, others relative to the largest."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,) or not np.isfinite(weight).all() or (weight < 0).any():
        raise TableError(
            f"sample_weight must be {n_rows} finite numbers of at least 0, one a row, got an array "
            f"of shape {weight.shape} with {np.sum(~(weight >= 0) | np.isinf(weight))} bad values"
        )
    if not weight.any():
        raise TableError("sample_weight is zero for every row; give some row a positive weight")
    return weight if _are_whole(weight) else weight / weight.max()


def repetitions(weight: np.ndarray) -> int:
    """How many rows weighted ones stand for; where weights are not whole, each for one."""
    return int(weight.sum() if _are_whole(weight) else np.count_nonzero(weight))


def _are_whole(weight: np.ndarray) -> bool:
    """Whether weights count repetitions; their sums are then exact."""
    return bool(np.all(weight == np.rint(weight))) and float(weight.max()) * len(weight) < 2**53


def _learn(name: str | None, raw: RawColumn, weight: np.ndarray) -> Column:
    counted = weight > 0
    if not counted.all():
        raw, weight = raw.rows(counted), weight[counted]
    if raw.kind == "empty":
        return Column(name, "empty")
    has_missing = bool(raw.missing.any())
    if raw.declared or raw.kind == "category":
        totals: dict[str, float] = {}
        for label, share in zip(raw.labels(), weight.tolist(), strict=True):
            if label is not None:
                totals[label] = totals.get(label, 0.0) + share
        frequent = sorted(totals, key=lambda label: (-totals[label], label))[:MAX_CATEGORIES]
        categories = tuple(sorted(frequent))
        return Column(name, "category", categories=categories, has_missing=has_missing)
    values = raw.numbers()
    if has_missing:
        values, weight = values[~raw.missing], weight[~raw.missing]
    mean, scale = _moments(values, weight)
    return Column(name, raw.kind, mean, scale, has_missing=has_missing)


def _encode_category(column: Column, raw: RawColumn, outputs: np.ndarray) -> None:
    if raw.kind == "empty":
        codes = np.full(len(outputs), -1)
    else:
        place = {category: code for code, category in enumerate(column.categories)}
        codes = np.array([-1 if x is None else place.get(x, -1) for x in raw.labels()])
    known = np.flatnonzero(codes >= 0)
    outputs[known, codes[known]] = 1.0
    if column.has_missing:
        outputs[:, -1] = raw.missing


def _moments(values: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Weighted mean and standard deviation of finite values, without overflow or underflow.

    The work is done on (value - low) / (high - low), which lies in [0, 1] whatever the units, and
    loses nothing where the spread is tiny beside the mean.
    """
    low, high = float(values.min()), float(values.max())
    if low == high:
        return low, 0.0
    unit = _power_of_two_near(max(abs(low), abs(high)))
    base = low * unit
    span = high * unit - base
    share = (values * unit - base) / span
    mean = _average(share, weight)
    spread = math.sqrt(_average((share - mean) ** 2, weight))
    return min(max((base + mean * span) / unit, low), high), spread * span / unit


def _average(share: np.ndarray, weight: np.ndarray) -> float:
    """The weighted mean of numbers from 0 to 1.

    Where weights are whole, the numbers are rounded so finely that their sum is exact and so
    coarsely that it has room in a float: it is then the same in any order of rows, and whether a
    row has weight two or stands there twice.
    """
    total = weight.sum()
    if _are_whole(weight):
        unit = 2.0 ** max(52 - math.ceil(math.log2(total)), 24)
        share = np.rint(share * unit) / unit
    return float(share @ weight / total)


def _standardised(values: np.ndarray, mean: Any, scale: Any) -> np.ndarray:
    """(values - mean) / scale, without overflow on the way; 0 where the scale is 0."""
    if np.all(scale == 0):
        return np.zeros_like(values)
    unit = _power_of_two_near(scale)
    with np.errstate(over="ignore"):
        return (values * unit - mean * unit) / (scale * unit)


def _power_of_two_near(size: Any) -> Any:
    """The inverse of about ``size``: multiplying by it is exact and brings numbers near 1."""
    return np.ldexp(1.0, -np.clip(np.frexp(size)[1], -1000, 1000))


# --------------------------------------------------------------------- what a model file may say


def _check(condition: bool, fault: str) -> None:
    if not condition:
        raise ModelFileError(f"the model file is damaged: {fault}; save the model again")


def _check_keys(config: Any, keys: set[str], what: str) -> None:
    _check(
        isinstance(config, dict) and set(config) == keys,
        f"{what} is not an object with the keys {', '.join(sorted(keys))}",
    )


def _finite_number(value: Any, what: str) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    number = as_float(value) if is_number else math.nan
    _check(math.isfinite(number), f"{what} is not a finite number")
    return number


def _column_from_config(config: Any, what: str) -> Column:
    _check_keys(config, set(Column.__dataclass_fields__), what)
    name, kind, categories = config["name"], config["kind"], config["categories"]
    _check(name is None or isinstance(name, str), f"the name of {what} is not text")
    _check(isinstance(kind, str) and kind in get_args(Kind), f"the kind of {what} is unknown")
    _check(isinstance(config["has_missing"], bool), f"'has_missing' of {what} is no boolean")
    _check(
        isinstance(categories, list)
        and all(isinstance(category, str) for category in categories)
        and categories == sorted(set(categories))
        and len(categories) <= MAX_CATEGORIES
        and bool(categories) == (kind == "category"),
        f"the categories of {what} are not a sorted list of up to {MAX_CATEGORIES} texts",
    )
    mean = _finite_number(config["mean"], f"the mean of {what}")
    scale = _finite_number(config["scale"], f"the scale of {what}")
    _check(
        scale >= 0 and (scale == 0 or math.isfinite(mean / scale)),
        f"the scale of {what} is negative or vanishes beside its mean",
    )
    return Column(name, kind, mean, scale, tuple(categories), config["has_missing"])
