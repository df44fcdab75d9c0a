"""Designs with test rows where no training row is: beyond a range, in a gap, far from the mean."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from benchmarks.experiments.simulations.design import Design, Inputs
from benchmarks.experiments.simulations.laws import Continuous, Law

FAMILY = "shift"
_N_TRAIN = 3000
_N_INPUTS = 4

#: The point and the radius of the ball without training rows.
_GAP_AT, _GAP_RADIUS = (0.5, 0.5), 0.8

#: How far three inputs move, in standard deviations.
_MOVED = np.array([2.5, -2.0, 2.0, 0.0])


def _trend(X: np.ndarray) -> Law:
    """A trend that goes on beyond the range, bent by the other inputs."""
    a, b, c, d = X.T[:, :, None]
    return Continuous(norm(1.2 * a + 0.15 * a**2 + np.sin(2 * b) + 0.5 * c * d, 0.5))


def _hill(X: np.ndarray) -> Law:
    """A surface that is curved in the gap; noise that depends on an input."""
    a, b, c, d = X.T[:, :, None]
    return Continuous(norm(np.sin(1.5 * a) * np.cos(b) + 0.5 * c, 0.3 * np.exp(0.3 * d)))


def _interaction(X: np.ndarray) -> Law:
    a, b, c, d = X.T[:, :, None]
    return Continuous(norm(a - 0.5 * b + 0.4 * a * b + np.tanh(c) * d, 0.6))


def _additive(X: np.ndarray) -> Law:
    a, b, c, d = X.T[:, :, None]
    return Continuous(norm(a + 0.8 * np.tanh(b) + np.abs(c) + 0.3 * d, 0.5))


def _normal(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(n, _N_INPUTS))


def _moved(n: int, rng: np.random.Generator) -> np.ndarray:
    return _normal(n, rng) + _MOVED


def _first_input_from(low: float, high: float) -> Inputs:
    """Normal inputs but for the first, which is uniform on a range."""

    def inputs(n: int, rng: np.random.Generator) -> np.ndarray:
        X = _normal(n, rng)
        X[:, 0] = rng.uniform(low, high, size=n)
        return X

    return inputs


def _gap(inside: bool) -> Inputs:
    """Normal inputs whose first two lie within the gap, or outside of it."""

    def inputs(n: int, rng: np.random.Generator) -> np.ndarray:
        found = np.empty((0, _N_INPUTS))
        while len(found) < n:
            X = _normal(2 * n, rng)
            distance = np.hypot(*(X[:, :2] - _GAP_AT).T)
            found = np.concatenate([found, X[(distance < _GAP_RADIUS) == inside]])
        return found[:n]

    return inputs


def _correlated(sign: int) -> Inputs:
    """Normal inputs whose first two have the correlation 0.95 or -0.95."""

    def inputs(n: int, rng: np.random.Generator) -> np.ndarray:
        X = _normal(n, rng)
        X[:, 1] = sign * 0.95 * X[:, 0] + np.sqrt(1 - 0.95**2) * X[:, 1]
        return X

    return inputs


def _new_combination(n: int, rng: np.random.Generator) -> np.ndarray:
    """The first two inputs are high and low where training rows have them both high or both low."""
    X = _correlated(-1)(n, rng)
    # Near zero the two correlations do not differ.
    away = np.sign(X[:, 0]) * 0.7
    X[:, 0] += away
    X[:, 1] -= away
    return X


DESIGNS = tuple(
    Design(name, FAMILY, _N_TRAIN, inputs, law, shifted_inputs=shifted)
    for name, inputs, law, shifted in (
        ("beyond-range", _first_input_from(-2.0, 2.0), _trend, _first_input_from(2.0, 3.5)),
        ("gap", _gap(inside=False), _hill, _gap(inside=True)),
        ("new-combination", _correlated(1), _interaction, _new_combination),
        ("moved-inputs", _normal, _additive, _moved),
    )
)
