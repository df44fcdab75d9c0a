"""Atoms of several outputs with covariances: a Gaussian mixture with fixed components.

Each atom carries the covariance of y around it. Only the weights of the components depend on x.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from nkcme.distributions.special_functions import ndtr, ndtri
from nkcme.errors import ModelFileError

#: Points of the quadrature behind `GaussianComponents.cdf`.
N_QUADRATURE_POINTS = 64


def need_covariances(covariances: np.ndarray) -> None:
    """Raise unless the covariances of a model file are positive definite, or zero for none."""
    try:
        usable = bool(np.all(np.isfinite(np.linalg.cholesky(covariances.astype(np.float64)))))
    except np.linalg.LinAlgError:
        usable = not np.any(covariances)
    if not usable:
        raise ModelFileError("the covariances of this model's atoms are not positive definite")


class GaussianComponents:
    """Gaussians with the means ``atoms`` (m, d) and ``covariances`` (m, d, d)."""

    def __init__(self, atoms: np.ndarray, covariances: np.ndarray):
        self.atoms = atoms
        self.covariances = covariances
        self.roots = np.linalg.cholesky(covariances)

    def logpdf(self, y: np.ndarray) -> np.ndarray:
        """The log density of each component at points (..., d): (..., m)."""
        scores = _solve_lower(self.roots, y[..., None, :] - self.atoms)
        d = self.atoms.shape[1]
        log_volume = np.sum(np.log(np.diagonal(self.roots, axis1=1, axis2=2)), axis=1)
        squares = np.sum(np.square(scores), axis=-1)
        return -0.5 * squares - log_volume - 0.5 * d * np.log(2 * np.pi)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """The probability of each component below points (..., d) in every output: (..., m).

        Genz's separation of variables: one output after the other, given the previous ones at
        quantiles that are the coordinates of `N_QUADRATURE_POINTS` points of the unit cube. The
        error of one component is about 1e-3 for two outputs and 1e-2 for more; a mixture of many
        components is more accurate.
        """
        off = y[..., None, :] - self.atoms
        last = off.shape[-1] - 1
        levels = _cube_points(last)
        probability = np.ones((*off.shape[:-1], N_QUADRATURE_POINTS))
        scores: list[np.ndarray] = []
        for j in range(last + 1):
            root = self.roots[:, j, :, None]
            room = off[..., j, None] - sum(root[:, k] * score for k, score in enumerate(scores))
            below = ndtr(room / root[:, j])
            probability *= below
            if j < last:
                scores.append(ndtri(np.maximum(levels[:, j] * below, 1e-300)))
        return probability.mean(axis=-1)

    def transform(self, component: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Samples (..., d) of the given components (...), from standard normal noise (..., d)."""
        return self.atoms[component] + np.einsum("...ij,...j->...i", self.roots[component], noise)


def _solve_lower(roots: np.ndarray, off: np.ndarray) -> np.ndarray:
    """root_a^-1 off_a (..., m, d) by forward substitution, in d steps for all components."""
    scores: list[np.ndarray] = []
    for j in range(off.shape[-1]):
        before = sum(roots[:, j, k] * score for k, score in enumerate(scores))
        scores.append((off[..., j] - before) / roots[:, j, j])
    return np.stack(scores, axis=-1)


@cache
def _cube_points(d: int) -> np.ndarray:
    """Evenly spread points (N_QUADRATURE_POINTS, d) of the open unit cube."""
    n = N_QUADRATURE_POINTS
    if d == 1:
        return (np.arange(n)[:, None] + 0.5) / n
    from scipy.stats import qmc

    return qmc.Sobol(d, rng=np.random.default_rng(0)).random(n)
