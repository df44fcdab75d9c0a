"""Checks of the arguments of metrics: shapes, finite values, ranges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from nkcme.distributions.blocks import row_slices
from nkcme.errors import NkcmeError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Draws in a temporary array of (n_draws, n_rows), at most (32 MiB).
BLOCK_VALUES = 2**22


def as_numbers(name: str, values: npt.ArrayLike, *, ndim: int, axes: str) -> FloatArray:
    """Values as a non-empty float64 array with the given number of axes."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        kind = type(values).__name__
        raise NkcmeError(
            f"{name} must be an array of numbers of shape {axes}, got a {kind} that is not"
        ) from None
    if array.ndim != ndim or array.size == 0:
        raise NkcmeError(f"{name} must have shape {axes} and not be empty, got {array.shape}")
    return array


def as_rows(name: str, values: npt.ArrayLike, n_rows: int | None = None) -> FloatArray:
    """One finite number per row, (n_rows,)."""
    array = as_numbers(name, values, ndim=1, axes="(n_rows,)")
    _need_rows(name, len(array), n_rows)
    need_finite(name, array)
    return array


def as_draws(name: str, values: npt.ArrayLike, n_rows: int | None = None) -> FloatArray:
    """Finite draws, (n_draws, n_rows)."""
    array = as_numbers(name, values, ndim=2, axes="(n_draws, n_rows)")
    _need_rows(name, array.shape[1], n_rows)
    need_finite(name, array)
    return array


def as_joint_draws(name: str, values: npt.ArrayLike, like: FloatArray | None = None) -> FloatArray:
    """Finite draws of several outputs, (n_draws, n_rows, d); rows and outputs as in ``like``."""
    array = as_numbers(name, values, ndim=3, axes="(n_draws, n_rows, d)")
    if like is not None and array.shape[1:] != like.shape[1:]:
        raise NkcmeError(
            f"{name} must have {like.shape[1]} rows and {like.shape[2]} outputs, as the rest, got "
            f"{array.shape[1]} and {array.shape[2]}"
        )
    need_finite(name, array)
    return array


def as_intervals(values: npt.ArrayLike) -> FloatArray:
    """Lower and upper ends, (n_rows, 2); an end may be infinite."""
    array = as_numbers("interval", values, ndim=2, axes="(n_rows, 2)")
    if array.shape[1] != 2:
        raise NkcmeError(f"interval must have shape (n_rows, 2), got {array.shape}")
    lower, upper = array.T
    ordered = (lower <= upper) & (lower < np.inf) & (upper > -np.inf)
    if not ordered.all():
        row = int(np.argmin(ordered))
        raise NkcmeError(
            f"interval must hold lower <= upper in each row, got {array[row].tolist()} in row {row}"
        )
    return array


def need_finite(name: str, array: FloatArray) -> None:
    """Raise if a value is NaN or infinite."""
    n_bad = array.size - np.count_nonzero(np.isfinite(array))
    if n_bad:
        raise NkcmeError(f"{name} must be finite, got {n_bad} NaN or infinite of {array.size}")


def need_range(name: str, array: FloatArray, low: float, high: float, expected: str) -> None:
    """Raise if a value is outside of [low, high]."""
    if np.any((array < low) | (array > high)):
        raise NkcmeError(
            f"{name} must lie in {expected}, got values from {array.min():g} to {array.max():g}"
        )


def need_positive(name: str, value: int) -> int:
    """A count of at least one, or an error."""
    if value < 1:
        raise NkcmeError(f"{name} must be at least 1, got {value}")
    return value


def draw_blocks(draws: FloatArray) -> Iterator[slice]:
    """Blocks of the rows of draws (n_draws, n_rows), so that temporary arrays stay small."""
    n_draws, n_rows = draws.shape
    return row_slices(n_rows, max(1, BLOCK_VALUES // n_draws))


def _need_rows(name: str, got: int, expected: int | None) -> None:
    if expected is not None and got != expected:
        raise NkcmeError(f"{name} must have {expected} rows, as many as the rest, got {got}")
