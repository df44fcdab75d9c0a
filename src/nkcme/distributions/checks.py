"""Checks and conversions of the arguments of distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nkcme.errors import NkcmeError


def as_rows(rows: Any) -> Any:
    """An index that selects rows and keeps their axis: an integer becomes a list of one."""
    return [rows] if isinstance(rows, int | np.integer) else rows


def as_floats(name: str, values: ArrayLike) -> np.ndarray:
    """Values as float64, or an error."""
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise NkcmeError(
            f"{name} must be numbers; got a {type(values).__name__} that holds something else"
        ) from None


def checked_size(size: Any) -> int:
    """A number of samples, or an error."""
    whole = isinstance(size, int | np.integer) and not isinstance(size, bool)
    if not whole or size < 0:
        raise NkcmeError(
            f"the number of samples must be a whole number of at least 0; got {described(size)}"
        )
    return int(size)


def as_random_state(seed: Any) -> np.random.RandomState:
    """The generator of a seed, as scikit-learn has it: None is NumPy's global generator."""
    if seed is None or seed is np.random:
        return np.random.mtrand._rand
    if isinstance(seed, np.random.RandomState):
        return seed
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool) and 0 <= seed < 2**32:
        return np.random.RandomState(int(seed))
    raise NkcmeError(
        "random_state must be None, a whole number from 0 to 2**32 - 1 or a numpy RandomState; "
        f"got {described(seed)}"
    )


def checked_coverage(coverage: Any) -> float:
    """One coverage as a float, or an error."""
    number = isinstance(coverage, int | float | np.number | np.ndarray) and np.ndim(coverage) == 0
    if isinstance(coverage, bool) or not number or not 0 < coverage < 1:
        raise NkcmeError(
            f"coverage must be one number between 0 and 1, such as 0.9; got {described(coverage)}"
        )
    return float(coverage)


def described(value: Any) -> str:
    """A value in an error message, on one line."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    return " ".join(repr(value).split())


def arranged_points(
    y: ArrayLike, n_rows: int, n_outputs: int, grid: bool
) -> tuple[np.ndarray, bool]:
    """Points as (n_rows or 1, m, n_outputs), and whether there is one for each row."""
    points = as_floats("y", y)
    given = points.shape
    if n_outputs == 1:
        points = points[..., None]
    if points.shape[-1:] != (n_outputs,):
        raise NkcmeError(f"a point has {n_outputs} outputs in its last axis; got shape {given}")
    lead = points.shape[:-1]
    if grid:
        if len(lead) != 1:
            raise NkcmeError(f"a grid is one list of points; got shape {given}")
        return points[None], False
    if lead == () or lead == (n_rows,):
        return np.broadcast_to(points, (n_rows, n_outputs))[:, None, :], True
    if len(lead) == 2 and lead[0] == n_rows:
        return points, False
    raise NkcmeError(
        f"expected one y for each of {n_rows} rows, got shape {given}; "
        "for points shared by all rows pass grid=True"
    )
