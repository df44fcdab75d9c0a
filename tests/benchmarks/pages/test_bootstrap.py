"""Intervals against theory, and means by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.pages import statistics


def test_interquartile_mean_by_hand():
    assert statistics.interquartile_mean(np.array([100.0, 1, 2, 3, 4, 5, 6, -100])) == 3.5
    # n // 4 = 2 of ten are left out at each end.
    assert statistics.interquartile_mean(np.array([0.0, 0, 1, 1, 1, 1, 1, 7, 9, 9])) == 2.0
    assert statistics.interquartile_mean(np.array([1.0, 2.0, 6.0])) == 3.0


def test_the_interval_of_a_normal_mean_is_that_of_theory():
    """mean +- 1.96 s / sqrt(n), s with n below: the bootstrap's own deviation."""
    values = np.random.default_rng(0).normal(3.0, 2.0, size=400)
    told = statistics.estimate(values)
    half = 1.96 * values.std() / np.sqrt(400)
    assert told.mean == values.mean()
    assert told.low == pytest.approx(values.mean() - half, abs=0.05 * half)
    assert told.high == pytest.approx(values.mean() + half, abs=0.05 * half)


def test_the_interval_holds_the_mean_nineteen_times_in_twenty():
    """One call for 2,000 samples of 50; the binomial deviation of the share is 0.005."""
    values = np.random.default_rng(1).normal(size=(50, 2000))
    told = statistics.estimate(values)
    assert np.mean((told.low <= 0) & (told.high >= 0)) == pytest.approx(0.945, abs=0.015)


def test_the_interval_of_a_difference_is_that_of_theory():
    rng = np.random.default_rng(2)
    a, b = rng.normal(1.0, 1.0, size=300), rng.normal(0.0, 3.0, size=500)
    told = statistics.difference(a, b)
    half = 1.96 * np.hypot(a.std() / np.sqrt(300), b.std() / np.sqrt(500))
    assert told.mean == a.mean() - b.mean()
    assert told.high - told.low == pytest.approx(2 * half, rel=0.05)
    # Drawn apart: with the same draws for both the difference of equals would have no width.
    same = statistics.difference(a, a)
    assert same.low < -0.1
    assert same.high > 0.1


def test_equal_values_have_no_width_and_one_seed_says_nothing_of_its_own():
    assert [float(v) for v in statistics.estimate(np.full(10, 7.0))] == pytest.approx([7, 7, 7])
    assert [float(v) for v in statistics.estimate(np.array([5.0]))] == [5, 5, 5]


def test_the_same_values_give_the_same_interval():
    values = np.arange(10.0)
    assert statistics.estimate(values) == statistics.estimate(values)


def test_intervals_overlap_where_they_touch():
    one = statistics.Estimate(*map(np.float64, (1, 0, 2)))
    assert one.overlaps(statistics.Estimate(*map(np.float64, (3, 2, 4))))
    assert not one.overlaps(statistics.Estimate(*map(np.float64, (3, 2.1, 4))))
    assert not statistics.Estimate(*map(np.float64, (3, 2.1, 4))).overlaps(one)
