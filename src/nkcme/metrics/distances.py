"""Distances between the empirical distributions of two sets of draws."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nkcme.metrics.checks import FloatArray, as_draws, as_joint_draws, need_positive


def wasserstein1(samples: npt.ArrayLike, truth: npt.ArrayLike) -> FloatArray:
    """Wasserstein-1 distance of two empirical measures for each row.

    W1 = ∫_0^1 |F^-1(u) - G^-1(u)| du, exactly.

    Parameters
    ----------
    samples : array_like of shape (n_draws, n_rows)
        Draws of the predicted distributions.
    truth : array_like of shape (m_draws, n_rows)
        Draws of the true distributions; their number may differ.

    Returns
    -------
    ndarray of shape (n_rows,)

    Raises
    ------
    NkcmeError
        If the numbers of rows differ, or if a draw is NaN or infinite.

    Examples
    --------
    >>> from nkcme import metrics
    >>> metrics.wasserstein1([[0.0], [1.0]], [[2.0], [3.0]])
    array([2.])
    """
    a = np.sort(as_draws("samples", samples), axis=0)
    b = np.sort(as_draws("truth", truth, n_rows=a.shape[1]), axis=0)
    n, m = len(a), len(b)
    # With n and m equally weighted draws both quantile functions are steps, which jump at multiples
    # of 1/n and 1/m in every row. In units of 1/(n m), equal fractions are equal integers.
    jumps = np.union1d(np.arange(n + 1) * m, np.arange(m + 1) * n)
    start, lengths = jumps[:-1], np.diff(jumps) / (n * m)
    return lengths @ np.abs(a[start // m] - b[start // n])


def was1(samples: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Mean over rows of the Wasserstein-1 distance, the paper's score on toy data.

    Parameters
    ----------
    samples, truth : array_like
        As in `wasserstein1`.

    Returns
    -------
    float
    """
    return float(wasserstein1(samples, truth).mean())


def sliced_wasserstein1(
    samples: npt.ArrayLike, truth: npt.ArrayLike, n_directions: int = 100
) -> FloatArray:
    """Sliced Wasserstein-1 distance of two empirical measures of d outputs, for each row.

    The mean of the Wasserstein-1 distance of the draws projected on directions of the unit sphere.
    The directions are the same in every call, and evenly spaced for two outputs.

    Parameters
    ----------
    samples : array_like of shape (n_draws, n_rows, d)
        Draws of the predicted distributions.
    truth : array_like of shape (m_draws, n_rows, d)
        Draws of the true distributions.
    n_directions : int
        The number of directions.

    Returns
    -------
    ndarray of shape (n_rows,)

    Raises
    ------
    NkcmeError
        If the numbers of rows or outputs differ, or if a draw is NaN or infinite.
    """
    a = as_joint_draws("samples", samples)
    b = as_joint_draws("truth", truth, like=a)
    directions = _directions(a.shape[2], need_positive("n_directions", n_directions))
    return np.mean([wasserstein1(a @ v, b @ v) for v in directions], axis=0)


def _directions(d: int, n: int) -> FloatArray:
    """Unit vectors (n, d). Opposite ones give the same, so two outputs need half a turn."""
    if d == 2:
        angle = np.pi * (np.arange(n) + 0.5) / n
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    normal = np.random.default_rng(0).standard_normal((n, d))
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)
