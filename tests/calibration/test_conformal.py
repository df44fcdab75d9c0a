"""Conformal intervals have the guaranteed coverage for a model that is far from the truth."""

import numpy as np
import pytest

from nkcme.calibration.conformal import ConformalIntervals
from nkcme.distributions.embedding import Embedding
from nkcme.errors import NkcmeError


class Wrong:
    """A model with distributions that are too narrow, shifted and of bounded support."""

    atoms = np.linspace(-0.2, 0.4, 40)

    def predict_dist(self, X):
        x = np.asarray(X)[:, 0]
        weights = np.tile(np.hanning(42)[1:-1] / np.hanning(42).sum(), (len(x), 1))
        return Embedding(self.atoms, weights, location=x[:, None], reading="atomic", bandwidth=0.01)

    def predict_quantiles(self, X, alpha):
        return self.predict_dist(X).ppf(alpha)


def draw(rng, n):
    x = rng.uniform(size=(n, 1))
    return x, x[:, 0] + 0.1 * rng.standard_t(4, size=n)


@pytest.mark.parametrize("coverage", [0.5, 0.8])
def test_coverage_is_at_least_the_guaranteed_one(coverage):
    """Split conformal covers with a probability from c to c + 1 / (n + 1), over all rows:
    here over 1,000 repetitions, within 5 standard errors."""
    rng, n, n_new, repetitions = np.random.default_rng(0), 39, 5, 1000
    model = Wrong()
    covered = np.empty(repetitions)
    for i in range(repetitions):
        x, y = draw(rng, n + n_new)
        intervals = ConformalIntervals(model).calibrate(x[:n], y[:n])
        low, high = intervals.predict_interval(x[n:], coverage).T
        covered[i] = np.mean((low <= y[n:]) & (y[n:] <= high))
    margin = 5 * covered.std() / np.sqrt(repetitions)
    assert coverage - margin < covered.mean() < coverage + 1 / (n + 1) + margin
    # The intervals of the model itself cover too little.
    x, y = draw(rng, 20_000)
    low, high = model.predict_quantiles(x, [0.5 - coverage / 2, 0.5 + coverage / 2]).T
    assert np.mean((low <= y) & (y <= high)) < coverage - 0.05


def test_a_coverage_that_the_rows_cannot_guarantee_has_no_bounds():
    rng = np.random.default_rng(1)
    x, y = draw(rng, 9)
    intervals = ConformalIntervals(Wrong()).calibrate(x, y)
    assert np.isfinite(intervals.predict_interval(x, 0.5)).all()
    np.testing.assert_array_equal(intervals.predict_interval(x[:2], 0.95), [[-np.inf, np.inf]] * 2)


def test_y_outside_of_the_predicted_support_gives_no_bounds():
    x = np.zeros((50, 1))
    intervals = ConformalIntervals(Wrong()).calibrate(x, np.full(50, 9.0))
    assert intervals.radius(0.5) == 0.5
    assert np.isinf(intervals.predict_interval(x[:1], 0.5)).all()


def test_the_radius_is_the_order_statistic_of_the_theorem():
    intervals = ConformalIntervals(Wrong())
    with pytest.raises(NkcmeError, match="call calibrate"):
        intervals.radius()
    intervals.distances_ = np.arange(1, 20) / 100  # 19 rows
    assert intervals.radius(0.9) == 0.18  # the 18th of 19, for 20 * 0.9 = 18
    assert intervals.radius(0.91) == 0.19
    assert intervals.radius(0.96) == np.inf
    for coverage in (1.0, [0.8, 0.9], "0.9"):
        with pytest.raises(NkcmeError, match="coverage must be one number between 0 and 1"):
            intervals.radius(coverage)
