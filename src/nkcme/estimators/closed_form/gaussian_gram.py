"""The Gaussian kernel between points."""

from __future__ import annotations

import numpy as np


def gaussian(a: np.ndarray, b: np.ndarray, bandwidth: float) -> np.ndarray:
    """exp(-|a_i - b_j|^2 / (2 bandwidth^2)) for points (n, p) and (m, p)."""
    squares = np.sum(a * a, axis=1)[:, None] + np.sum(b * b, axis=1) - 2.0 * (a @ b.T)
    return np.exp(np.maximum(squares, 0.0) / (-2.0 * bandwidth**2))
