"""Mixtures of Gaussians, beyond the contract: closed forms and the limits of floats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from nkcme.distributions import gaussian_mixture as module
from nkcme.distributions.gaussian_mixture import GaussianMixture
from nkcme.errors import NkcmeError
from support.known_scores import mixture_crps, normal_crps
from support.predicted_distributions import mixture as make
from support.predicted_distributions import plane_mixture

LEVELS = np.array([1e-9, 0.01, 0.2, 0.5, 0.77, 0.99, 1 - 1e-9])


# --- closed forms ---------------------------------------------------------------------------------


def test_one_component_is_the_normal_distribution():
    dist = GaussianMixture([[5.0], [-2.0]], [[2.0], [2.0]], [[0.3], [0.3]], 5.0, 10.0)
    known = stats.norm(25.0, 3.0)
    y = np.array([-40.0, 20.0, 25.0, 27.7])
    np.testing.assert_allclose(dist.pdf(y, grid=True)[0], known.pdf(y), rtol=1e-12)
    np.testing.assert_allclose(dist.logpdf(y, grid=True)[1], known.logpdf(y), rtol=1e-12)
    np.testing.assert_allclose(dist.cdf(y, grid=True)[1], known.cdf(y), rtol=1e-12)
    np.testing.assert_allclose(dist.ppf(LEVELS)[0], known.ppf(LEVELS), rtol=1e-10)
    np.testing.assert_allclose(dist.mean(), 25.0)
    np.testing.assert_allclose(dist.var(), 9.0)
    np.testing.assert_allclose(dist.mode(), 25.0)
    np.testing.assert_allclose(dist.crps([20.0, 25.5]), normal_crps([20.0, 25.5], 25.0, 3.0))


def test_the_log_density_does_not_underflow():
    dist = GaussianMixture([[0.0, 0.0]], [[0.0, 1.0]], [[1.0, 1.0]])
    assert dist.pdf(1e6)[0] == 0
    # The nearer component has e^(1e6 - 1/2) times the density of the other.
    assert dist.logpdf(1e6)[0] == pytest.approx(stats.norm.logpdf(1e6, 1.0) + np.log(0.5))
    assert np.isneginf(dist.logpdf(1e300)[0])


def test_density_moments_and_crps_are_those_of_the_components():
    dist = make("units per row")
    means, stds = dist.location + dist.scale * dist.means[..., 0], dist.scale * dist.stds[..., 0]
    w, y = dist.weights, np.array([-2.6, 0.1, 9.0])
    np.testing.assert_allclose(w.sum(axis=1), 1.0)
    known = np.sum(w * stats.norm.pdf(y[:, None], means, stds), axis=1)
    np.testing.assert_allclose(dist.pdf(y), known, rtol=1e-10)
    known = np.sum(w * stats.norm.cdf(y[:, None], means, stds), axis=1)
    np.testing.assert_allclose(dist.cdf(y), known, rtol=1e-10)
    mean = np.sum(w * means, axis=1)
    np.testing.assert_allclose(dist.mean(), mean)
    np.testing.assert_allclose(dist.var(), np.sum(w * (stds**2 + means**2), axis=1) - mean**2)
    np.testing.assert_allclose(dist.crps(y), mixture_crps(y, means, stds, w))


def test_the_outermost_quantiles_are_finite():
    y = make().ppf([0.0, 1.0])
    np.testing.assert_allclose(make().cdf(y)[:, 0], module.TAIL, rtol=1e-9)
    np.testing.assert_allclose(1.0 - make().cdf(y)[:, 1], module.TAIL, rtol=1e-3)


# --- the mode -------------------------------------------------------------------------------------


def test_the_mode_is_where_the_density_is_highest():
    rng = np.random.default_rng(3)
    dist = GaussianMixture(
        rng.normal(size=(50, 4)), rng.normal(size=(50, 4)), rng.uniform(0.2, 1.0, (50, 4))
    )
    grid = np.linspace(-4, 4, 8001)
    values = dist.pdf(grid, grid=True)
    assert np.all(dist.pdf(dist.mode()) >= values.max(axis=1) * (1 - 1e-12))
    assert np.all(np.abs(dist.mode() - grid[values.argmax(axis=1)]) < 1e-3)


def test_a_mode_between_the_means_is_found():
    """Two equal components nearer than two deviations have one mode, in the middle."""
    near = GaussianMixture([[0.0, 0.0]], [[-0.95, 0.95]], [[1.0, 1.0]], 7.0, 2.0)
    np.testing.assert_allclose(near.mode(), 7.0, atol=1e-3)
    apart = GaussianMixture([[0.0, 0.01]], [[-3.0, 3.0]], [[1.0, 1.0]])
    np.testing.assert_allclose(apart.mode(), 3.0, atol=1e-6)


def test_a_narrow_peak_is_the_mode_however_light():
    dist = GaussianMixture(np.log([[0.999, 0.001]]), [[0.0, 5.0]], [[1.0, 1e-6]])
    np.testing.assert_allclose(dist.mode(), 5.0, atol=1e-6)


def test_the_mode_of_several_outputs():
    dist = plane_mixture()
    z = dist.mode()
    assert z.shape == (3, 2)
    steps = 1e-3 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    around = dist.pdf(z[:, None] + steps)
    assert np.all(around < dist.pdf(z)[:, None])
    grid = dist.location + dist.scale * np.stack(
        np.meshgrid(*[np.linspace(-3, 3, 121)] * 2), axis=-1
    ).reshape(-1, 2)
    assert np.all(dist.pdf(z) >= dist.pdf(grid, grid=True).max(axis=1) * (1 - 1e-9))


# --- at the edge of floats ------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [2.0**1000, 2.0**-1000, 2.0**-1018])
def test_units_of_any_magnitude_only_scale(scale):
    """About 1e301 and 1e-301; powers of two round nothing, so bits are compared."""
    one, dist = make(), make(scale=scale)
    z = np.array([-1.0, 0.3, 5.0])
    for name in ("mean", "std", "mode", "median"):
        np.testing.assert_array_equal(getattr(dist, name)(), scale * getattr(one, name)())
    np.testing.assert_array_equal(dist.ppf(LEVELS), scale * one.ppf(LEVELS))
    np.testing.assert_array_equal(dist.rvs(4, 0), scale * one.rvs(4, 0))
    np.testing.assert_array_equal(dist.crps(scale * z), scale * one.crps(z))
    np.testing.assert_array_equal(dist.cdf(scale * z), one.cdf(z))
    np.testing.assert_allclose(dist.logpdf(scale * z) + np.log(scale), one.logpdf(z), rtol=1e-10)
    assert np.all(dist.var() >= 0)
    np.testing.assert_array_equal(dist.cdf([-1e308, 1e308], grid=True)[:, 1] > 0.5, True)
    assert not np.any(np.isnan(dist.logpdf([-1e308, 1e308], grid=True)))


@pytest.mark.parametrize("std", [1e-12, 1e-6, 1e-3, 1e6])
@pytest.mark.parametrize("far", [0.0, 1.0, 1e3])
def test_narrow_wide_and_far_components(std, far):
    dist = GaussianMixture(np.log([[0.3, 0.3, 0.4]]), [[0.0, far, -far]], [[std, 1.0, 2.0 * std]])
    q = np.concatenate([[1e-9, 0.3, 0.4, 0.5, 0.7, 1 - 1e-9], np.linspace(0.01, 0.99, 30)])
    y = dist.ppf(q)
    # A quantile is a float: the CDF's rise from one float to the next is the room it has.
    room = dist.cdf(np.nextafter(y, np.inf)) - dist.cdf(np.nextafter(y, -np.inf))
    assert np.all(np.abs(dist.cdf(y) - q) <= 1e-9 + room)
    assert np.all(np.diff(y[:, np.argsort(q)], axis=1) >= 0)
    known = 0.3 * (std**2 + 1 + far**2) + 0.4 * (4 * std**2 + far**2)
    known -= (0.3 * far - 0.4 * far) ** 2
    np.testing.assert_allclose(dist.var(), known, rtol=1e-9)
    assert np.all(dist.crps([0.0]) >= 0)
    assert np.isfinite(dist.mode()).all()


def test_a_component_without_weight_counts_for_nothing():
    dist = GaussianMixture([[0.0, -np.inf]], [[1.0, 1e200]], [[2.0, 1e-200]])
    known = stats.norm(1.0, 2.0)
    np.testing.assert_allclose(dist.ppf(LEVELS)[0], known.ppf(LEVELS), rtol=1e-9)
    np.testing.assert_allclose(dist.logpdf(3.0), known.logpdf(3.0))
    np.testing.assert_allclose(dist.std(), 2.0)
    np.testing.assert_allclose(dist.mode(), 1.0)
    np.testing.assert_allclose(dist.cdf(1.0), 0.5)
    np.testing.assert_allclose(dist.crps([3.0]), normal_crps([3.0], 1.0, 2.0))


@settings(max_examples=40, deadline=None)
@given(
    logits=hnp.arrays(float, (2, 4), elements=st.floats(-50, 50)),
    means=hnp.arrays(float, (2, 4), elements=st.floats(-1e3, 1e3)),
    stds=hnp.arrays(float, (2, 4), elements=st.floats(1e-3, 1e3)),
    levels=hnp.arrays(float, 6, elements=st.floats(0, 1)),
)
def test_any_mixture_has_quantiles_that_invert_its_cdf(logits, means, stds, levels):
    dist = GaussianMixture(logits, means, stds)
    levels = np.sort(levels)
    y = dist.ppf(levels)
    assert np.all(np.diff(y, axis=1) >= 0)
    np.testing.assert_allclose(dist.cdf(y), np.tile(levels, (2, 1)), atol=1e-9)
    grid = np.linspace(-3e3, 3e3, 50)
    cdf = dist.cdf(grid, grid=True)
    assert np.all((cdf >= 0) & (cdf <= 1) & (np.diff(cdf, axis=1, prepend=0.0) >= -1e-15))
    peak = dist.logpdf(dist.mode())
    assert np.all(peak >= dist.logpdf(means).max(axis=1) - 1e-9)
    assert np.all(dist.crps(means[:, 0]) >= 0)


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda: GaussianMixture([[0.0]], [[0.0, 1.0]], [[1.0, 1.0]]), r"expected log_weights"),
        (lambda: GaussianMixture([0.0], [0.0], [1.0]), r"expected log_weights"),
        (lambda: GaussianMixture([[]], [[]], [[]]), "needs a component"),
        (lambda: GaussianMixture([[0.0]], [[0.0]], [[0.0]]), "must be positive numbers; got 0"),
        (lambda: GaussianMixture([[0.0]], [[0.0]], [[np.nan]]), "positive numbers; got nan"),
        (lambda: GaussianMixture([[0.0]], [[np.nan]], [[1.0]]), "means must be finite"),
        (lambda: GaussianMixture([[-np.inf]], [[0.0]], [[1.0]]), "needs a finite log weight"),
        (
            lambda: GaussianMixture([[0.0, np.nan]], [[0.0] * 2], [[1.0] * 2]),
            "needs a finite log weight",
        ),
        (lambda: make(scale=0.0), "scale must be positive; got 0"),
        (lambda: make(location=[1.0, 2.0]), r"location must be .* got shape \(2,\)"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(action, message):
    with pytest.raises(NkcmeError, match=message) as caught:
        action()
    assert "\n" not in str(caught.value)
