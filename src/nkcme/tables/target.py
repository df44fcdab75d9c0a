"""The target: reading y, and scaling it to mean 0 and standard deviation 1 and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nkcme.errors import TableError
from nkcme.tables.columns import MAX_COLUMNS, RawColumn, read_columns
from nkcme.tables.config_checks import check, check_keys, finite_number
from nkcme.tables.messages import shown
from nkcme.tables.sample_weights import checked_weight
from nkcme.tables.standardisation import FLOAT32_MAX, moments, standardised
from nkcme.tables.text_numbers import parse_number
from nkcme.tables.values import family


@dataclass(frozen=True, eq=False)
class TargetScaler:
    """Location and scale of each output of y.

    An output that never varied has a scale of a millionth of its size, so that its predictions have
    almost no width in any units. (A logarithm that never varied has a scale of a millionth.) Arrays
    may have any leading axes; outputs are last.
    """

    location: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(
        cls,
        y: np.ndarray,
        *,
        standardize: bool = True,
        sample_weight: np.ndarray | None = None,
        logarithmic: bool = False,
    ) -> TargetScaler:
        """Learn from finite y of shape (rows, outputs), or from their logarithms."""
        if not standardize:
            return cls(np.zeros(y.shape[1]), np.ones(y.shape[1]))
        weight = checked_weight(sample_weight, len(y))
        present = weight > 0
        learned = [moments(column[present], weight[present]) for column in y.T]
        location, scale = np.array(learned, dtype=np.float64).T
        size = 1.0 if logarithmic else np.abs(location)
        narrow = np.maximum(1e-6 * size, 1e-50)
        return cls(location.copy(), np.where(scale > 0, scale, narrow))

    def transform(self, y: np.ndarray) -> np.ndarray:
        """y in units of the scale, as float32 (values beyond its range are clipped to it)."""
        scaled = standardised(np.asarray(y, np.float64), self.location, self.scale)
        return np.clip(scaled, -FLOAT32_MAX, FLOAT32_MAX).astype(np.float32)

    def inverse(self, z: np.ndarray) -> np.ndarray:
        """The float64 y that has the standardised form z."""
        with np.errstate(over="ignore"):
            return np.asarray(z, np.float64) * self.scale + self.location

    def to_config(self) -> dict[str, Any]:
        """A description that JSON can hold, exact to the last bit."""
        return {"location": self.location.tolist(), "scale": self.scale.tolist()}

    @classmethod
    def from_config(cls, config: Any) -> TargetScaler:
        """The scaler of a description, which is checked."""
        check_keys(config, {"location", "scale"}, "the target scaler", frozenset())
        for key, values in config.items():
            check(
                isinstance(values, list) and 1 <= len(values) <= MAX_COLUMNS,
                f"the target's {key!r} is not a list of 1 to {MAX_COLUMNS} numbers",
            )
        location, scale = (
            np.array([finite_number(value, f"the target's {key!r}") for value in config[key]])
            for key in ("location", "scale")
        )
        check(len(location) == len(scale), "the target has not as many scales as locations")
        with np.errstate(all="ignore"):
            sound = (scale > 0) & np.isfinite(location / scale)
        check(bool(sound.all()), "a scale of the target is not positive or vanishes")
        return cls(location, scale)


def as_target(y: Any) -> np.ndarray:
    """y as a finite float64 array of the same shape.

    A 1-D y stays 1-D; a y of shape (n, 1) stays (n, 1), and so will the predictions.
    """
    if y is None:
        raise TableError(
            "fit requires y to be passed, but the target y is None; pass one value per row"
        )
    columns = read_columns(y, "y")
    if isinstance(columns, RawColumn):
        return _target_values(columns)
    return np.stack([_target_values(raw) for raw in columns], axis=1)


def _target_values(raw: RawColumn) -> np.ndarray:
    if not len(raw.array):
        raise TableError("y is empty: expected one value per row, got none; pass at least one row")
    if raw.kind in ("category", "date", "time"):
        row, value = first_other_value(raw)
        what = {"category": "text", "date": "dates", "time": "times of day"}[raw.kind]
        raise TableError(
            f"{raw.where} is {what} ({shown(value)} in row {row}, counting from 0): the target "
            "must be numbers; convert it, or drop the rows that are not numbers"
        )
    values = raw.numbers()
    missing = np.flatnonzero(np.isnan(values))
    if len(missing):
        raise TableError(
            f"{raw.where} has {len(missing)} missing values (NaN), the first in row {missing[0]} "
            "(counting from 0): the target must be complete; drop these rows"
        )
    return values


def first_other_value(raw: RawColumn) -> tuple[int, Any]:
    """The row and the value that keep a column from being numeric.

    That is the first one that cannot be read as a number, such as "n/k" in a column of numbers
    which are text because of it; else the first text.
    """
    texts = [
        (int(row), raw.array[row])
        for row in np.flatnonzero(~raw.missing)
        if family(type(raw.array[row])) not in ("numeric", "boolean")
    ]
    return next((pair for pair in texts if not _is_number(pair[1])), texts[0])


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and parse_number(value, ".") is not None
