"""Fitting generalised Pareto tails to the largest of many residuals."""

from __future__ import annotations

import numpy as np

from nkcme.distributions.tails import MAX_SHAPE, TailParameters, Tails

#: Rows of an exponential tail (shape 0) with which the estimate of a shape is averaged: a few dozen
#: excesses do not determine it.
_PRIOR_ROWS = 20.0


def fit_tails(
    z: np.ndarray,
    weight: np.ndarray,
    first: float,
    last: float,
    *,
    share: float,
    least_rows: int,
) -> Tails:
    """Tails below ``first`` and above ``last`` of the distribution of z (n,).

    On each side the outermost ``share`` of rows, but at least ``least_rows``, are excesses over a
    threshold. They have about a generalised Pareto distribution, and so has what exceeds a
    threshold further out (Pickands, 1975): its scale grows with the distance.
    """
    upper = _fit_upper(z, weight, last, share, least_rows)
    return Tails(_fit_upper(-z, weight, -first, share, least_rows), upper)


def _fit_upper(
    z: np.ndarray, weight: np.ndarray, edge: float, share: float, least_rows: int
) -> TailParameters:
    order = np.argsort(-z)
    z, weight = z[order], weight[order]
    n = float(weight.sum())
    k = int(np.searchsorted(np.cumsum(weight), max(share * n, least_rows))) + 1
    k = min(k, max(len(z) // 2, 1))
    threshold = z[k] if k < len(z) else z[-1]
    excess, rows = z[:k] - threshold, weight[:k]
    mean = float(np.average(excess, weights=rows))
    spread = max(float(z[0] - z[-1]), 1e-12)
    if not mean > 1e-9 * spread:  # all of them equal: a bound that y reaches
        return TailParameters(0.5 / (n + 1.0), 1e-3 * spread)
    # Moments: for shape xi the squared coefficient of variation is 1 / (1 - 2 xi).
    square = float(np.average(np.square(excess), weights=rows))
    shape = 0.5 * (1.0 - mean * mean / max(square - mean * mean, 1e-300))
    total = float(rows.sum())
    shape = float(np.clip(shape * total / (total + _PRIOR_ROWS), 0.0, MAX_SHAPE))
    scale = mean * (1.0 - shape)
    tail = TailParameters(total / n, scale, shape).in_units(np.ones(1))
    beyond = tail.beyond(np.array([max(edge - threshold, 0.0)]))
    # A new row exceeds all n before it with probability 1 / (n + 1), whatever the distribution.
    mass = float(np.clip(beyond.mass[0], 0.25 / (n + 1.0), 1.0 / (n + 1.0)))
    return TailParameters(mass, float(beyond.scale[0]), shape)
