"""Sums of a tail over evenly spaced points, as laws of whole numbers need them."""

from __future__ import annotations

import numpy as np

from nkcme.distributions.tails import Tail

#: Terms that are added one by one, before Euler and Maclaurin's formula takes over.
_N_TERMS = 16


def tail_sums(
    tail: Tail, t: np.ndarray, count: np.ndarray | float = np.inf
) -> tuple[np.ndarray, np.ndarray]:
    """The sums of P(t + i) and of i P(t + i) over i = 0, 1, ..., count - 1, (n_rows,) each.

    P is the probability of a distance beyond a point, the tail's mass included. Relative errors of
    endless sums are below 1e-8.

    Parameters
    ----------
    tail : Tail
    t : array (n_rows,)
        The first distance, at least zero.
    count : array (n_rows,) or float
        The number of terms: finite in all rows, or infinite in all.
    """
    total, by_number = _endless_sums(tail, t)
    if np.all(np.isinf(count)):
        return total, by_number
    rest, rest_by_number = _endless_sums(tail, t + count)
    return total - rest, by_number - (rest_by_number + count * rest)


def _endless_sums(tail: Tail, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    number = np.arange(_N_TERMS)
    terms = tail.mass[:, None] * tail.survival(t[:, None] + number)
    # Beyond these terms the tail is a tail again, of scale s. Euler and Maclaurin's formula gives
    # its sums as integrals plus derivatives at the start; derivatives of P alternate in sign, so
    # that the error is at most the first term left out, of the order s^-5. A scale below one is
    # that of a tail with less than exp(-16) of its mass beyond the first terms.
    rest, xi = tail.beyond(t + _N_TERMS), tail.shape
    s = np.maximum(rest.scale, 1.0)
    total = s / (1 - xi) + 1 / 2 + 1 / (12 * s) - (1 + xi) * (1 + 2 * xi) / (720 * s**3)
    by_number = s * s / ((1 - xi) * (1 - 2 * xi)) - 1 / 12 + (1 + xi) / (240 * s * s)
    by_number += _N_TERMS * total
    return terms.sum(axis=1) + rest.mass * total, terms @ number + rest.mass * by_number
