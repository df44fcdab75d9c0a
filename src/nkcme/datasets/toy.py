"""The paper's three toy problems (appendix C), and its score of samples against the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from scipy.stats import skewnorm, uniform

from nkcme.datasets.mixture import FloatArray, Gaussian, Mixture
from nkcme.datasets.problem import N_EVALUATION_POINTS, Toy
from nkcme.errors import NkcmeError
from nkcme.metrics import was1

#: Samples at each evaluation point in the paper's protocol.
N_DRAWS = 50

# Marks the stream of the evaluation's true samples, which must differ from that of training data.
_TRUTH_STREAM = 1


def _bimodal(x: FloatArray) -> Mixture:
    """y = 0.2 x + P + ε with P ~ Bernoulli(1 / (1 + exp(-1.5 x))) and ε ~ N(0, (0.05 x)^2)."""
    up, sd = expit(1.5 * x), np.abs(0.05 * x)
    return Mixture((1 - up, up), (Gaussian(0.2 * x, sd), Gaussian(0.2 * x + 1, sd)))


def _skewed(x: FloatArray) -> Mixture:
    """y ~ SkewNormal(ξ = 0.1 x, ω = 0.1 |x| + 0.05, α = -8 + 8 / (1 + exp(-x)))."""
    law = skewnorm(-8 + 8 * expit(x), loc=0.1 * x, scale=0.1 * np.abs(x) + 0.05)
    return Mixture((np.ones_like(x),), (law,))


def _ring(x: FloatArray) -> Mixture:
    """y = ±2 sin(arccos(x / 2)) + N(0, 0.1^2), the signs equally likely: a noisy circle.

    For |x| <= 1 half the mass is U(-1, 1) instead. 2 sin(arccos(x / 2)) is sqrt(4 - x^2).
    """
    height, sd = np.sqrt(4 - x**2), np.full_like(x, 0.1)
    inside = np.where(np.abs(x) <= 1, 0.5, 0.0)
    on_arc = (1 - inside) / 2
    return Mixture(
        (on_arc, on_arc, inside),
        (Gaussian(-height, sd), Gaussian(height, sd), uniform(-1, 2)),
    )


TOYS: dict[str, Toy] = {
    "bimodal": Toy("bimodal", (-5.0, 5.0), _bimodal),
    "skewed": Toy("skewed", (-5.0, 5.0), _skewed),
    "ring": Toy("ring", (-2.0, 2.0), _ring),
}


def load_toy(name: str) -> Toy:
    """Get a toy problem by its name.

    Parameters
    ----------
    name
        A key of `TOYS`: bimodal, skewed, ring, or one that was added.

    Returns
    -------
    Toy

    Raises
    ------
    NkcmeError
        If there is none of this name.

    Examples
    --------
    >>> from nkcme.datasets import load_toy
    >>> load_toy("skewed").x_range
    (-5.0, 5.0)
    """
    if name not in TOYS:
        raise NkcmeError(f"no toy data set is named {name!r}; there are {', '.join(TOYS)}")
    return TOYS[name]


def evaluate_was1(
    toy: Toy,
    sampler: Callable[[FloatArray], npt.ArrayLike],
    seed: int,
    n_points: int = N_EVALUATION_POINTS,
) -> float:
    """Score samples against the truth as the paper does: the mean W1 distance over inputs.

    At each point 50 samples are compared with 50 true ones. The true samples are fresh: their
    generator follows from the seed, but is independent of the one that `Toy.make` uses.

    Parameters
    ----------
    toy
        The problem.
    sampler
        Maps inputs of shape (n_points, 1) to samples of shape (50, n_points).
    seed
        Random seed of the true samples.
    n_points
        Number of evaluation points.

    Returns
    -------
    float

    Raises
    ------
    NkcmeError
        If the samples have another shape.
    """
    x = toy.evaluation_points(n_points)
    draws = np.asarray(sampler(x[:, None]))
    if draws.shape != (N_DRAWS, n_points):
        raise NkcmeError(
            f"sampler must give draws of shape {(N_DRAWS, n_points)}, got {draws.shape}"
        )
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_TRUTH_STREAM,)))
    return was1(draws, toy.sample(x, rng, n_draws=N_DRAWS))


def was1_floor(toy: Toy, seeds: Iterable[int] = range(10)) -> float:
    """The score of a perfect model: `evaluate_was1` of the true quantiles, averaged over seeds.

    The quantiles at (i + 1/2) / 50 are the 50 points that represent the truth best. The score that
    remains is the scatter of the 50 true samples they are compared with.

    Parameters
    ----------
    toy
        The problem.
    seeds
        Random seeds of the true samples.

    Returns
    -------
    float
    """
    levels = (np.arange(N_DRAWS) + 0.5) / N_DRAWS
    oracle = toy.ppf(toy.evaluation_points(), levels).T
    return float(np.mean([evaluate_was1(toy, lambda _: oracle, seed) for seed in seeds]))
