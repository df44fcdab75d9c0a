"""Mixtures of Gaussians, which mixture density networks predict: everything in closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf, logsumexp, ndtr, ndtri
from sklearn.utils import check_random_state

from nkcme.distributions.base import (
    MAX_MEMORY,
    Standardised,
    as_rows,
    by_points,
    checked_size,
)
from nkcme.distributions.piecewise import choose
from nkcme.errors import NkcmeError

#: The tail beyond ``ppf(0)`` and ``ppf(1)``, which are finite as an `Embedding`'s are.
TAIL = 1e-12

_LOG_ROOT_TWO_PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True, eq=False)
class GaussianMixture(Standardised):
    """sum_k w_k N(m_k, diag(s_k^2)) for a batch of rows.

    ``log_weights`` (n_rows, K) need not be normalised: a network's logits will do, and -inf is a
    weight of zero. ``means`` and ``stds`` are (n_rows, K, d), or (n_rows, K) for one output, in
    standard units z, and y = location + scale z, where location and scale are numbers, or arrays
    (d,) or (n_rows, d).
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
            raise NkcmeError("each row needs a log weight that is a number, and none NaN or +inf")
        for name, value in (("log_weights", log_weights), ("means", means), ("stds", stds)):
            object.__setattr__(self, name, value)
        self._settle_units()

    @property
    def n_rows(self) -> int:
        return self.means.shape[0]

    @property
    def n_components(self) -> int:
        return self.means.shape[1]

    @property
    def n_outputs(self) -> int:
        return self.means.shape[2]

    @cached_property
    def weights(self) -> np.ndarray:
        """The weights (n_rows, K) of the components; they sum to one."""
        return np.exp(self._log_weights)

    @cached_property
    def _log_weights(self) -> np.ndarray:
        return self.log_weights - logsumexp(self.log_weights, axis=1, keepdims=True)

    def __getitem__(self, rows: Any) -> GaussianMixture:
        rows = as_rows(rows)
        return replace(
            self,
            log_weights=self.log_weights[rows],
            means=self.means[rows],
            stds=self.stds[rows],
            **self._units_of(rows),
        )

    def __repr__(self) -> str:
        return (
            f"GaussianMixture({self.n_rows} rows, {self.n_components} components, "
            f"{self.n_outputs} outputs)"
        )

    # --- the distribution -------------------------------------------------------------------

    def logpdf(self, y: ArrayLike, *, grid: bool = False) -> np.ndarray:
        """The logarithm of the density, also where the density itself is too small for a float;
        ``y`` as in `pdf`."""
        return self._at(self._logpdf, y, grid)

    def mean(self) -> np.ndarray:
        """sum_k w_k m_k."""
        return self._from_standard(self._mean)

    def var(self) -> np.ndarray:
        """The variance between the components and within them, output by output."""
        with np.errstate(over="ignore"):  # units of 1e200, say, have an infinite square
            return np.square(self.std())

    def std(self) -> np.ndarray:
        """The root of `var`, output by output."""
        parts = np.stack([self.means - self._mean[:, None], self.stds])
        parts[:, self.weights == 0] = 0.0
        largest = np.abs(parts).max(axis=(0, 2))  # divided by first, so that no square overflows
        squares = np.square(parts / largest[:, None]).sum(axis=0)
        root = largest * np.sqrt(np.sum(self.weights[..., None] * squares, axis=1))
        return self._squeeze(root * self.scale)

    def mode(self) -> np.ndarray:
        """The y of the highest density: from each component's mean uphill, and then the best."""
        per_row = self.n_outputs * self.n_components * (self.n_components + self.n_outputs)
        z = self._in_blocks(lambda e: e._standard_mode(), at_once=MAX_MEMORY // (64 * per_row))
        return self._from_standard(z)

    def rvs(self, size: int = 1, random_state: Any = None) -> np.ndarray:
        """Independent draws (size, n_rows[, d])."""
        rng = check_random_state(random_state)
        uniform = rng.uniform(size=(self.n_rows, checked_size(size)))
        normal = rng.standard_normal((self.n_rows, size, self.n_outputs))
        per_row = 4 * (self.n_components + size * self.n_outputs)
        y = self._in_blocks(
            lambda e, u, n: e._draw(u, n), uniform, normal, at_once=MAX_MEMORY // (8 * per_row)
        )
        return np.moveaxis(y, 1, 0)

    def crps(self, y: ArrayLike) -> np.ndarray:
        """The integral of (F(t) - 1{t >= y})^2 dt in closed form; one ``y`` a row.

        Grimit et al. (2006): sum_k w_k A(y - m_k, s_k) - 1/2 sum_kl w_k w_l A(m_k - m_l, s_kl) with
        s_kl^2 = s_k^2 + s_l^2 and A(m, s) = E|N(m, s^2)|.
        """
        with np.errstate(over="ignore"):  # a y that is infinitely far in units of z
            z = (self._one_y_a_row(y)[:, None] - self.location) / self.scale
        per_row = 6 * self.n_components**2
        scores = self._in_blocks(
            lambda e, v: e._standard_crps(v), z, at_once=MAX_MEMORY // (8 * per_row)
        )
        return (scores * self.scale)[:, 0]

    # --- the mathematics, in standard units: points (n_rows or 1, m, d) -> (n_rows, m) -----------

    def _pdf(self, y: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):  # units of 1e-300 and narrower components than one
            return np.exp(self._logpdf(y))

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        volume = np.log(self.scale).sum(axis=1)[:, None]
        return self._by_points(lambda e, z: e._standard_logpdf(z), y) - volume

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return self._by_points(lambda e, z: e._standard_cdf(z), y)

    def _ppf(self, q: np.ndarray) -> np.ndarray:
        per_row = 8 * len(q) * self.n_components
        z = self._in_blocks(lambda e: e._standard_ppf(q), at_once=MAX_MEMORY // (8 * per_row))
        return self._from_standard(z[..., None])

    @property
    def _mean(self) -> np.ndarray:
        return np.sum(self.weights[..., None] * self.means, axis=1)

    def _log_components(self, z: np.ndarray) -> np.ndarray:
        """log w_k + log N(z; m_k, s_k^2), (n_rows, m, K)."""
        with np.errstate(over="ignore"):  # beyond 1e154 deviations the density is zero
            square = np.square((z[:, :, None] - self.means[:, None]) / self.stds[:, None])
        peak = self._log_weights - np.sum(np.log(self.stds) + _LOG_ROOT_TWO_PI, axis=2)
        return peak[:, None] - 0.5 * square.sum(axis=3)

    def _standard_logpdf(self, z: np.ndarray) -> np.ndarray:
        parts = self._log_components(z)
        highest = parts.max(axis=2, keepdims=True)
        highest[np.isneginf(highest)] = 0.0
        with np.errstate(divide="ignore"):
            return np.log(np.exp(parts - highest).sum(axis=2)) + highest[..., 0]

    def _standard_cdf(self, z: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            below = ndtr((z[:, :, None] - self.means[:, None]) / self.stds[:, None]).prod(axis=3)
        return np.minimum(np.sum(self.weights[:, None] * below, axis=2), 1.0)

    def _standard_ppf(self, q: np.ndarray) -> np.ndarray:
        """By Newton's steps within a bracket that shrinks, halved where a step would leave it and
        at every third step in any case, so that the end is certain."""
        levels = np.clip(q, TAIL, 1.0 - TAIL)
        sign = np.where(levels > 0.5, -1.0, 1.0)  # the upper half from above: tails keep digits
        tail = np.where(levels > 0.5, 1.0 - levels, levels)
        # A mixture's quantile lies between those of its components.
        each = self.means + self.stds * ndtri(levels)  # (n_rows, K, len(q))
        there = (self.weights > 0)[..., None]
        low = np.where(there, each, np.inf).min(axis=1).ravel()
        high = np.where(there, each, -np.inf).max(axis=1).ravel()
        z = np.clip(np.sum(self.weights[..., None] * each, axis=1).ravel(), low, high)
        row, level = (i.ravel() for i in np.indices((self.n_rows, len(q))))
        active, step = np.arange(len(z)), 0
        while len(active):
            at, r, k = z[active], row[active], level[active]
            with np.errstate(over="ignore"):
                u = (at[:, None] - self.means[r, :, 0]) / self.stds[r, :, 0]
            mass = np.sum(self.weights[r] * ndtr(sign[k, None] * u), axis=1)
            error = sign[k] * (mass - tail[k])
            low[active] = np.where(error <= 0, at, low[active])
            high[active] = np.where(error >= 0, at, high[active])
            lo, hi = low[active], high[active]
            middle = 0.5 * lo + 0.5 * hi
            new = middle
            if step % 3 < 2:
                # Of the tail's logarithm, which is nearly a parabola where the tail itself is flat.
                with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                    density = np.exp(-0.5 * u * u - _LOG_ROOT_TWO_PI) / self.stds[r, :, 0]
                    slope = np.sum(self.weights[r] * density, axis=1)
                    newton = at - sign[k] * np.log(mass / tail[k]) * mass / slope
                new = np.where((newton > lo) & (newton < hi), newton, middle)
            going = (np.abs(error) > 1e-13 * tail[k]) & (lo < middle) & (middle < hi)
            active, step = active[going], step + 1
            z[active] = new[going]
        values = z.reshape(self.n_rows, len(q))
        order = np.argsort(q)
        values[:, order] = np.maximum.accumulate(values[:, order], axis=1)  # whatever rounding did
        return values

    def _standard_mode(self) -> np.ndarray:
        # The mean shift of a Gaussian mixture is its EM step: the density never falls.
        z = self.means
        precision = np.square(self.stds.min(axis=1, keepdims=True) / self.stds)  # relative, (n,K,d)
        for _ in range(20):
            pull = self._shares(z)[..., None] * precision[:, None]  # (n_rows, starts, K, d)
            with np.errstate(invalid="ignore"):  # where precisions differ by more than floats do
                shifted = np.sum(pull * self.means[:, None], axis=2) / pull.sum(axis=2)
            z = np.where(np.isfinite(shifted), shifted, z)
        density = self._standard_logpdf(z)
        best = density.argmax(axis=1)[:, None]
        z = np.take_along_axis(z, best[..., None], axis=1)
        density = np.take_along_axis(density, best, axis=1)
        for _ in range(10):
            new = z + self._newton_step(z)
            higher = self._standard_logpdf(new)
            better = higher > density
            z, density = np.where(better[..., None], new, z), np.where(better, higher, density)
            if not better.any():
                break
        return z[:, 0]

    def _newton_step(self, z: np.ndarray) -> np.ndarray:
        """Newton's step for the log density at one point a row, (n_rows, 1, d); zero where the
        Hessian is singular."""
        share = self._shares(z)[:, 0]
        # In units of the narrowest component, so that stds of 1e-6 do not square to nothing.
        unit = self.stds.min(axis=1)
        relative = self.stds / unit[:, None]
        with np.errstate(over="ignore"):
            score = (self.means - z) / self.stds / relative  # (n_rows, K, d)
        score[share == 0] = 0.0
        gradient = np.einsum("nk,nkd->nd", share, score)
        hessian = np.einsum("nk,nkd,nke->nde", share, score, score)
        hessian -= gradient[:, :, None] * gradient[:, None, :]
        diagonal = np.einsum("nk,nkd->nd", share, np.square(1.0 / relative))
        hessian -= diagonal[:, :, None] * np.eye(self.n_outputs)
        step = np.linalg.pinv(hessian, hermitian=True) @ -gradient[..., None]
        return (step[..., 0] * unit)[:, None]

    def _shares(self, z: np.ndarray) -> np.ndarray:
        """The probability (n_rows, m, K) that a value at z came from each component."""
        parts = self._log_components(z)
        with np.errstate(invalid="ignore"):  # where no component reaches, the shares are NaN
            shares = np.exp(parts - parts.max(axis=2, keepdims=True))
        return shares / shares.sum(axis=2, keepdims=True)

    def _draw(self, uniform: np.ndarray, normal: np.ndarray) -> np.ndarray:
        k = choose(self.weights, uniform)[..., None]
        means, stds = (np.take_along_axis(a, k, axis=1) for a in (self.means, self.stds))
        return self._from_standard(means + stds * normal)

    def _standard_crps(self, z: np.ndarray) -> np.ndarray:
        w, m, s = self.weights, self.means[..., 0], self.stds[..., 0]
        to_y = np.sum(w * _mean_absolute(z - m, s), axis=1)
        spread = np.hypot(s[:, :, None], s[:, None, :])
        pairs = _mean_absolute(m[:, :, None] - m[:, None, :], spread)
        apart = np.sum(w[:, :, None] * w[:, None, :] * pairs, axis=(1, 2))
        return np.maximum(to_y - 0.5 * apart, 0.0)[:, None]

    # --- memory ------------------------------------------------------------------------------

    def _by_points(
        self, f: Callable[[GaussianMixture, np.ndarray], np.ndarray], y: np.ndarray
    ) -> np.ndarray:
        """f at points (n_rows or 1, m, d) of y, so many points and rows at once as memory has
        room for."""
        per_point = 4 * self.n_components * self.n_outputs

        def at(points: np.ndarray) -> np.ndarray:
            with np.errstate(over="ignore"):  # a y that is infinitely far in units of z
                z = self._to_standard(points)
            at_once = MAX_MEMORY // (8 * per_point * max(z.shape[1], 1))
            if len(z) == 1:
                return self._in_blocks(lambda e: f(e, z), at_once=at_once)
            return self._in_blocks(f, z, at_once=at_once)

        return by_points(at, y, at_once=MAX_MEMORY // (8 * per_point))


def _mean_absolute(mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """E|N(mean, std^2)|."""
    with np.errstate(over="ignore"):
        t = mean / std
        return 2 * std * np.exp(-0.5 * t * t - _LOG_ROOT_TWO_PI) + mean * erf(t / np.sqrt(2))
