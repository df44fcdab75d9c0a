"""Tables whose rows depend on each other: groups with effects of their own, and rows in time.

Test rows are of new groups, or later than all training rows. Inputs tell groups and moments apart,
so that scores on rows that are held out at random are too good.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

#: New groups that are tested, each with a few rows; and the share of rows in time that are.
_N_TEST_GROUPS, _TEST_ROWS = 400, 3
_TEST_SHARE = 0.2

#: Steps after which an autoregressive series has forgotten its start.
_FORGOTTEN = 500


class DependentTable(NamedTuple):
    """Training and test rows; ``codes`` are the groups or the moments of the training rows."""

    X: np.ndarray
    y: np.ndarray
    codes: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class DependentDesign(NamedTuple):
    """A rule for tables of some number of groups, or of rows in time."""

    name: str
    by_time: bool
    sizes: tuple[int, ...]  # numbers of groups, or of training rows
    make: Callable[[int, np.random.Generator], DependentTable]


# --- groups -------------------------------------------------------------------------------------

#: From the group of each row, the number of groups and a generator to X and y.
GroupRule = Callable[[np.ndarray, int, np.random.Generator], tuple[np.ndarray, np.ndarray]]


def _of_groups(rule: GroupRule, mean_rows: int) -> Callable[..., DependentTable]:
    """Groups of uneven sizes to train on, and many new ones to test on."""

    def make(n_groups: int, rng: np.random.Generator) -> DependentTable:
        codes = np.repeat(np.arange(n_groups), 2 + rng.poisson(mean_rows - 2, n_groups))
        new = np.repeat(np.arange(_N_TEST_GROUPS), _TEST_ROWS)
        train, test = rule(codes, n_groups, rng), rule(new, _N_TEST_GROUPS, rng)
        return DependentTable(*train, codes, *test)

    return make


def _patients(codes: np.ndarray, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Visits: a level of each patient with heavy tails, and skewed noise."""
    age, severity = rng.uniform(20, 90, n), rng.normal(size=n)
    dose, day = rng.uniform(0, 3, len(codes)), rng.uniform(0, 30, len(codes))
    level = 0.8 * rng.standard_t(5, n) + 0.02 * age + 0.4 * severity
    y = level[codes] - np.sqrt(dose) + 0.02 * day + rng.gamma(2.0, 0.4, len(codes))
    return np.column_stack([age[codes], severity[codes], dose, day]), y


def _machines(codes: np.ndarray, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Measurements: each machine has a slope and a noise of its own."""
    year, power = rng.integers(1990, 2024, n).astype(float), rng.lognormal(1.0, 0.5, n)
    load, heat = rng.normal(size=(2, len(codes)))
    slope = 1.0 + 0.5 * rng.normal(size=n)
    noise = 0.4 * np.exp(0.4 * rng.normal(size=n))
    y = slope[codes] * load + np.tanh(heat) + 0.1 * power[codes]
    y += noise[codes] * rng.normal(size=len(codes))
    return np.column_stack([year[codes], power[codes], load, heat]), y


def _shops(codes: np.ndarray, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sales, above zero: effects multiply."""
    area, distance = rng.gamma(3.0, 50.0, n), rng.exponential(5.0, n)
    price, weekday = rng.normal(size=len(codes)), rng.integers(0, 7, len(codes)).astype(float)
    level = 3.0 + 0.002 * area - 0.03 * distance + 0.5 * rng.normal(size=n)
    log_y = level[codes] - 0.4 * price + 0.3 * (weekday > 4) + 0.35 * rng.normal(size=len(codes))
    return np.column_stack([area[codes], distance[codes], price, weekday]), np.exp(log_y)


def _sensors(codes: np.ndarray, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Readings: each sensor has an offset and a noise of its own, and a place."""
    east, north = rng.uniform(0, 10, (2, n))
    hour, wind = rng.uniform(0, 24, len(codes)), rng.exponential(1, len(codes))
    noise, offset = 0.5 * np.exp(0.3 * rng.normal(size=n)), 0.4 * rng.normal(size=n)
    y = np.sin(2 * np.pi * hour / 24) - 0.5 * wind + 0.05 * east[codes] + offset[codes]
    y += noise[codes] * rng.normal(size=len(codes))
    return np.column_stack([east[codes], north[codes], hour, wind]), y


def _schools(codes: np.ndarray, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pupils: weak levels of schools, and a slope of each."""
    size, fee = rng.lognormal(5, 0.5, n), rng.exponential(1, n)
    hours, prior = rng.gamma(2, 2, len(codes)), rng.normal(size=len(codes))
    slope = 0.6 + 0.3 * rng.normal(size=n)
    y = 0.3 * rng.normal(size=n)[codes] + slope[codes] * prior + 0.1 * np.sqrt(hours)
    y += 0.1 * fee[codes] + 0.7 * rng.standard_t(6, len(codes))
    return np.column_stack([size[codes], fee[codes], hours, prior]), y


# --- time ---------------------------------------------------------------------------------------

#: From a number of rows and a generator to X, y and the moment of each row.
TimeRule = Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray, np.ndarray]]


def _in_time(rule: TimeRule) -> Callable[..., DependentTable]:
    """Rows in time, of which the last are tested."""

    def make(n_train: int, rng: np.random.Generator) -> DependentTable:
        X, y, moment = rule(round(n_train / (1.0 - _TEST_SHARE)), rng)
        later = moment > moment[n_train - 1]
        return DependentTable(X[~later], y[~later], moment[~later], X[later], y[later])

    return make


def _autoregressive(n: int, memory: float, rng: np.random.Generator) -> np.ndarray:
    """A stationary series of variance one."""
    steps = np.sqrt(1.0 - memory**2) * rng.normal(size=n + _FORGOTTEN)
    return lfilter([1.0], [1.0, -memory], steps)[_FORGOTTEN:]


def _season(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three rows a day, with a week, and good and bad days that last."""
    day = np.arange(n) // 3
    common = _autoregressive(day[-1] + 1, 0.7, rng)[day]
    price, size = rng.normal(size=(2, n))
    y = 5.0 - price + np.abs(size) + np.sin(2 * np.pi * day / 7) + common
    weekday = (day % 7).astype(float)
    return np.column_stack([day, weekday, price, size]), y + 0.5 * rng.normal(size=n), day


def _drift(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A level that wanders slowly."""
    moment = np.arange(n)
    level = np.cumsum(0.04 * rng.normal(size=n))
    a, b = rng.normal(size=(2, n))
    y = 0.8 * a + np.tanh(2 * b) + level + 0.6 * rng.normal(size=n)
    return np.column_stack([moment, a, b]), y, moment


def _regimes(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Calm and restless times."""
    moment = np.arange(n)
    noise = 0.6 * np.exp(0.5 * _autoregressive(n, 0.95, rng))
    a, b = rng.normal(size=(2, n))
    y = a + 0.5 * b**2 + 0.5 * _autoregressive(n, 0.9, rng) + noise * rng.normal(size=n)
    return np.column_stack([moment, a, b]), y, moment


def _demand(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two rows a day, good and bad weeks, and a slow trend."""
    day = np.arange(n) // 2
    common = 0.8 * _autoregressive(day[-1] + 1, 0.85, rng)[day]
    price, size = rng.normal(size=(2, n))
    y = 3.0 + 0.4 * np.tanh(size) - 0.8 * price + 0.001 * day + common
    return np.column_stack([day, price, size]), y + 0.6 * rng.normal(size=n), day


def _wander(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A level that wanders and slowly returns, and noise that depends on an input."""
    moment, level = np.arange(n), 1.5 * _autoregressive(n, 0.997, rng)
    a, b = rng.normal(size=(2, n))
    y = a * np.tanh(b) + level + 0.5 * np.exp(0.3 * b) * rng.normal(size=n)
    return np.column_stack([moment, a, b]), y, moment


_GROUPS, _ROWS = (10, 30, 100), (400, 1200)

DESIGNS = (
    DependentDesign("patients", False, _GROUPS, _of_groups(_patients, 8)),
    DependentDesign("machines", False, _GROUPS, _of_groups(_machines, 12)),
    DependentDesign("shops", False, _GROUPS, _of_groups(_shops, 10)),
    DependentDesign("season", True, _ROWS, _in_time(_season)),
    DependentDesign("drift", True, _ROWS, _in_time(_drift)),
    DependentDesign("regimes", True, _ROWS, _in_time(_regimes)),
)

#: Designs on which variants are compared, so that the choice does not see those above.
TRIAL_DESIGNS = (
    DependentDesign("sensors", False, _GROUPS[:2], _of_groups(_sensors, 12)),
    DependentDesign("schools", False, _GROUPS[:2], _of_groups(_schools, 10)),
    DependentDesign("demand", True, _ROWS, _in_time(_demand)),
    DependentDesign("wander", True, _ROWS, _in_time(_wander)),
)
