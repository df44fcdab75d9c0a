"""Random numbers of rows that depend on the seed and the number of the row alone.

What becomes of a row, such as being held out, is then the same in every pass over a table and in
every process.
"""

from __future__ import annotations

import numpy as np

#: All hashes are below it.
_MOST = 2.0**64


def row_hash(rows: np.ndarray, seed: int) -> np.ndarray:
    """A random integer (n,) below 2^64 for each row number (n,).

    The finaliser of splitmix64 (Steele, Lea and Flood, 2014), over numbers that start at a random
    place for every seed.
    """
    start = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    with np.errstate(over="ignore"):
        z = (rows.astype(np.uint64) + start) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def hash_limit(share: float) -> np.uint64:
    """The number that this share of hashes is below."""
    return np.uint64(min(max(share, 0.0) * _MOST, np.nextafter(_MOST, 0.0)))
