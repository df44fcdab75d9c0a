"""Functions of arrays that are fast for single rows too."""

from __future__ import annotations

from typing import Any

import numpy as np


def clipped(values: Any, low: Any, high: Any) -> np.ndarray:
    """`np.clip`, which takes five times as long for a few numbers."""
    return np.minimum(np.maximum(values, low), high)


def mean_over(values: np.ndarray, axis: int) -> np.ndarray:
    """`np.mean` in the precision of the values, which takes twice as long for a few numbers."""
    return np.add.reduce(values, axis=axis) / values.shape[axis]
