"""Wasserstein distances against scipy and closed forms."""

import math

import numpy as np
import pytest
from scipy import stats

from nkcme import metrics


@pytest.fixture
def rng():
    return np.random.default_rng(20240501)


@pytest.mark.parametrize(("n", "m"), [(50, 50), (1, 1), (7, 1), (12, 8), (50, 33)])
def test_wasserstein1_equals_scipy_row_by_row(rng, n, m):
    # Rounded, so that there are ties within and between the two sets.
    samples = rng.normal(size=(n, 20)).round(1)
    truth = rng.gumbel(1.0, 2.0, size=(m, 20)).round(1)
    expected = [stats.wasserstein_distance(a, b) for a, b in zip(samples.T, truth.T, strict=True)]
    np.testing.assert_allclose(metrics.wasserstein1(samples, truth), expected, rtol=1e-12)
    assert metrics.was1(samples, truth) == pytest.approx(np.mean(expected), rel=1e-12)


def test_wasserstein1_of_shifted_points_is_the_shift(rng):
    samples = rng.normal(size=(30, 4))
    shift = np.array([0.0, 0.5, -2.0, 10.0])
    shuffled = rng.permutation(samples, axis=0)
    np.testing.assert_allclose(
        metrics.wasserstein1(samples, shuffled + shift), np.abs(shift), atol=1e-14
    )


def test_wasserstein1_does_not_depend_on_how_often_each_point_is_repeated(rng):
    samples, truth = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    np.testing.assert_allclose(
        metrics.wasserstein1(np.repeat(samples, 5, axis=0), truth),
        metrics.wasserstein1(samples, truth),
        rtol=1e-12,
    )


def test_sliced_was1_of_a_shift_is_its_mean_length_along_directions(rng):
    draws = rng.normal(size=(40, 3, 2))
    shift = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, -1.0]])
    sliced = metrics.sliced_wasserstein1(draws + shift, draws)
    # The mean of |cos| is 2 / pi.
    np.testing.assert_allclose(sliced, 2 / np.pi * np.array([0.0, 5.0, 1.0]), rtol=1e-3)
    np.testing.assert_allclose(metrics.sliced_wasserstein1(draws, draws + shift), sliced)


def test_sliced_was1_of_many_outputs_and_of_draws_of_unequal_number(rng):
    draws = rng.normal(size=(40, 2, 7))
    doubled = np.concatenate([draws, draws])
    np.testing.assert_allclose(metrics.sliced_wasserstein1(doubled, draws), 0.0, atol=1e-12)
    moved = metrics.sliced_wasserstein1(doubled + 1.0, draws, n_directions=4000)
    # The mean of |v1 + ... + vd| is sqrt(d) Gamma(d/2) / (sqrt(pi) Gamma((d + 1)/2)).
    expected = np.sqrt(7 / np.pi) * math.gamma(3.5) / math.gamma(4)
    np.testing.assert_allclose(moved, expected, rtol=0.03)
