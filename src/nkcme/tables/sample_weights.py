"""Weights of rows: whole ones count repetitions, others only compare rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nkcme.errors import TableError


def checked_weight(sample_weight: ArrayLike | None, n_rows: int) -> np.ndarray:
    """The weights of rows: whole ones as given, others relative to the largest."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,) or not np.isfinite(weight).all() or (weight < 0).any():
        raise TableError(
            f"sample_weight must be {n_rows} finite numbers of at least 0, one per row; got an "
            f"array of shape {weight.shape} with {np.sum(~(weight >= 0) | np.isinf(weight))} bad "
            "values"
        )
    if not weight.any():
        raise TableError("sample_weight is zero for every row; give some row a positive weight")
    return weight if are_whole(weight) else weight / weight.max()


def repetitions(weight: np.ndarray) -> int:
    """The number of rows that weighted rows stand for; one each where weights are not whole."""
    return int(weight.sum() if are_whole(weight) else np.count_nonzero(weight))


def are_whole(weight: np.ndarray) -> bool:
    """Whether weights count repetitions; their sums are then exact."""
    return bool(np.all(weight == np.rint(weight))) and float(weight.max()) * len(weight) < 2**53


def need_enough_rows(n_rows: int) -> None:
    """Refuse a table of fewer rows than any fit needs, repetitions counted."""
    if n_rows < 2:
        raise TableError(
            f"expected at least 2 rows to learn from, got n_samples = {n_rows}; add rows"
        )
