"""The rows of a shared table that each replica draws its minibatches from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.errors import TrainingError

AnyArray = Any  # NumPy's on the host, JAX's on the device

#: The generator of all draws, whatever the user has configured.
KEY_KIND = "threefry2x32"


#: Guides have at most two to this number of buckets.
_MOST_GUIDE_BITS = 20


class Rows(NamedTuple):
    """The row numbers of each replica and their weights, padded to one length.

    Rows are drawn with replacement and in proportion to their weight. A draw is a random integer
    below 2^32 that is looked up in the cumulative weights, so a row of weight two is drawn exactly
    as two copies of it are.
    """

    index: AnyArray  # (replicas, longest) int32
    total: AnyArray  # (replicas, longest) uint32, nondecreasing, 2^32 - 1 from the last row on

    @classmethod
    def of(cls, rows: Sequence[np.ndarray], weights: Sequence[np.ndarray] | None = None) -> Rows:
        """Build the table from one array of row numbers per replica and, optionally, weights."""
        longest = max(len(r) for r in rows)
        index = np.zeros((len(rows), longest), np.int32)
        total = np.full((len(rows), longest), 2**32 - 1, np.uint32)
        for i, r in enumerate(rows):
            w = np.ones(len(r)) if weights is None else np.asarray(weights[i], np.float64)
            r, w = np.asarray(r)[w > 0], w[w > 0]
            if not len(r):
                raise TrainingError(
                    f"replica {i} has no row of positive weight to draw: give at least one"
                )
            # Scaling by a power of two is exact: integer weights add up without rounding, as
            # copies of rows do.
            running = np.cumsum(np.ldexp(w, -np.frexp(w.max())[1]))
            index[i] = r[-1]  # the padding too: the largest draw falls there
            index[i, : len(r)] = r
            total[i, : len(r)] = np.minimum(running / running[-1] * 2.0**32, 2.0**32 - 1)
        return cls(index, total)


class RowLookup(NamedTuple):
    """The rows of one replica, for draws by NumPy.

    Looking random numbers up one by one in the cumulative weights would take longer than gathering
    the rows. A guide has the answer for the first number of each bucket, and few buckets have
    another one.
    """

    index: AnyArray  # (longest,), as in `Rows`
    total: AnyArray  # (longest,)
    guide: AnyArray  # (buckets,), the position of each one's first number in ``total``
    shift: int  # a number without its last bits is that of its bucket

    @classmethod
    def of(cls, index: np.ndarray, total: np.ndarray) -> RowLookup:
        """From the index and the totals of a replica of `Rows`."""
        n_bits = min(len(total).bit_length() + 1, _MOST_GUIDE_BITS)  # two to four buckets a row
        shift = 32 - n_bits
        first = np.arange(1 << n_bits, dtype=np.uint32) << np.uint32(shift)
        guide = np.searchsorted(total, first, side="right")
        return cls(index, total, guide.astype(np.int32), shift)

    def drawn(self, bits: np.ndarray) -> np.ndarray:
        """The same as `drawn_rows`, for draws of any shape."""
        position = self.guide[bits >> np.uint32(self.shift)]
        late = self.total[position] <= bits
        position[late] = np.searchsorted(self.total, bits[late], side="right")
        return self.index[np.minimum(position, len(self.index) - 1)]


def drawn_rows(index: Array, total: Array, bits: Array) -> Array:
    """The row numbers of one replica that random integers below 2^32 stand for."""
    # side="right": a row owns the draws from the previous total up to, but not including, its own;
    # the largest draw belongs to the last row.
    position = jnp.searchsorted(total, bits, side="right")
    return index[jnp.minimum(position, index.shape[0] - 1)]


def weights_of(total: Array) -> Array:
    """The share of each row in the draws of one replica, float32 (longest,); they sum to one."""
    # The integers are subtracted: as floats, neighbouring totals would share most of their digits.
    return jnp.diff(total, prepend=jnp.zeros(1, total.dtype)).astype(jnp.float32) / 2.0**32
