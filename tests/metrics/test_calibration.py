"""QICE, PIT and coverage against their definitions, exact sums and published numbers."""

import numpy as np
import pytest
from scipy import stats

from nkcme import metrics
from nkcme.errors import NkcmeError
from nkcme.metrics import checks


@pytest.fixture
def rng():
    return np.random.default_rng(20240501)


def test_decile_counts_follow_the_rule():
    # The deciles of 0..100 are 0, 10, ..., 100: bins are (10 k, 10 (k + 1)], the ends are open.
    y = np.array([-1e9, 0.0, 10.0, 10.1, 55.0, 90.0, 90.1, 100.0, 1e9])
    samples = np.tile(np.arange(101.0)[:, None], len(y))
    assert metrics.decile_counts(y, samples).tolist() == [3, 1, 0, 0, 0, 1, 0, 0, 1, 3]
    assert metrics.decile_counts(y, samples, n_bins=2).tolist() == [4, 5]
    assert metrics.decile_counts(y, samples, n_bins=1).tolist() == [9]


def test_decile_counts_are_those_of_the_reference_rule(rng):
    """CARD's published computation: count the 11 deciles below y, then merge the outer bins."""
    y, samples = rng.normal(size=500), rng.normal(0.3, 1.5, size=(37, 500)).round(1)
    y[::2] = y[::2].round(1)
    membership = np.sum(y > np.percentile(samples, np.arange(0, 101, 10), axis=0), axis=0)
    with_outside = np.bincount(membership, minlength=12)
    expected = with_outside[1:-1]
    expected[0] += with_outside[0]
    expected[-1] += with_outside[-1]
    np.testing.assert_array_equal(metrics.decile_counts(y, samples), expected)


def test_decile_counts_do_not_depend_on_the_blocks(rng, monkeypatch):
    y, samples = rng.normal(size=103), rng.normal(size=(20, 103))
    whole = metrics.decile_counts(y, samples)
    monkeypatch.setattr(checks, "BLOCK_VALUES", 200)
    np.testing.assert_array_equal(metrics.decile_counts(y, samples), whole)
    assert whole.sum() == 103


def test_qice_is_zero_when_balanced_and_largest_when_all_fall_into_one_bin():
    samples = np.tile(np.linspace(0.0, 1.0, 1001)[:, None], 40)
    balanced = np.repeat(np.arange(10) / 10 + 0.05, 4)
    assert metrics.qice(balanced, samples) == pytest.approx(0.0, abs=1e-15)
    # One bin has 0.9 too much, nine have 0.1 too little.
    assert metrics.qice(np.full(40, 0.55), samples) == pytest.approx((0.9 + 9 * 0.1) / 10)
    assert metrics.qice_from_counts([3, 1]) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("n_test", "published_percent"),
    [
        pytest.param(51, 3.33, id="boston"),
        pytest.param(103, 2.37, id="concrete"),
        pytest.param(77, 2.74, id="energy"),
        pytest.param(819, 0.84, id="kin8nm"),
        pytest.param(1193, 0.69, id="naval"),
        pytest.param(957, 0.77, id="power"),
        pytest.param(4573, 0.35, id="protein"),
        pytest.param(51630, 0.11, id="year"),
    ],
)
def test_qice_floor_gives_the_published_floors(n_test, published_percent):
    """Test rows are a tenth of each table, rounded; Year's are its last 51,630."""
    assert round(100 * metrics.qice_floor(n_test), 2) == published_percent


@pytest.mark.parametrize(("n", "n_bins"), [(1, 10), (7, 3), (30, 10), (51, 10), (200, 4), (5, 1)])
def test_qice_floor_is_the_mean_absolute_deviation(n, n_bins):
    k = np.arange(n + 1)
    summed = np.sum(stats.binom.pmf(k, n, 1 / n_bins) * np.abs(k / n - 1 / n_bins))
    assert metrics.qice_floor(n, n_bins) == pytest.approx(summed, rel=1e-9, abs=1e-15)


def test_calibrated_draws_score_the_floor(rng):
    n_rows, n_repeats = 100, 400
    quantiles = stats.norm.ppf((np.arange(1000) + 0.5) / 1000)
    samples = np.tile(quantiles[:, None], n_rows)
    scores = [metrics.qice(rng.normal(size=n_rows), samples) for _ in range(n_repeats)]
    standard_error = np.std(scores) / np.sqrt(n_repeats)
    assert np.mean(scores) == pytest.approx(metrics.qice_floor(n_rows), abs=4 * standard_error)


def test_pit_of_the_true_cdf_is_uniform(rng):
    y = rng.normal(2.0, 3.0, size=2000)
    values = metrics.pit(stats.norm.cdf(y, 2.0, 3.0))
    assert stats.kstest(values, "uniform").pvalue > 1e-3


def test_pit_clips_rounding_only():
    assert metrics.pit([-1e-7, 0.25, 1 + 1e-7]).tolist() == [0.0, 0.25, 1.0]
    with pytest.raises(NkcmeError, match=r"cdf_at_y must lie in \[0, 1\], got values from -0.1"):
        metrics.pit([-0.1, 0.5])


def test_pit_from_samples_is_the_empirical_cdf_with_ties_shared():
    samples = np.tile(np.array([[1.0], [2.0], [2.0], [3.0]]), 5)
    y = [0.0, 1.5, 2.0, 3.0, 9.0]
    np.testing.assert_allclose(metrics.pit_from_samples(y, samples), [0, 0.25, 0.5, 0.875, 1])


def test_coverage_and_width_of_a_known_case():
    interval = [[0.0, 1.0], [0.0, 2.0], [-1.0, 0.0], [5.0, 5.0]]
    assert metrics.coverage([1.0, 2.1, -0.5, 5.0], interval) == 0.75
    assert metrics.interval_width(interval) == 1.0
    assert metrics.coverage([7.0], [[-np.inf, np.inf]]) == 1.0
    assert metrics.interval_width([[-np.inf, np.inf]]) == np.inf


def test_coverage_curve_agrees_with_the_intervals_it_stands_for(rng):
    y = rng.normal(size=300)
    levels = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    # A model with twice the spread: the curve lies above the diagonal.
    curve = metrics.coverage_curve(stats.norm.cdf(y, scale=2.0), levels)
    for share, level in zip(curve, levels, strict=True):
        ends = np.tile(stats.norm.interval(level, scale=2.0), (300, 1))
        assert share == metrics.coverage(y, ends)
    assert np.all(curve[1:-1] > levels[1:-1])


def test_coverage_curve_of_even_pit_values_is_the_diagonal():
    levels = np.linspace(0.0, 1.0, 11)
    even = (np.arange(1000) + 0.5) / 1000
    np.testing.assert_allclose(metrics.coverage_curve(even, levels), levels, atol=1e-3)
