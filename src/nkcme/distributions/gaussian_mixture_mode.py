"""The highest mode of Gaussian mixtures: mean shift from every component, then Newton's method."""

from __future__ import annotations

from typing import Protocol

import numpy as np

_MEAN_SHIFT_STEPS = 20
_NEWTON_STEPS = 10


class Mixture(Protocol):
    """The components (n_rows, K, d) of a `GaussianMixture`, and its log density at points."""

    means: np.ndarray
    stds: np.ndarray

    def log_components(self, z: np.ndarray) -> np.ndarray: ...

    def standard_logpdf(self, z: np.ndarray) -> np.ndarray: ...


def highest_mode(mixture: Mixture) -> np.ndarray:
    """The point (n_rows, d) of the highest density, in standard units."""
    z = _shifted(mixture)
    density = mixture.standard_logpdf(z)
    best = density.argmax(axis=1)[:, None]
    z = np.take_along_axis(z, best[..., None], axis=1)
    density = np.take_along_axis(density, best, axis=1)
    for _ in range(_NEWTON_STEPS):
        new = z + _newton_step(mixture, z)
        higher = mixture.standard_logpdf(new)
        better = higher > density
        z, density = np.where(better[..., None], new, z), np.where(better, higher, density)
        if not better.any():
            break
    return z[:, 0]


def _shifted(mixture: Mixture) -> np.ndarray:
    """The means (n_rows, K, d) after steps of mean shift, which never lower the density."""
    z, stds = mixture.means, mixture.stds
    precision = np.square(stds.min(axis=1, keepdims=True) / stds)  # relative, (n_rows, K, d)
    for _ in range(_MEAN_SHIFT_STEPS):
        pull = _responsibilities(mixture, z)[..., None] * precision[:, None]
        with np.errstate(invalid="ignore"):  # precisions may differ by more than floats can hold
            shifted = np.sum(pull * mixture.means[:, None], axis=2) / pull.sum(axis=2)
        z = np.where(np.isfinite(shifted), shifted, z)
    return z


def _newton_step(mixture: Mixture, z: np.ndarray) -> np.ndarray:
    """Newton's step for the log density at one point per row, (n_rows, 1, d); zero where the
    Hessian is singular."""
    means, stds = mixture.means, mixture.stds
    share = _responsibilities(mixture, z)[:, 0]
    # In units of the narrowest component: the square of a std of 1e-200 would be zero.
    unit = stds.min(axis=1)
    relative = stds / unit[:, None]
    with np.errstate(over="ignore"):
        score = (means - z) / stds / relative  # (n_rows, K, d)
    score[share == 0] = 0.0
    gradient = np.einsum("nk,nkd->nd", share, score)
    hessian = np.einsum("nk,nkd,nke->nde", share, score, score)
    hessian -= gradient[:, :, None] * gradient[:, None, :]
    diagonal = np.einsum("nk,nkd->nd", share, np.square(1.0 / relative))
    hessian -= diagonal[:, :, None] * np.eye(means.shape[2])
    step = np.linalg.pinv(hessian, hermitian=True) @ -gradient[..., None]
    return (step[..., 0] * unit)[:, None]


def _responsibilities(mixture: Mixture, z: np.ndarray) -> np.ndarray:
    """The probability (n_rows, m, K) that a value at z belongs to each component."""
    parts = mixture.log_components(z)
    with np.errstate(invalid="ignore"):  # NaN where no component has a density
        shares = np.exp(parts - parts.max(axis=2, keepdims=True))
    return shares / shares.sum(axis=2, keepdims=True)
