"""Computations over many rows or points in blocks, so that temporary arrays stay small."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

#: Bytes that the temporary arrays of one method may use.
MAX_MEMORY = 2**28

#: Rows of a table that are predicted together.
BLOCK_ROWS = 8192


def count_that_fits(numbers_each: int) -> int:
    """How many items of ``numbers_each`` float64 numbers fit into `MAX_MEMORY`; at least one."""
    return max(1, MAX_MEMORY // (8 * max(numbers_each, 1)))


def row_slices(n_rows: int, block_rows: int) -> Iterator[slice]:
    """Slices of at most ``block_rows`` rows that cover ``n_rows`` rows in order."""
    for first in range(0, n_rows, block_rows):
        yield slice(first, min(first + block_rows, n_rows))


def map_rows(
    f: Callable[..., np.ndarray], *batches: Any, block_rows: int, axis: int = 0
) -> np.ndarray:
    """``f(*batches)``, computed block by block and concatenated along ``axis``.

    ``batches`` have one length and can be sliced by rows: arrays, or distributions. A batch of no
    rows is passed to ``f`` as it is.
    """
    n_rows = len(batches[0])
    if n_rows <= block_rows:
        return f(*batches)
    blocks = row_slices(n_rows, block_rows)
    return np.concatenate([f(*(batch[rows] for batch in batches)) for rows in blocks], axis=axis)


def map_points(
    f: Callable[[np.ndarray], np.ndarray], points: np.ndarray, *, block_points: int
) -> np.ndarray:
    """``f(points)`` of shape (n_rows, m) for points (n_rows or 1, m, d), in blocks of the m."""
    n_points = points.shape[1]
    if n_points <= block_points:
        return f(points)
    blocks = row_slices(n_points, block_points)
    return np.concatenate([f(points[:, chosen]) for chosen in blocks], axis=1)
