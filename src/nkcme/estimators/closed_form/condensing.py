"""Many training targets as few atoms: what an embedding on all of them comes to on those.

A classical embedding puts its weights beta(x) on the n training targets. Each target is replaced by
its shares of a few atoms, phi(y_i) ~ sum_a B_ia phi(eta_a), and the weights of the atoms are
beta(x)' B. What a model keeps, and what it computes for a new x, then does not grow with n.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.cluster import KMeans


class Condensed(NamedTuple):
    """Atoms (m, d), and the shares (n, m) that each target has of them, summing to one in a row."""

    atoms: np.ndarray
    shares: csr_array


def condense(y: np.ndarray, weight: np.ndarray, n_atoms: int, seed: int) -> Condensed:
    """Targets (n, d) on at most ``n_atoms`` atoms (for one output at least two are needed).

    Up to so many distinct targets are the atoms themselves, and nothing is lost. Beyond, for one
    output, half the atoms lie evenly over the range of y and half at its quantiles, so that an
    outlier does not leave the rest with too few; a target is split between its two neighbours so
    that its mean stays where it is. That is linear interpolation of y -> k(y, .), whose error for a
    Gaussian of bandwidth sigma is at most (gap / sigma)^2 / 8 of the kernel's peak. For several
    outputs atoms are cluster centres, and a target goes to the nearest.
    """
    y = np.asarray(y, np.float64)
    one = y.shape[1] == 1
    # One column sorts far faster as numbers than as rows.
    distinct, place = np.unique(y[:, 0] if one else y, axis=0, return_inverse=True)
    if len(distinct) <= n_atoms:
        return _assigned(distinct.reshape(-1, y.shape[1]), place.reshape(-1))
    if one:
        return _interpolated(y[:, 0], weight, n_atoms)
    clusters = KMeans(n_atoms, n_init=1, max_iter=50, random_state=seed)
    clusters.fit(y, sample_weight=weight)
    return _assigned(clusters.cluster_centers_, clusters.labels_)


def _assigned(atoms: np.ndarray, place: np.ndarray) -> Condensed:
    n = len(place)
    shares = csr_array((np.ones(n), place, np.arange(n + 1)), shape=(n, len(atoms)))
    return Condensed(atoms, shares)


def _interpolated(y: np.ndarray, weight: np.ndarray, n_atoms: int) -> Condensed:
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
