"""Each score against a closed form, a brute-force definition, scipy or a published number."""

import math

import numpy as np
import pytest
from scipy import stats

from nkcme import metrics
from nkcme.errors import NkcmeError


@pytest.fixture
def rng():
    return np.random.default_rng(20240501)


# Wasserstein --------------------------------------------------------------------------------------


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


# CRPS ---------------------------------------------------------------------------------------------


def test_crps_is_that_of_the_empirical_measure(rng, monkeypatch):
    pytest.importorskip("scoringrules", reason="not on every machine that runs the tests")
    y, samples = rng.normal(size=9), rng.normal(size=(40, 9)).round(1)
    spread = np.abs(samples[:, None] - samples[None, :]).mean(axis=(0, 1))
    expected = np.abs(samples - y).mean(axis=0) - spread / 2
    np.testing.assert_allclose(metrics.crps_ensemble(y, samples), expected, rtol=1e-10)
    monkeypatch.setattr(metrics, "_CHUNK_VALUES", 100)
    np.testing.assert_allclose(metrics.crps_ensemble(y, samples), expected, rtol=1e-10)


def test_crps_of_a_fine_normal_ensemble_is_the_normal_closed_form():
    pytest.importorskip("scoringrules", reason="not on every machine that runs the tests")
    y = np.array([-3.0, -0.4, 0.0, 1.7])
    n_draws = 4000
    ensemble = stats.norm.ppf((np.arange(n_draws) + 0.5) / n_draws)
    closed_form = y * (2 * stats.norm.cdf(y) - 1) + 2 * stats.norm.pdf(y) - 1 / np.sqrt(np.pi)
    # Mid-quantiles miss little but the mass beyond the outermost draws, O(1 / n_draws).
    np.testing.assert_allclose(
        metrics.crps_ensemble(y, np.tile(ensemble[:, None], 4)), closed_form, atol=1 / n_draws
    )


def test_fair_crps_pairs_no_draw_with_itself(rng):
    pytest.importorskip("scoringrules", reason="not on every machine that runs the tests")
    y, samples = rng.normal(size=9), rng.normal(size=(7, 9)).round(1)
    spread = np.abs(samples[:, None] - samples[None, :]).sum(axis=(0, 1)) / (7 * 6)
    expected = np.abs(samples - y).mean(axis=0) - spread / 2
    np.testing.assert_allclose(metrics.crps_ensemble(y, samples, fair=True), expected, rtol=1e-10)


def test_crps_of_a_single_draw_is_the_absolute_error():
    pytest.importorskip("scoringrules", reason="not on every machine that runs the tests")
    np.testing.assert_allclose(
        metrics.crps_ensemble([1.0, -2.0, 0.5], [[3.0, 3.0, 0.5]]), [2.0, 5.0, 0.0]
    )


# QICE ---------------------------------------------------------------------------------------------


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


def test_decile_counts_do_not_depend_on_the_chunks(rng, monkeypatch):
    y, samples = rng.normal(size=103), rng.normal(size=(20, 103))
    whole = metrics.decile_counts(y, samples)
    monkeypatch.setattr(metrics, "_CHUNK_VALUES", 200)
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


# PIT, coverage ------------------------------------------------------------------------------------


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
    # A model whose spread is twice too large: the curve lies above the diagonal.
    curve = metrics.coverage_curve(stats.norm.cdf(y, scale=2.0), levels)
    for share, level in zip(curve, levels, strict=True):
        ends = np.tile(stats.norm.interval(level, scale=2.0), (300, 1))
        assert share == metrics.coverage(y, ends)
    assert np.all(curve[1:-1] > levels[1:-1])


def test_coverage_curve_of_even_pit_values_is_the_diagonal():
    levels = np.linspace(0.0, 1.0, 11)
    even = (np.arange(1000) + 0.5) / 1000
    np.testing.assert_allclose(metrics.coverage_curve(even, levels), levels, atol=1e-3)


# RMSE, NLL ----------------------------------------------------------------------------------------


def test_rmse_of_a_known_case():
    assert metrics.rmse([0.0, 0.0], [3.0, -4.0]) == pytest.approx(np.sqrt(12.5))


def test_nll_of_the_truth_is_its_entropy(rng):
    y = rng.normal(scale=2.0, size=20_000)
    # log p has variance 1/2 under a Gaussian, whatever its scale.
    tolerance = 4 * np.sqrt(0.5 / len(y))
    entropy = 0.5 * np.log(2 * np.pi * np.e * 4.0)
    assert metrics.nll(stats.norm.logpdf(y, scale=2.0)) == pytest.approx(entropy, abs=tolerance)


def test_nll_is_infinite_where_the_density_is_zero():
    assert metrics.nll([-1.0, -np.inf]) == np.inf


# Bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: metrics.was1([1.0], [[1.0]]),
            r"samples must have shape \(n_draws, n_rows\) and not be empty, got \(1,\)",
        ),
        (lambda: metrics.was1(np.ones((3, 2)), np.ones((3, 4))), r"truth must have 2 rows.* got 4"),
        (lambda: metrics.was1([[np.nan]], [[1.0]]), "samples must be finite, got 1 NaN or inf"),
        (lambda: metrics.qice([[1.0]], [[1.0]]), r"y must have shape \(n_rows,\).*got \(1, 1\)"),
        (lambda: metrics.qice([1.0, 2.0], [[1.0]]), "y must have 1 rows.*got 2"),
        (lambda: metrics.qice([1.0], [[1.0]], n_bins=0), "n_bins must be at least 1, got 0"),
        (lambda: metrics.qice_from_counts([0, 0]), "counts must be non-negative and not all zero"),
        (lambda: metrics.qice_floor(0), "n_rows must be at least 1, got 0"),
        (lambda: metrics.rmse([], []), r"y must have shape.*not be empty, got \(0,\)"),
        (lambda: metrics.rmse(["a"], [1.0]), "y must be an array of numbers.*got a list that is"),
        (lambda: metrics.rmse([1.0], [1.0, 2.0]), "prediction must have 1 rows.*got 2"),
        (lambda: metrics.coverage([1.0], [[1.0, 2.0, 3.0]]), r"shape \(n_rows, 2\), got \(1, 3\)"),
        (
            lambda: metrics.interval_width([[0, 1], [2, 1]]),
            r"lower <= upper.*\[2.0, 1.0\] in row 1",
        ),
        (lambda: metrics.interval_width([[np.nan, 1]]), "lower <= upper"),
        (lambda: metrics.coverage_curve([0.5], [90]), r"levels must lie in \[0, 1\]"),
        (lambda: metrics.nll([np.nan]), "logpdf must hold numbers or -inf"),
    ],
)
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises(NkcmeError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_every_explanation_is_one_sentence_that_says_which_way_is_better():
    for sentence in metrics.EXPLANATIONS.values():
        assert sentence.endswith(".")
        assert ". " not in sentence
        assert "better" in sentence


# --- several outputs ------------------------------------------------------------------------------


def test_the_energy_score_of_one_point_is_its_distance():
    y = np.array([[3.0, 4.0], [0.0, 1.0]])
    np.testing.assert_allclose(metrics.energy_score(y, np.zeros((7, 2, 2))), [5.0, 1.0])


def test_the_energy_score_of_two_points_is_in_closed_form():
    """Half at 0 and half at e, |e| = 1: (|y| + |y - e|) / 2 - 1/4."""
    draws = np.array([[[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]]])
    for y in ([0.0, 0.0, 0.0], [0.5, 0.0, 0.0], [1.0, 2.0, -2.0]):
        expected = 0.5 * (np.linalg.norm(y) + np.linalg.norm(np.subtract(y, [1, 0, 0]))) - 0.25
        assert metrics.energy_score([y], draws)[0] == pytest.approx(expected)


def test_the_energy_score_of_one_output_is_the_crps(rng):
    draws, y = rng.normal(size=(50, 6)), rng.normal(size=6)
    joint = metrics.energy_score(y[:, None], draws[..., None])
    np.testing.assert_allclose(joint, metrics.crps_ensemble(y, draws))


def test_the_energy_score_of_a_normal_law_is_in_closed_form():
    """At its mean: E|X| - E|X - X'| / 2 = sqrt(pi / 2) (1 - sqrt(2) / 2) for N(0, I) in the plane,
    and draws add E|X - X'| / (2 n)."""
    n = 1000
    draws = np.random.default_rng(0).normal(size=(n, 200, 2))
    half = np.sqrt(np.pi / 2)
    expected = half * (1 - np.sqrt(2) / 2) + np.sqrt(2) * half / (2 * n)
    score = metrics.energy_score(np.zeros((200, 2)), draws)
    assert score.mean() == pytest.approx(expected, abs=4 * score.std() / np.sqrt(200))


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


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: metrics.energy_score([1.0], np.zeros((3, 1, 2))), "y must have shape"),
        (lambda: metrics.energy_score([[1.0]], np.zeros((3, 1, 2))), r"\(1, 2\), as draws do"),
        (lambda: metrics.energy_score([[np.nan, 1]], np.zeros((3, 1, 2))), "must be finite"),
        (
            lambda: metrics.sliced_wasserstein1(np.zeros((3, 1, 2)), np.zeros((3, 1, 3))),
            "1 rows and 2 outputs",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(ask, message):
    with pytest.raises(NkcmeError, match=message):
        ask()
