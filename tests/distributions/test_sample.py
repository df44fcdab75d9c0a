"""A sample as a distribution, beyond the contract: scipy, numpy's quantiles, limits of floats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from nkcme import metrics
from nkcme.distributions.sample import TAIL_SCALE, SampleDistribution
from nkcme.errors import NkcmeError
from support.predicted_distributions import plane_sample
from support.predicted_distributions import sample as make
from support.quadrature import line

N = 40
MIDDLES = (np.arange(N) + 0.5) / N
LEVELS = np.array([1e-9, 0.003, 0.2, 0.5, 0.77, 0.99, 1 - 1e-9])


@pytest.fixture
def draws():
    return make(N).draws[..., 0]


# --- CDF, quantiles, CRPS -------------------------------------------------------------------------


def test_quantiles_go_through_the_order_statistics(draws):
    np.testing.assert_allclose(make().ppf(MIDDLES), np.sort(draws, axis=0).T, rtol=1e-12)
    between = np.array([0.1, 0.5, 0.87])
    known = np.quantile(draws, between, axis=0, method="hazen")  # the same plotting positions
    np.testing.assert_allclose(make().ppf(between), known.T, rtol=1e-12)


def test_beyond_the_outermost_draws_are_exponential_tails():
    dist = SampleDistribution([[1.0], [2.0], [4.0]])
    scale = TAIL_SCALE * np.std([1.0, 2.0, 4.0])
    np.testing.assert_allclose(
        dist.cdf([1.0 - scale, 1.0, 3.0, 4.0, 4.0 + 2 * scale], grid=True),
        [[np.exp(-1) / 6, 1 / 6, 2 / 3, 5 / 6, 1 - np.exp(-2) / 6]],
    )
    np.testing.assert_allclose(dist.pdf(4.0 + 2 * scale), np.exp(-2) / 6 / scale)
    assert np.all(np.isfinite(dist.logpdf([-100.0, 100.0], grid=True)))


def test_equal_draws_make_the_cdf_jump():
    dist = SampleDistribution([[1.0], [2.0], [2.0], [2.0], [3.0]])
    just_below = np.nextafter(2.0, 0.0)
    np.testing.assert_allclose(dist.cdf([just_below, 2.0], grid=True), [[0.3, 0.7]])
    np.testing.assert_allclose(dist.ppf([0.3, 0.4, 0.5, 0.7]), [[2.0] * 4])
    np.testing.assert_allclose(dist.pmf([1.0, 2.0], grid=True), [[0.0, 0.4]])


@pytest.mark.parametrize("n", [1, 7])
def test_equal_draws_are_a_point_mass(n):
    dist = SampleDistribution(np.full((n, 2), [3.0, 0.0]))
    np.testing.assert_array_equal(dist.ppf(LEVELS), np.tile([[3.0], [0.0]], len(LEVELS)))
    np.testing.assert_array_equal(dist.cdf([-1.0, 0.0, 2.9, 3.0], grid=True)[0], [0, 0, 0, 1])
    np.testing.assert_array_equal(dist.crps([1.0, 0.25]), [2.0, 0.25])
    np.testing.assert_array_equal(dist.mean(), [3.0, 0.0])
    np.testing.assert_array_equal(dist.var(), 0.0)
    np.testing.assert_array_equal(dist.mode(), [3.0, 0.0])
    np.testing.assert_array_equal(dist.rvs(2), np.tile([3.0, 0.0], (2, 1)))
    np.testing.assert_array_equal(dist.pmf([3.0, 0.0]), 1.0)
    np.testing.assert_array_equal(dist.logpdf([3.0, 1.0]), [0.0, -np.inf])
    # The narrowest kernel there is: 1e-12 of the power of two above.
    smoothed = dist.smoothed()
    np.testing.assert_allclose(smoothed.logpdf([3.0, 0.0]), -np.log([4e-12, 1e-12]) - 0.9189385332)
    assert np.all(np.isfinite(smoothed.logpdf([1e3, -1e3])))


def test_crps_of_many_draws_is_that_of_the_ensemble():
    many = np.random.default_rng(1).normal(size=(4000, 2))
    y = np.array([0.1, -2.0])
    np.testing.assert_allclose(
        SampleDistribution(many).crps(y), metrics.crps_ensemble(y, many), rtol=1e-3
    )


@settings(max_examples=60, deadline=None)
@given(
    sample=hnp.arrays(float, (6, 2), elements=st.floats(-1e6, 1e6)),
    levels=hnp.arrays(float, 5, elements=st.floats(1e-9, 1 - 1e-9)),
)
def test_any_draws_have_one_monotone_cdf_and_quantiles_that_do_not_cross(sample, levels):
    dist = SampleDistribution(sample)
    levels = np.sort(levels)
    y = dist.ppf(levels)
    assert np.all(np.diff(y, axis=1) >= 0)
    # A quantile is a float: it has the room between its neighbours, which a jump may fill.
    low, high = np.nextafter(y, -np.inf) - 1e-300, np.nextafter(y, np.inf) + 1e-300
    below, above = dist.cdf(low), dist.cdf(high)
    assert np.all((below - 1e-9 <= levels) & (levels <= above + 1e-9))
    cdf = dist.cdf(np.linspace(-2e6, 2e6, 40), grid=True)
    assert np.all((cdf >= 0) & (cdf <= 1) & (np.diff(cdf, axis=1, prepend=0.0) >= 0))
    assert np.all(dist.crps(sample[0]) >= 0)
    assert np.all(np.isfinite(dist.logpdf(sample[0])))


# --- the smoothed density -------------------------------------------------------------------------


def test_the_density_is_the_kernel_smoothing_of_silvermans_rule(draws):
    dist = make().smoothed()
    low, high = np.quantile(draws, [0.25, 0.75], axis=0, method="hazen")
    bandwidth = 0.9 * np.minimum(draws.std(axis=0), (high - low) / 1.34) * N**-0.2
    y = np.array([0.2, 5.1, -80.0])
    known = stats.norm.pdf(y, draws, bandwidth).mean(axis=0)
    np.testing.assert_allclose(dist.pdf(y), known, rtol=1e-10)
    np.testing.assert_allclose(dist.logpdf(y), np.log(known), rtol=1e-10)
    t, weight = line(np.linspace(-4, 4, 17), n=40)
    np.testing.assert_allclose(dist[0].pdf(t, grid=True) @ weight, 1.0, rtol=1e-8)
    far = dist.logpdf([100.0, 100.0, 1e4])
    assert np.all(dist.pdf([100.0, 100.0, 1e4]) == 0)
    assert np.all(np.isfinite(far))


def test_the_bandwidth_is_the_deviation_where_the_interquartile_range_is_zero():
    sample = np.array([1.0] * 8 + [0.0, 2.0])[:, None]
    bandwidth = 0.9 * sample.std() * 10**-0.2
    known = stats.norm.pdf(1.0, sample, bandwidth).mean()
    np.testing.assert_allclose(SampleDistribution(sample).smoothed().pdf(1.0), known, rtol=1e-10)


def test_the_density_of_many_draws_is_close_to_that_of_their_distribution():
    many = np.random.default_rng(3).normal(2.0, 3.0, size=(5000, 1))
    y = np.linspace(-4, 8, 9)
    known = stats.norm.pdf(y, 2.0, 3.0)
    smoothed = SampleDistribution(many).smoothed()
    np.testing.assert_allclose(smoothed.pdf(y, grid=True)[0], known, rtol=0.12)


@pytest.mark.parametrize("n", [50, 1000])
def test_the_mode_is_a_draw_of_high_density(n):
    sample = np.random.default_rng(4).gamma(4.0, size=(n, 5))
    dist = SampleDistribution(sample)
    mode = dist.mode()
    assert np.all(np.any(mode == sample, axis=0))
    smoothed = dist.smoothed()
    highest = smoothed.pdf(sample.T.copy()).max(axis=1)
    np.testing.assert_allclose(smoothed.pdf(mode), highest, rtol=0.0 if n == 50 else 1e-2)


# --- moments --------------------------------------------------------------------------------------


def test_the_mean_is_that_of_the_draws_and_the_variance_close_to_theirs(draws):
    np.testing.assert_allclose(make().mean(), draws.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(make().var(), draws.var(axis=0), rtol=0.05)
    np.testing.assert_allclose(SampleDistribution(1e9 + draws).std(), make().std(), rtol=1e-6)


# --- several outputs ------------------------------------------------------------------------------


def test_several_outputs_are_the_smoothed_mixture():
    dist = plane_sample()
    y = np.array([[0.1, 90.0], [-0.5, 130.0], [2.0, 100.0]])
    sample = dist.draws
    bandwidth = sample.std(axis=0) * len(sample) ** (-1 / 6)
    known = stats.norm.pdf(y, sample, bandwidth).prod(axis=-1).mean(axis=0)
    np.testing.assert_allclose(dist.pdf(y), known, rtol=1e-10)
    np.testing.assert_allclose(dist.logpdf(y), np.log(known), rtol=1e-10)
    below = stats.norm.cdf(y, sample, bandwidth).prod(axis=-1).mean(axis=0)
    np.testing.assert_allclose(dist.cdf(y), below, rtol=1e-10)
    np.testing.assert_allclose(dist.mean(), sample.mean(axis=0))
    np.testing.assert_allclose(dist.std(), np.hypot(sample.std(axis=0), bandwidth))
    at_draws = dist.pdf(np.moveaxis(sample, 0, 1))
    np.testing.assert_allclose(dist.pdf(dist.mode()), at_draws.max(axis=1))
    for ask in (lambda: dist.ppf(0.5), lambda: dist.crps(np.zeros(3))):
        with pytest.raises(NkcmeError, match="one output only"):
            ask()


# --- at the edge of floats ------------------------------------------------------------------------


@pytest.mark.parametrize("power", [1000, -1000])
def test_units_of_any_magnitude_only_scale(draws, power):
    """Near 1e302 and 1e-300; powers of two round nothing, so bits are compared."""
    scale = 2.0**power
    one, dist = make(), SampleDistribution(scale * draws)
    y = np.array([0.2, 4.0, 10.0])
    for name in ("mean", "std", "mode", "median"):
        np.testing.assert_array_equal(getattr(dist, name)(), scale * getattr(one, name)())
    np.testing.assert_array_equal(dist.ppf(LEVELS), scale * one.ppf(LEVELS))
    np.testing.assert_array_equal(dist.rvs(4, 0), scale * one.rvs(4, 0))
    np.testing.assert_array_equal(dist.crps(scale * y), scale * one.crps(y))
    np.testing.assert_array_equal(dist.cdf(scale * y), one.cdf(y))
    np.testing.assert_allclose(dist.logpdf(scale * y) + np.log(scale), one.logpdf(y), rtol=1e-10)
    assert np.all(dist.var() >= 0)  # 1e302 squared is infinite, not an error


@pytest.mark.parametrize("size", [1e-308, 5e-324, 1e308, 1.7e308])
def test_the_smallest_and_the_largest_floats(size):
    dist = SampleDistribution(size * np.array([[0.25, 1.0], [0.5, 1.0], [0.75, 1.0]]))
    y = np.full(2, 0.5 * size)
    answers = [
        dist.mean(),
        dist.std(),
        dist.ppf([0.1, 0.99]),
        dist.crps(y),
        dist.mode(),
        dist.cdf(y),
    ]
    assert all(np.all(np.isfinite(answer)) for answer in answers)
    assert not np.any(np.isnan(dist.logpdf(y)))
    assert not np.any(np.isnan(dist.logpdf(-1e308)))
    np.testing.assert_array_equal(dist.cdf([-1e308, 1.75e308], grid=True)[1], [0.0, 1.0])


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda: SampleDistribution([1.0, 2.0]), r"expected draws .* got \(2,\)"),
        (lambda: SampleDistribution(np.zeros((0, 3))), r"at least one per row; got \(0, 3\)"),
        (lambda: SampleDistribution([[1.0], [np.nan]]), "the draws must be finite"),
        (lambda: SampleDistribution([[1.0], [np.inf]]), "the draws must be finite"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(action, message):
    with pytest.raises(NkcmeError, match=message) as caught:
        action()
    assert "\n" not in str(caught.value)
