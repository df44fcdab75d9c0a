"""Bootstrap intervals against theory, and interquartile means by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.pages import bootstrap
from benchmarks.pages.bootstrap import Estimate


def test_interquartile_mean_by_hand():
    assert bootstrap.interquartile_mean(np.array([100.0, 1, 2, 3, 4, 5, 6, -100])) == 3.5
    # Of ten values, 10 // 4 = 2 are left out at each end.
    assert bootstrap.interquartile_mean(np.array([0.0, 0, 1, 1, 1, 1, 1, 7, 9, 9])) == 2.0
    assert bootstrap.interquartile_mean(np.array([1.0, 2.0, 6.0])) == 3.0


def test_the_interval_of_a_normal_mean_agrees_with_theory():
    """mean ± 1.96 s / sqrt(n), with the population's standard deviation as in the bootstrap."""
    values = np.random.default_rng(0).normal(3.0, 2.0, size=400)
    found = bootstrap.estimate(values)
    half = 1.96 * values.std() / np.sqrt(400)
    assert found.mean == values.mean()
    assert found.low == pytest.approx(values.mean() - half, abs=0.05 * half)
    assert found.high == pytest.approx(values.mean() + half, abs=0.05 * half)


def test_the_interval_covers_the_mean_in_95_percent_of_samples():
    """400 samples of 50 in one call; the binomial standard error of the share is 0.011."""
    values = np.random.default_rng(1).normal(size=(50, 400))
    found = bootstrap.estimate(values)
    assert np.mean((found.low <= 0) & (found.high >= 0)) == pytest.approx(0.945, abs=0.035)


def test_the_interval_of_a_difference_agrees_with_theory():
    rng = np.random.default_rng(2)
    a, b = rng.normal(1.0, 1.0, size=300), rng.normal(0.0, 3.0, size=500)
    found = bootstrap.difference(a, b)
    half = 1.96 * np.hypot(a.std() / np.sqrt(300), b.std() / np.sqrt(500))
    assert found.mean == a.mean() - b.mean()
    assert found.high - found.low == pytest.approx(2 * half, rel=0.05)
    # Resampled independently: with the same resamples the width would be zero.
    same = bootstrap.difference(a, a)
    assert same.low < -0.1
    assert same.high > 0.1


@pytest.mark.parametrize("values", [np.full(10, 7.0), np.array([7.0])])
def test_the_interval_of_equal_values_has_no_width(values):
    assert [float(v) for v in bootstrap.estimate(values)] == pytest.approx([7, 7, 7])


def test_the_same_values_give_the_same_interval():
    values = np.arange(10.0)
    first = bootstrap.estimate(values)
    bootstrap._shares.cache_clear()
    assert bootstrap.estimate(values) == first


def test_intervals_overlap_where_they_have_a_common_point():
    one, touching, apart = (
        Estimate(*map(np.float64, v)) for v in ((1, 0, 2), (3, 2, 4), (3, 2.1, 4))
    )
    assert one.overlaps(touching)
    assert not one.overlaps(apart)
    assert not apart.overlaps(one)
