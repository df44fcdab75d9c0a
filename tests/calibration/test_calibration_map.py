"""The calibration map: its effect on weights, and that its result is calibrated."""

import numpy as np
import pytest
from scipy import stats

from nkcme.calibration.calibration_map import (
    BETA_ROWS,
    N_STEPS,
    CalibrationMap,
    _likeliest_rows,
    extrapolated_counts,
    pit_counts,
)
from nkcme.distributions.embedding import Embedding
from nkcme.errors import NkcmeError


def test_the_map_of_uniform_probabilities_is_the_identity():
    calibration = CalibrationMap.fit((np.arange(5000) + 0.5) / 5000)
    q = np.linspace(0, 1, 37)
    np.testing.assert_allclose(calibration(q), q, atol=1e-12)


def test_the_map_undoes_a_known_distortion():
    """Predictions N(0, 2^2) of a standard normal: R(u) = Phi(2 Phi^-1(u)) in closed form."""
    rng = np.random.default_rng(0)
    pit = stats.norm.cdf(rng.normal(size=200_000) / 2)
    calibration = CalibrationMap.fit(pit)
    u = np.linspace(0.02, 0.98, 49)
    np.testing.assert_allclose(calibration(u), stats.norm.cdf(2 * stats.norm.ppf(u)), atol=0.004)


def test_new_weights_have_the_mapped_distribution_function():
    rng = np.random.default_rng(1)
    calibration = CalibrationMap.fit(rng.beta(2, 3, size=400))
    weights = rng.dirichlet(np.ones(30), size=7)
    new = calibration.of_weights(weights)
    assert new.min() >= 0
    np.testing.assert_allclose(new.sum(axis=1), 1.0)
    atoms = np.linspace(-1, 1, 30)
    before, after = (Embedding(atoms, w, reading="atomic", bandwidth=0.1) for w in (weights, new))
    edges = 0.5 * (atoms[1:] + atoms[:-1])
    np.testing.assert_allclose(
        after.cdf(edges, grid=True), calibration(before.cdf(edges, grid=True)), atol=1e-12
    )


def test_few_rows_change_little_and_a_weight_is_a_number_of_rows():
    pit = np.array([0.11, 0.52, 0.93])
    few = CalibrationMap.fit(pit)
    assert np.abs(few(np.linspace(0, 1, 11)) - np.linspace(0, 1, 11)).max() < 0.1
    twice = CalibrationMap.fit(np.repeat(pit, [2, 1, 3]))
    weighted = CalibrationMap.fit(pit, weight=np.array([2.0, 1.0, 3.0]))
    np.testing.assert_allclose(twice.values, weighted.values)
    assert np.all(np.diff(twice.values) > 0)


@pytest.mark.parametrize("values", [[0.0, 0.7, 0.6, 1.0], [0.1, 1.0], [0.0, 0.5], [0.0], [[0, 1]]])
def test_values_that_do_not_rise_from_zero_to_one_are_refused(values):
    with pytest.raises(NkcmeError, match="rise from zero to one"):
        CalibrationMap(np.asarray(values, float))


def test_the_counts_of_many_members_are_extrapolated_from_few():
    """Members N(y + e_j, 1) of a y that is N(0, 1 + s^2): the counts of a mean of k, from those of
    one and of two; the mean of sixteen is simulated beside."""
    rng, n, spread = np.random.default_rng(0), 200_000, 0.5
    y = rng.normal(size=n)
    centers = spread * rng.normal(size=(16, n))

    def of(k):
        return pit_counts(np.mean(stats.norm.cdf(y - centers[:k]), axis=0)) / n

    single = np.mean([pit_counts(stats.norm.cdf(y - c)) / n for c in centers[:2]], axis=0)
    predicted = extrapolated_counts(single, of(2), 2, 16)
    true = of(16)
    assert np.abs(np.cumsum(predicted - true)).max() < 0.35 * np.abs(np.cumsum(of(2) - true)).max()
    np.testing.assert_array_equal(extrapolated_counts(single, of(2), 1, 5), of(2))


def test_extrapolated_counts_move_the_map_but_do_not_roughen_it():
    """Extrapolation makes the noise of 1,000 rows in 100 steps larger; a map with that noise would
    cost a twentieth of a nat per row."""
    rng, n = np.random.default_rng(1), 1000
    narrow, wide = rng.beta(2, 2, size=(2, n)), rng.beta(1.5, 1.5, size=(2, n))
    few = pit_counts(wide[0])
    expected = extrapolated_counts(pit_counts(narrow[0]), few, 2, 10)
    values = CalibrationMap.from_counts(few, expected=expected).values
    assert np.abs(np.diff(np.diff(values))).max() < 2e-3  # 1e-2 with the counts as they are
    # The variance of U falls linearly: 1/20 at one, 1/16 at two, 1/20 + .0225 at ten members.
    size = 0.25 / (0.05 + 1.8 * 0.0125) - 1.0
    truth = stats.beta(size / 2, size / 2).cdf(np.linspace(0, 1, N_STEPS + 1))
    assert np.abs(values - truth).max() < 0.03
    assert np.all(np.diff(CalibrationMap.from_counts(few, expected=-few).values) > 0)


def test_the_map_is_as_detailed_as_the_counts_allow():
    """The counts of a beta distribution get the most pseudo-rows of it, two narrow peaks, which no
    beta distribution has, the fewest."""
    beta = stats.beta(2.0, 3.0)
    levels = np.linspace(0.0, 1.0, N_STEPS + 1)
    expected = np.diff(beta.cdf(levels))
    assert (
        _likeliest_rows(expected, np.round(5000 * expected), np.array(BETA_ROWS)) == BETA_ROWS[-1]
    )
    middle = np.zeros(N_STEPS)
    middle[[20, 79]] = 2500.0
    flat = np.full(N_STEPS, 1.0 / N_STEPS)
    assert _likeliest_rows(flat, middle, np.array(BETA_ROWS)) == BETA_ROWS[0]


def test_counts_of_point_masses_are_spread_over_their_jumps():
    """A perfect model of a coin: half of the rows jump from 0 to 1/2, half from 1/2 to 1."""
    upper = np.repeat([0.5, 1.0], 300)
    counts = pit_counts(upper, lower=upper - 0.5)
    np.testing.assert_allclose(counts, 600 / N_STEPS)
