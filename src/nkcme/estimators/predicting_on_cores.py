"""Predictions of many rows on all cores, for models that predict with NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nkcme.distributions.blocks import map_rows, row_slices
from nkcme.training.cores import available_cores

#: Rows that are predicted together; larger blocks leave the cache of a core.
BLOCK_ROWS = 2048


def map_rows_on_cores(
    f: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    *,
    axis: int = 0,
    block_rows: int = BLOCK_ROWS,
) -> np.ndarray:
    """``f(x)``, computed in blocks of rows and concatenated along ``axis``.

    Several threads compute where rows are many: NumPy does not hold the interpreter meanwhile.
    """
    n_threads = min(available_cores(), len(x) // block_rows)
    if n_threads < 2:
        return map_rows(f, x, block_rows=block_rows, axis=axis)
    # Only here, where the time of imports does not matter.
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_limits

    blocks = row_slices(len(x), block_rows)
    # Each thread has a core of its own: matrix products must not start more.
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(n_threads) as threads:
        return np.concatenate(list(threads.map(lambda rows: f(x[rows]), blocks)), axis=axis)
