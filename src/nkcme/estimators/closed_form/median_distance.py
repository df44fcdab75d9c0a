"""The median heuristic: a bandwidth that fits how far apart the data are."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist

#: So many rows stand for all.
N_ROWS = 1000


def median_distance(points: np.ndarray, counts: np.ndarray, seed: int) -> float:
    """The median distance between two of ``N_ROWS`` rows drawn at random (of all, if fewer).

    A point (n, d) counts as so many rows. (The paper takes the first 1,000; here rows have no order
    of their own.) Should most distances be zero, it is their mean, and 1 if all are.
    """
    n_rows = max(round(float(counts.sum())), 1)
    drawn = np.arange(n_rows)
    if n_rows > N_ROWS:
        drawn = np.random.default_rng(seed).choice(n_rows, N_ROWS, replace=False)
    # Row number k of the repeated rows lies in the middle of the k-th unit of the running count.
    place = np.searchsorted(np.cumsum(counts), np.sort(drawn) + 0.5)
    chosen = points[np.minimum(place, len(points) - 1)].astype(np.float64)
    distances = pdist(chosen) if len(chosen) > 1 else np.zeros(1)
    return float(np.median(distances)) or float(np.mean(distances)) or 1.0
