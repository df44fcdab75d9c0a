"""Searches in sorted rows, one row of points in each."""

from __future__ import annotations

import numpy as np

#: Up to as many points per row one search over all rows is faster than one search for each row.
_FEW_POINTS = 4

#: But for as many rows.
_FEW_ROWS = 8


def last_below(table: np.ndarray, y: np.ndarray, inclusive: bool) -> np.ndarray:
    """The last column j (n_rows, m) with table[j] < y, or <= y if ``inclusive``; -1 for none."""
    side = "right" if inclusive else "left"
    if len(y) == 1:
        return table[0].searchsorted(y, side) - 1
    if y.shape[1] > _FEW_POINTS or len(y) <= _FEW_ROWS:
        found = np.empty(y.shape, np.intp)
        for place, row, points in zip(found, table, y, strict=True):
            place[:] = row.searchsorted(points, side)
        return found - 1
    n = table.shape[1]
    found = np.full(y.shape, -1)
    step = 1 << (n - 1).bit_length()
    while step:
        ahead = np.minimum(found + step, n - 1)
        value = np.take_along_axis(table, ahead, axis=1)
        passed = value <= y if inclusive else value < y
        found = np.where(passed & (found + step < n), ahead, found)
        step //= 2
    return found
