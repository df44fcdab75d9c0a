"""The median heuristic: the median distance between data points as a bandwidth."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist

#: The number of rows whose distances are computed.
N_ROWS = 1000


def median_distance(points: np.ndarray, counts: np.ndarray, seed: int) -> float:
    """The median distance between two of `N_ROWS` random rows, or of all rows if there are fewer.

    Each of the points (n, d) is repeated ``counts`` times. The paper takes the first 1,000 rows;
    here the order of rows makes no difference. If the median is zero, the result is the mean
    distance, and 1 if all points are equal.
    """
    n_rows = max(round(float(counts.sum())), 1)
    drawn = np.arange(n_rows)
    if n_rows > N_ROWS:
        drawn = np.random.default_rng(seed).choice(n_rows, N_ROWS, replace=False)
    # Row k of the repeated rows is at k + 1/2 in the cumulative counts.
    place = np.searchsorted(np.cumsum(counts), np.sort(drawn) + 0.5)
    chosen = points[np.minimum(place, len(points) - 1)].astype(np.float64)
    distances = pdist(chosen) if len(chosen) > 1 else np.zeros(1)
    return float(np.median(distances)) or float(np.mean(distances)) or 1.0
