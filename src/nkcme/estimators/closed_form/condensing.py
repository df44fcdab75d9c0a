"""Condensing of n training targets to a few atoms.

A conditional mean embedding has weights beta(x) on the n training targets. Here each target is
replaced by its shares of a few atoms, phi(y_i) ~ sum_a B_ia phi(eta_a), and the weights of the
atoms are beta(x)' B. The size of the model and the cost of a prediction then do not grow with n.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.cluster import KMeans


class Condensed(NamedTuple):
    """Atoms (m, d), and the shares B (n, m) of each target. A row of shares sums to one."""

    atoms: np.ndarray
    shares: csr_array


def condense(y: np.ndarray, weight: np.ndarray, n_atoms: int, seed: int) -> Condensed:
    """Condense targets (n, d) to at most ``n_atoms`` atoms; for one output at least two.

    - If at most ``n_atoms`` targets are distinct, they are the atoms, and the result is exact.
    - For one output, half of the atoms are evenly spaced over the range of y and half are quantiles
      of y, so that an outlier does not use up most of them. Each target is split between its two
      neighbouring atoms so that its mean is preserved. This interpolates y -> k(y, .) linearly. For
      a Gaussian kernel of bandwidth sigma, the error is at most (gap / sigma)^2 / 8 of its peak.
    - For several outputs, the atoms are cluster centres, and each target has the nearest one.
    """
    y = np.asarray(y, np.float64)
    one_output = y.shape[1] == 1
    # Sorting one column as numbers is far faster than sorting rows.
    distinct, place = np.unique(y[:, 0] if one_output else y, axis=0, return_inverse=True)
    if len(distinct) <= n_atoms:
        return _assigned(distinct.reshape(-1, y.shape[1]), place.reshape(-1))
    if one_output:
        return _interpolated(y[:, 0], weight, n_atoms)
    clusters = KMeans(n_atoms, n_init=1, max_iter=50, random_state=seed)
    clusters.fit(y, sample_weight=weight)
    return _assigned(clusters.cluster_centers_, clusters.labels_)


def _assigned(atoms: np.ndarray, place: np.ndarray) -> Condensed:
    """Each target on one atom."""
    n = len(place)
    shares = csr_array((np.ones(n), place, np.arange(n + 1)), shape=(n, len(atoms)))
    return Condensed(atoms, shares)


def _interpolated(y: np.ndarray, weight: np.ndarray, n_atoms: int) -> Condensed:
    """Each target (n,) split between two atoms."""
    even = np.linspace(y.min(), y.max(), (n_atoms + 1) // 2 if n_atoms > 3 else n_atoms)
    order = np.argsort(y)
    running = np.cumsum(weight[order]) - 0.5 * weight[order]
    levels = (np.arange(n_atoms - len(even)) + 0.5) / max(n_atoms - len(even), 1)
    quantiles = np.interp(levels * weight.sum(), running, y[order])
    atoms = np.unique(np.concatenate([even, quantiles]))
    left = np.clip(np.searchsorted(atoms, y, "right") - 1, 0, len(atoms) - 2)
    right_share = (y - atoms[left]) / (atoms[left + 1] - atoms[left])
    columns = np.stack([left, left + 1], axis=1).reshape(-1)
    shares = np.stack([1.0 - right_share, right_share], axis=1).reshape(-1)
    n = len(y)
    matrix = csr_array((shares, columns, 2 * np.arange(n + 1)), shape=(n, len(atoms)))
    return Condensed(atoms[:, None], matrix)
