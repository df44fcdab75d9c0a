"""Designs whose Y lies on one of several sharp curves or surfaces that cross each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.experiments.simulations.design import Design, Inputs
from benchmarks.experiments.simulations.laws import Continuous, Law
from nkcme.datasets.mixture import Gaussian, Mixture

FAMILY = "branches"
_N_TRAIN = 6000

#: From inputs (columns) to the means of the branches, and to their log weights.
_Branches = Callable[..., Sequence[np.ndarray]]


def _uniform(n_inputs: int) -> Inputs:
    """Inputs that are uniform on (-2, 2)."""
    return lambda n, rng: rng.uniform(-2.0, 2.0, size=(n, n_inputs))


def _lines(x: np.ndarray) -> Sequence[np.ndarray]:
    return 0.8 * x, -0.8 * x, 0.5 * np.sin(2.5 * x)


def _waves(x: np.ndarray) -> Sequence[np.ndarray]:
    return np.sin(1.5 * x), np.cos(2 * x), 0.4 * x, -0.3 * x**2 + 0.4


def _three_surfaces(a: np.ndarray, b: np.ndarray) -> Sequence[np.ndarray]:
    return np.sin(1.5 * a) + 0.4 * b, -0.7 * a + 0.3 * b, 0.5 * a * b


def _five_surfaces(a: np.ndarray, b: np.ndarray) -> Sequence[np.ndarray]:
    return 0.7 * a, -0.7 * a, 0.7 * b, np.sin(2 * a + b), np.cos(a - b) - 0.5


def _equal(x: np.ndarray, *others: np.ndarray) -> Sequence[np.ndarray]:
    return (np.zeros_like(x),) * 3


def _tilted(x: np.ndarray) -> Sequence[np.ndarray]:
    """Each branch is the most likely one in some place."""
    return 0.5 * x, -0.5 * x, np.cos(x), np.zeros_like(x)


def _five_weights(a: np.ndarray, b: np.ndarray) -> Sequence[np.ndarray]:
    return 0.4 * b, -0.4 * b, 0.4 * a, -0.4 * a, np.zeros_like(a)


def _law(means: _Branches, log_weights: _Branches, noise: float) -> Callable[[np.ndarray], Law]:
    """The mixture of normal laws around the branches."""

    def law(X: np.ndarray) -> Law:
        columns = X.T[:, :, None]
        weights = np.exp(np.stack(log_weights(*columns)))
        weights /= weights.sum(axis=0)
        sd = np.full((len(X), 1), noise)
        return Continuous(
            Mixture(tuple(weights), tuple(Gaussian(mean, sd) for mean in means(*columns)))
        )

    return law


# The noise is a twentieth of the standard deviation of y.
DESIGNS = tuple(
    Design(name, FAMILY, _N_TRAIN, _uniform(n_inputs), _law(means, log_weights, noise))
    for name, n_inputs, means, log_weights, noise in (
        ("three-lines", 1, _lines, _equal, 0.039),
        ("four-waves", 1, _waves, _tilted, 0.029),
        ("three-surfaces", 2, _three_surfaces, _equal, 0.04),
        ("five-surfaces", 2, _five_surfaces, _five_weights, 0.038),
    )
)
