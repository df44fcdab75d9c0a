"""CRPS, energy score, RMSE and NLL against closed forms and brute force."""

import numpy as np
import pytest
from scipy import stats

from nkcme import metrics
from nkcme.metrics import checks


@pytest.fixture
def rng():
    return np.random.default_rng(20240501)


def test_crps_is_that_of_the_empirical_measure(rng, monkeypatch):
    y, samples = rng.normal(size=9), rng.normal(size=(40, 9)).round(1)
    spread = np.abs(samples[:, None] - samples[None, :]).mean(axis=(0, 1))
    expected = np.abs(samples - y).mean(axis=0) - spread / 2
    np.testing.assert_allclose(metrics.crps_ensemble(y, samples), expected, rtol=1e-10)
    monkeypatch.setattr(checks, "BLOCK_VALUES", 100)
    np.testing.assert_allclose(metrics.crps_ensemble(y, samples), expected, rtol=1e-10)


def test_crps_of_a_fine_normal_ensemble_is_the_normal_closed_form():
    y = np.array([-3.0, -0.4, 0.0, 1.7])
    n_draws = 4000
    ensemble = stats.norm.ppf((np.arange(n_draws) + 0.5) / n_draws)
    closed_form = y * (2 * stats.norm.cdf(y) - 1) + 2 * stats.norm.pdf(y) - 1 / np.sqrt(np.pi)
    # Mid-quantiles miss little but the mass beyond the outermost draws, O(1 / n_draws).
    np.testing.assert_allclose(
        metrics.crps_ensemble(y, np.tile(ensemble[:, None], 4)), closed_form, atol=1 / n_draws
    )


def test_fair_crps_pairs_no_draw_with_itself(rng):
    y, samples = rng.normal(size=9), rng.normal(size=(7, 9)).round(1)
    spread = np.abs(samples[:, None] - samples[None, :]).sum(axis=(0, 1)) / (7 * 6)
    expected = np.abs(samples - y).mean(axis=0) - spread / 2
    np.testing.assert_allclose(metrics.crps_ensemble(y, samples, fair=True), expected, rtol=1e-10)


def test_crps_of_a_single_draw_is_the_absolute_error():
    np.testing.assert_allclose(
        metrics.crps_ensemble([1.0, -2.0, 0.5], [[3.0, 3.0, 0.5]]), [2.0, 5.0, 0.0]
    )


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


def test_the_energy_score_is_its_definition(rng):
    draws, y = rng.normal(size=(30, 4, 3)), rng.normal(size=(4, 3))
    to_y = np.linalg.norm(draws - y, axis=-1).mean(axis=0)
    known = to_y - 0.5 * np.linalg.norm(draws[:, None] - draws, axis=-1).mean(axis=(0, 1))
    np.testing.assert_allclose(metrics.energy_score(y, draws), known)


def test_the_energy_score_of_a_normal_distribution_is_in_closed_form():
    """At its mean: E|X| - E|X - X'| / 2 = sqrt(pi / 2) (1 - sqrt(2) / 2) for N(0, I) in the plane,
    and draws add E|X - X'| / (2 n)."""
    n = 1000
    draws = np.random.default_rng(0).normal(size=(n, 200, 2))
    half = np.sqrt(np.pi / 2)
    expected = half * (1 - np.sqrt(2) / 2) + np.sqrt(2) * half / (2 * n)
    score = metrics.energy_score(np.zeros((200, 2)), draws)
    assert score.mean() == pytest.approx(expected, abs=4 * score.std() / np.sqrt(200))


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
