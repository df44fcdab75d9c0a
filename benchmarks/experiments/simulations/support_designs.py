"""Designs with bounds, point masses or separate values: amounts, counts, shares, prices, caps."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from scipy.stats import bernoulli, beta, gamma, lognorm, norm, poisson

from benchmarks.experiments.simulations.design import Design, Possible
from benchmarks.experiments.simulations.laws import (
    Clipped,
    Continuous,
    Discrete,
    Inflated,
    Law,
    Rounded,
)

FAMILY = "support"
_N_TRAIN = 4000

_CAP = 3.0
_LOWEST, _HIGHEST = 1.0, 6.0


def _inputs(n: int, rng: np.random.Generator) -> np.ndarray:
    """Three normal inputs, one uniform on (0, 1), and one that is 0 or 1."""
    return np.column_stack([rng.normal(size=(n, 3)), rng.uniform(size=n), rng.integers(2, size=n)])


def _columns(X: np.ndarray) -> list[np.ndarray]:
    """The inputs as columns (n_rows, 1), the shape of a law's parameters."""
    return list(X.T[:, :, None])


def _zero_inflated(X: np.ndarray) -> Law:
    """An amount, or nothing at all with a probability that depends on the inputs."""
    a, b, _, u, c = _columns(X)
    amount = gamma(2.0, scale=np.exp(0.5 * b + 0.5 * u))
    return Inflated(Continuous(amount), expit(-0.3 + 1.2 * a - 0.8 * c))


def _counts(X: np.ndarray) -> Law:
    a, b, _, _, c = _columns(X)
    return Discrete(poisson(np.exp(0.8 + 0.5 * a + 0.4 * np.sin(2 * b) - 0.3 * c)))


def _binary(X: np.ndarray) -> Law:
    a, b, _, u, _ = _columns(X)
    return Discrete(bernoulli(expit(1.5 * a - 2.0 * b * u)))


def _share(X: np.ndarray) -> Continuous:
    """A Beta law with the precision 12."""
    a, b, _, _, c = _columns(X)
    mean = expit(0.6 * a - 0.4 * b + 0.5 * c)
    return Continuous(beta(12 * mean, 12 * (1 - mean)))


def _inflated_share(X: np.ndarray) -> Law:
    """None of something or all of it with a positive probability each, else a Beta law."""
    a, b, _, u, _ = _columns(X)
    return Inflated(_share(X), 0.4 * expit(-1.5 * a), 0.3 * expit(b + u), high=1.0)


def _price(X: np.ndarray, median: float) -> Continuous:
    a, b, _, _, c = _columns(X)
    return Continuous(lognorm(0.25, scale=median * np.exp(0.3 * a + 0.2 * b * c)))


def _whole_price(X: np.ndarray) -> Law:
    return Rounded(_price(X, 55.0), 1.0)


def _price_in_cents(X: np.ndarray) -> Law:
    return Rounded(_price(X, 12.0), 0.01)


def _ordered(X: np.ndarray) -> Law:
    """Grades from 1 to 6 in halves, eleven values, from a continuous score."""
    a, b, d, u, _ = _columns(X)
    score = norm(3.7 + 0.9 * a + 0.6 * b * d, 0.5 + 0.5 * u)
    return Clipped(Rounded(Continuous(score), 0.5), _LOWEST, _HIGHEST)


def _score(X: np.ndarray) -> Continuous:
    a, b, d, u, _ = _columns(X)
    return Continuous(norm(1.5 + a + 0.7 * np.sin(2 * b) + 0.3 * d, 0.5 + 0.6 * u))


def _capped(X: np.ndarray) -> Law:
    """Censored from above, as incomes of a survey are."""
    return Clipped(_score(X), high=_CAP)


def _lower_capped(X: np.ndarray) -> Law:
    """Censored from below at zero."""
    return Clipped(_score(X), low=0.0)


_GRADES = tuple(np.arange(_LOWEST, _HIGHEST + 0.5, 0.5).tolist())

DESIGNS = tuple(
    Design(name, FAMILY, _N_TRAIN, _inputs, law, possible)
    for name, law, possible in (
        ("zero-inflated", _zero_inflated, Possible(0.0, point_masses=(0.0,))),
        ("counts", _counts, Possible(0.0, step=1.0, point_masses=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0))),
        ("binary", _binary, Possible(0.0, 1.0, step=1.0, point_masses=(1.0,))),
        ("shares", _share, Possible(0.0, 1.0)),
        ("inflated-shares", _inflated_share, Possible(0.0, 1.0, point_masses=(0.0, 1.0))),
        ("whole-prices", _whole_price, Possible(0.0, step=1.0)),
        ("prices-in-cents", _price_in_cents, Possible(0.0, step=0.01)),
        ("ordered", _ordered, Possible(_LOWEST, _HIGHEST, step=0.5, point_masses=_GRADES)),
        ("capped", _capped, Possible(upper=_CAP, point_masses=(_CAP,))),
        ("lower-capped", _lower_capped, Possible(0.0, point_masses=(0.0,))),
    )
)
