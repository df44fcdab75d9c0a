"""The laws that every toy problem must satisfy, for those of the library and those added."""

import numpy as np
import pytest
from scipy import integrate, stats

from nkcme.datasets import Toy, evaluate_was1, was1_floor

LEVELS = np.array([1e-6, 0.01, 0.123, 0.3, 0.45, 0.61, 0.77, 0.95, 1 - 1e-6])


def points_of(toy: Toy) -> np.ndarray:
    """Both ends of the range of x, and points between."""
    return np.linspace(*toy.x_range, 6)


def check_samples_follow_the_cdf(toy: Toy, points: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    draws = toy.sample(points, rng, n_draws=4000)
    assert draws.shape == (4000, len(points))
    for x, at_x in zip(points, draws.T, strict=True):
        assert stats.kstest(toy.cdf(x, at_x), "uniform").pvalue > 1e-3


def check_a_table_follows_the_cdf(toy: Toy, points: np.ndarray) -> None:
    X, y = toy.make(4000, seed=3)
    assert stats.kstest(toy.cdf(X[:, 0], y), "uniform").pvalue > 1e-3
    low, high = toy.x_range
    assert stats.kstest((X[:, 0] - low) / (high - low), "uniform").pvalue > 1e-3


def check_ppf_inverts_the_cdf(toy: Toy, points: np.ndarray) -> None:
    y = toy.ppf(points, LEVELS)
    assert y.shape == (len(points), len(LEVELS))
    expected = np.tile(LEVELS, (len(points), 1))
    np.testing.assert_allclose(toy.cdf(points[:, None], y), expected, atol=1e-12)
    assert np.all(np.diff(y, axis=1) > 0)


def check_the_density_integrates_to_the_cdf(toy: Toy, points: np.ndarray) -> None:
    for x in points:
        # Steps of a hundredth of the narrowest sd; the ring's jumps cost half a step times 1/4.
        grid = np.linspace(*toy.ppf([x], [1e-14, 1 - 1e-14])[0], 100_001)
        integral = integrate.cumulative_trapezoid(toy.pdf(x, grid), grid, initial=0.0)
        np.testing.assert_allclose(toy.cdf(x, grid), integral, atol=2e-5)
        assert integral[-1] == pytest.approx(1.0, abs=2e-5)


def check_the_density_is_the_derivative_of_the_cdf(toy: Toy, points: np.ndarray) -> None:
    step = 1e-6
    for x in points:
        y = toy.ppf([x], [0.03, 0.2, 0.4, 0.7, 0.9])[0]
        slope = (toy.cdf(x, y + step) - toy.cdf(x, y - step)) / (2 * step)
        np.testing.assert_allclose(toy.pdf(x, y), slope, rtol=1e-5, atol=1e-6)


def check_x_and_y_broadcast(toy: Toy, points: np.ndarray) -> None:
    grid = np.linspace(-2.0, 2.0, 5)
    shapes = {toy.pdf(points[:, None], grid).shape, toy.cdf(points[:, None], grid).shape}
    assert shapes == {(len(points), 5)}


def check_a_table_is_set_by_its_seed(toy: Toy, points: np.ndarray) -> None:
    X, y = toy.make(seed=0)
    assert (X.shape, y.shape) == ((5000, 1), (5000,))
    again_X, again_y = toy.make(5000, 0)
    np.testing.assert_array_equal(X, again_X)
    np.testing.assert_array_equal(y, again_y)
    assert not np.array_equal(y, toy.make(seed=1)[1])


def check_evaluation_points_cover_the_closed_range(toy: Toy, points: np.ndarray) -> None:
    x = toy.evaluation_points()
    assert len(x) == 200
    assert (x[0], x[-1]) == toy.x_range
    np.testing.assert_allclose(np.diff(x), np.diff(x)[0])


def check_random_true_samples_score_above_the_floor(toy: Toy, points: np.ndarray) -> None:
    """Random samples score worse than quantiles: both sides of the distance scatter."""

    def sampler(X):
        assert X.shape == (200, 1)
        return toy.sample(X[:, 0], np.random.default_rng(99), n_draws=50)

    assert evaluate_was1(toy, sampler, seed=0) > 1.2 * was1_floor(toy, seeds=[0])


def check_the_evaluation_does_not_repeat_the_training_samples(toy: Toy, points: np.ndarray) -> None:
    """A sampler that repeats the training stream must not get the evaluation's samples."""
    x = toy.evaluation_points()

    def repeat(X):
        return toy.sample(x, np.random.default_rng(7), n_draws=50)

    assert evaluate_was1(toy, repeat, seed=7) > was1_floor(toy, seeds=[7])
    assert evaluate_was1(toy, repeat, seed=7) == evaluate_was1(toy, repeat, seed=7)
    assert evaluate_was1(toy, repeat, seed=7) != evaluate_was1(toy, repeat, seed=8)


#: Every law, by name: functions of a problem and of some x, at which it has no point masses.
LAWS = {
    name.removeprefix("check_"): law
    for name, law in list(globals().items())
    if name.startswith("check_")
}

every_law = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
