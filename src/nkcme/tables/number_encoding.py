"""The numbers of a table, standardised together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nkcme.tables.column_encoding import Column
from nkcme.tables.standardisation import FLOAT32_MAX, Units

MAX_STANDARDISED = 1e6
"""Standardised inputs are clipped here: a network learns nothing a million deviations away."""

SOFT_LIMIT = 8.0
"""Softened inputs stay below this many scales; half of it becomes 3.6, and 2 becomes 1.94."""


class NumberEncoder:
    """Encodes the k numbers of a row: numbers, booleans, and those of dates and times.

    Parameters
    ----------
    columns : list of Column
        All columns of the table.
    standardize : bool
    """

    def __init__(self, columns: Sequence[Column], standardize: bool):
        starts = np.cumsum([0, *(column.n_outputs for column in columns)]).tolist()
        #: The positions among the columns of those that have numbers.
        self.positions = [j for j, column in enumerate(columns) if column.number_columns]
        own, places = [], []
        for j in self.positions:
            place = starts[j]
            for number in columns[j].number_columns:
                own.append(number)
                places.append(place)
                place += number.n_outputs
        self.n_numbers = len(own)
        self._places = np.array(places, np.intp)
        self._outputs = _compact(self._places)
        self._marked = np.flatnonzero([column.has_missing for column in own])
        self._softened = np.flatnonzero([column.softened for column in own])
        self._soft = _compact(self._softened)
        self._standardize = standardize
        self._mean = np.array([column.mean for column in own])
        scale = np.array([column.scale for column in own])
        self._constant = np.flatnonzero(scale == 0)
        self._units = Units.of(self._mean, np.where(scale == 0, 1.0, scale))

    def encode(self, values: np.ndarray, outputs: np.ndarray) -> None:
        """Fill in the outputs (n, n_outputs) of values (n, k), NaN where missing."""
        missing = np.isnan(values)
        some_missing = np.count_nonzero(missing) > 0
        if self._standardize:
            values = _limited(self._units.standardised(values), 1e100)
            if some_missing:
                values[missing] = 0.0
            if len(self._constant):
                values[:, self._constant] = 0.0
            if len(self._softened):
                soft = values[:, self._soft]
                values[:, self._soft] = soft / np.sqrt(1.0 + np.square(soft / SOFT_LIMIT))
        elif some_missing:
            values = np.where(missing, self._mean, values)
        # Softened values are small.
        if not self._standardize or len(self._softened) < self.n_numbers:
            limit = MAX_STANDARDISED if self._standardize else FLOAT32_MAX
            values = _limited(values, limit)
        outputs[:, self._outputs] = values
        if len(self._marked):
            outputs[:, self._places[self._marked] + 1] = missing[:, self._marked]


def _compact(places: np.ndarray) -> np.ndarray | slice:
    """Places as a slice where they are neighbours, which is faster for single rows."""
    if len(places) and places[-1] - places[0] == len(places) - 1:
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def _limited(values: np.ndarray, limit: float) -> np.ndarray:
    return np.minimum(np.maximum(values, -limit), limit)
