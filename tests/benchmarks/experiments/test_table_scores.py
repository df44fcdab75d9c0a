"""Scores on tables, against the truth of a normal distribution and counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.experiments.table_scores import LEVELS, Predicted, score
from nkcme import metrics


def normal(y, log_density=None):
    """The prediction N(0, 1) for every row."""
    zero = np.zeros(len(y))
    return Predicted(np.tile(norm.ppf(LEVELS), (len(y), 1)), zero, np.abs(y), log_density)


def test_a_calibrated_prediction_has_nominal_shares():
    """y at 10,000 evenly spaced quantiles: each share is nominal, up to one row."""
    y = norm.ppf((np.arange(10_000) + 0.5) / 10_000)
    found = score(y, normal(y, norm.logpdf(y)))
    scores = found["metrics"]
    for name, expected in {
        "coverage_50": 0.5, "coverage": 0.9, "coverage_99": 0.99, "below_0.001": 0.001,
        "above_0.999": 0.001, "rmse": 1.0, "qice_percent": 0.0,
    }.items():  # fmt: skip
        assert scores[name] == pytest.approx(expected, abs=2e-3 if name == "rmse" else 1e-4), name
    assert scores["width"] == pytest.approx(2 * norm.ppf(0.95))
    assert scores["nll"] == pytest.approx(norm.entropy(), abs=1e-3)
    assert (scores["nll_not_finite"], found["bins"]) == (0, [1000] * 10)


def test_bins_are_those_of_the_library():
    """Eleven samples at tenths, so that their quantiles are those at the inner nine."""
    y = np.append(np.random.default_rng(0).normal(size=500), norm.ppf([0.1, 0.5]))
    samples = np.array([-9.0, *norm.ppf(np.arange(1, 10) / 10), 9.0])
    counts = metrics.decile_counts(y, np.tile(samples[:, None], len(y)))
    assert score(y, normal(y))["bins"] == counts.tolist()


def test_rows_without_a_finite_log_density_are_counted_and_left_out():
    y = np.zeros(4)
    scores = score(y, normal(y, np.array([-1.0, -np.inf, np.nan, -3.0])))["metrics"]
    assert (scores["nll"], scores["nll_not_finite"]) == (2.0, 2)
    nowhere = score(y, normal(y, np.full(4, -np.inf)))["metrics"]
    assert (nowhere["nll"], nowhere["nll_not_finite"]) == (None, 4)
    without = score(y, normal(y))["metrics"]
    assert (without["nll"], without["nll_not_finite"]) == (None, None)


def test_a_level_that_cannot_be_estimated_has_no_share():
    y = np.zeros(4)
    predicted = normal(y)
    predicted.quantiles[:, [0, 1, -2, -1]] = np.nan
    scores = score(y, predicted)["metrics"]
    missing = {name for name, value in scores.items() if value is None}
    assert missing == {"coverage_99", "below_0.001", "above_0.999", "nll", "nll_not_finite"}
