"""Mixtures of Gaussians with diagonal covariances, in closed form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nkcme.distributions.checks import as_rows
from nkcme.distributions.gaussian_mixture_mode import highest_mode
from nkcme.distributions.location_scale import LocationScale
from nkcme.distributions.piecewise import choose
from nkcme.distributions.root_finding import bracketed_newton
from nkcme.distributions.special_functions import erf, logsumexp, ndtr, ndtri
from nkcme.errors import NkcmeError

#: The probability beyond ``ppf(0)`` and ``ppf(1)``, which are finite as those of an `Embedding`.
TAIL = 1e-12

#: Bounds on the log standard deviations that networks predict, in units of standardised y. Where
#: targets repeat, the likelihood is unbounded: without a bound a component would shrink onto them.
LOG_STD = (-9.0, 6.0)

_LOG_ROOT_TWO_PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True, eq=False, repr=False)
class GaussianMixture(LocationScale):
    """A mixture sum_k w_k N(m_k, diag(s_k^2)) for each row, as mixture density networks predict it.

    Parameters
    ----------
    log_weights : array_like of shape (n_rows, K)
        Logarithms of the weights. They need not be normalised, so a network's logits are valid;
        -inf is a weight of zero.
    means, stds : array_like of shape (n_rows, K, d), or (n_rows, K) for one output
        Means and standard deviations of the components, in standard units z.
    location, scale : float or array_like of shape (d,) or (n_rows, d)
        The units: y = location + scale z.

    Notes
    -----
    Every method is exact up to rounding. `logpdf` does not underflow. `ppf` inverts `cdf` by
    Newton's method within a bracket. `mode` climbs from the mean of each component and returns the
    highest maximum found. `crps` is the closed form of Grimit et al. (2006).

    Examples
    --------
    >>> from nkcme.distributions.gaussian_mixture import GaussianMixture
    >>> dist = GaussianMixture([[0.0, 0.0]], means=[[-1.0, 1.0]], stds=[[0.5, 0.5]])
    >>> dist.mean(), dist.var()
    (array([0.]), array([1.25]))
    """

    log_weights: np.ndarray
    means: np.ndarray
    stds: np.ndarray
    location: Any = 0.0
    scale: Any = 1.0

    def __post_init__(self) -> None:
        log_weights, means, stds = (
            np.asarray(a, np.float64) for a in (self.log_weights, self.means, self.stds)
        )
        if means.ndim == stds.ndim == 2:
            means, stds = means[..., None], stds[..., None]
        if means.ndim != 3 or stds.shape != means.shape or log_weights.shape != means.shape[:2]:
            raise NkcmeError(
                "expected log_weights (n_rows, K), means and stds (n_rows, K, d); got "
                f"{np.shape(self.log_weights)}, {np.shape(self.means)} and {np.shape(self.stds)}"
            )
        if 0 in means.shape[1:]:
            raise NkcmeError(f"a mixture needs a component and an output; got means {means.shape}")
        if not np.all(np.isfinite(means)):
            raise NkcmeError("the means must be finite; got NaN or infinite ones")
        if not np.all((stds > 0) & (stds < np.inf)):
            bad = stds[~((stds > 0) & (stds < np.inf))][0]
            raise NkcmeError(f"the standard deviations must be positive numbers; got {bad}")
        if not np.all(np.isfinite(log_weights.max(axis=1))):
            raise NkcmeError("each row needs a finite log weight, and none that is NaN or +inf")
        for name, value in (("log_weights", log_weights), ("means", means), ("stds", stds)):
            object.__setattr__(self, name, value)
        self._check_units()

    @property
    def n_rows(self) -> int:
        """The number of distributions."""
        return self.means.shape[0]

    @property
    def n_components(self) -> int:
        """The number K of components."""
        return self.means.shape[1]

    @property
    def n_outputs(self) -> int:
        """The dimension d of y."""
        return self.means.shape[2]

    @cached_property
    def weights(self) -> np.ndarray:
        """The weights (n_rows, K) of the components, which sum to one."""
        return np.exp(self._log_weights)

    @cached_property
    def _log_weights(self) -> np.ndarray:
        return self.log_weights - logsumexp(self.log_weights)[:, None]

    def __getitem__(self, rows: Any) -> GaussianMixture:
        rows = as_rows(rows)
        return replace(
            self,
            log_weights=self.log_weights[rows],
            means=self.means[rows],
            stds=self.stds[rows],
            **self._units_of(rows),
        )

    def _details(self) -> str:
        return f"{self.n_components} components, {super()._details()}"

    # --- density and CDF: points (n_rows or 1, m, d) -> (n_rows, m) -------------------------------

    def _pdf(self, y: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # units of 1e-300 and narrow components
            return np.exp(self._logpdf(y))

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        return self._in_blocks(lambda e, z: e.standard_logpdf(z), y) - self._log_volume()

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return self._in_blocks(lambda e, z: e._standard_cdf(z), y)

    def _in_blocks(self, f: Any, y: np.ndarray) -> np.ndarray:
        numbers = 4 * self.n_components * self.n_outputs
        return self._map_points(f, y, numbers_per_point=numbers)

    def log_components(self, z: np.ndarray) -> np.ndarray:
        """log w_k + log N(z; m_k, s_k^2) at points in standard units: (n_rows, m, K)."""
        with np.errstate(over="ignore"):  # beyond 1e154 deviations the density is zero
            square = np.square((z[:, :, None] - self.means[:, None]) / self.stds[:, None])
        peak = self._log_weights - np.sum(np.log(self.stds) + _LOG_ROOT_TWO_PI, axis=2)
        return peak[:, None] - 0.5 * square.sum(axis=3)

    def standard_logpdf(self, z: np.ndarray) -> np.ndarray:
        """The log density of z at points in standard units: (n_rows, m)."""
        parts = self.log_components(z)
        highest = parts.max(axis=2, keepdims=True)
        highest[np.isneginf(highest)] = 0.0
        with np.errstate(divide="ignore"):
            return np.log(np.exp(parts - highest).sum(axis=2)) + highest[..., 0]

    def _standard_cdf(self, z: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            below = ndtr((z[:, :, None] - self.means[:, None]) / self.stds[:, None]).prod(axis=3)
        return np.minimum(np.sum(self.weights[:, None] * below, axis=2), 1.0)

    # --- quantiles, moments, samples and scores ---------------------------------------------------

    def _standard_ppf(self, q: np.ndarray) -> np.ndarray:
        numbers = 8 * len(q) * self.n_components
        return self._map_rows(lambda e: e._quantiles(q), numbers_per_row=numbers)

    def _quantiles(self, q: np.ndarray) -> np.ndarray:
        levels = np.clip(q, TAIL, 1.0 - TAIL)
        upper = levels > 0.5
        sign = np.where(upper, -1.0, 1.0)  # the upper half by its upper tail, to keep its digits
        tail = np.where(upper, 1.0 - levels, levels)
        means, stds = self.means[..., 0], self.stds[..., 0]

        def evaluate(z: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            r, k = np.nonzero(active)
            with np.errstate(over="ignore"):
                u = (z[active][:, None] - means[r]) / stds[r]
            mass = np.sum(self.weights[r] * ndtr(sign[k, None] * u), axis=1)
            # Newton's step for the logarithm of the tail, which is nearly a parabola where the
            # tail itself is flat.
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                density = np.exp(-0.5 * u * u - _LOG_ROOT_TWO_PI) / stds[r]
                slope = np.sum(self.weights[r] * density, axis=1)
                newton = z[active] - sign[k] * np.log(mass / tail[k]) * mass / slope
            errors, steps = np.zeros(z.shape), np.zeros(z.shape)
            errors[active], steps[active] = sign[k] * (mass - tail[k]), newton
            return errors, steps

        # A mixture's quantile lies between those of its components.
        each = self.means + self.stds * ndtri(levels)  # (n_rows, K, len(q))
        present = (self.weights > 0)[..., None]
        low = np.where(present, each, np.inf).min(axis=1)
        high = np.where(present, each, -np.inf).max(axis=1)
        start = np.clip(np.sum(self.weights[..., None] * each, axis=1), low, high)
        return bracketed_newton(evaluate, start, low, high, tolerance=1e-13 * tail)

    def _standard_mean(self) -> np.ndarray:
        return np.sum(self.weights[..., None] * self.means, axis=1)

    def _standard_std(self) -> np.ndarray:
        parts = np.stack([self.means - self._standard_mean()[:, None], self.stds])
        parts[:, self.weights == 0] = 0.0
        largest = np.abs(parts).max(axis=(0, 2))  # divided by first, so that no square overflows
        squares = np.square(parts / largest[:, None]).sum(axis=0)
        return largest * np.sqrt(np.sum(self.weights[..., None] * squares, axis=1))

    def _standard_mode(self) -> np.ndarray:
        numbers = 8 * self.n_outputs * self.n_components * (self.n_components + self.n_outputs)
        return self._map_rows(highest_mode, numbers_per_row=numbers)

    def _standard_rvs(self, size: int, rng: np.random.RandomState) -> np.ndarray:
        uniform = rng.uniform(size=(self.n_rows, size))
        normal = rng.standard_normal((self.n_rows, size, self.n_outputs))
        numbers = 4 * (self.n_components + size * self.n_outputs)
        return self._map_rows(lambda e, *a: e._draw(*a), uniform, normal, numbers_per_row=numbers)

    def _draw(self, uniform: np.ndarray, normal: np.ndarray) -> np.ndarray:
        k = choose(self.weights, uniform)[..., None]
        means, stds = (np.take_along_axis(a, k, axis=1) for a in (self.means, self.stds))
        return means + stds * normal

    def _standard_crps(self, z: np.ndarray) -> np.ndarray:
        numbers = 6 * self.n_components**2
        return self._map_rows(lambda e, v: e._closed_crps(v), z, numbers_per_row=numbers)

    def _closed_crps(self, z: np.ndarray) -> np.ndarray:
        """Grimit et al. (2006): sum_k w_k A(z - m_k, s_k) - 1/2 sum_kl w_k w_l A(m_k - m_l, s_kl)
        with s_kl^2 = s_k^2 + s_l^2 and A(m, s) = E|N(m, s^2)|.

        Not scoringrules.crps_mixnorm: it is NaN where a far component has weight zero.
        """
        w, m, s = self.weights, self.means[..., 0], self.stds[..., 0]
        to_y = np.sum(w * _mean_absolute(z[:, None] - m, s), axis=1)
        spread = np.hypot(s[:, :, None], s[:, None, :])
        pairs = _mean_absolute(m[:, :, None] - m[:, None, :], spread)
        apart = np.sum(w[:, :, None] * w[:, None, :] * pairs, axis=(1, 2))
        return np.maximum(to_y - 0.5 * apart, 0.0)


def _mean_absolute(mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """E|N(mean, std^2)|."""
    with np.errstate(over="ignore"):
        t = mean / std
        return 2 * std * np.exp(-0.5 * t * t - _LOG_ROOT_TWO_PI) + mean * erf(t / np.sqrt(2))
