"""Mixtures of Gaussians: against scipy, quadrature and the limits of floats."""

from __future__ import annotations

import numpy as np
import pytest
import scoringrules
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from nkcme.distributions import gaussian_mixture as module
from nkcme.distributions.gaussian_mixture import GaussianMixture
from nkcme.errors import NkcmeError
from support.quadrature import line, plane

ROWS, K = 4, 3
RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(ROWS, K))
WEIGHTS = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
MEANS = RNG.normal(scale=2.0, size=(ROWS, K))
STDS = RNG.uniform(0.3, 1.5, size=(ROWS, K))
LEVELS = np.array([1e-9, 0.01, 0.2, 0.5, 0.77, 0.99, 1 - 1e-9])
UNITS = {
    "standard": {},
    "scalar": {"location": 10.0, "scale": 3.0},
    "per row": {
        "location": [[1.0], [2.0], [-3.0], [0.0]],
        "scale": [[0.5], [2.0], [7.0], [1.0]],
    },
}
every_unit = pytest.mark.parametrize("units", UNITS)


def make(units="standard", **options):
    return GaussianMixture(LOGITS, MEANS, STDS, **(UNITS[units] | options))


def in_y(dist, z):
    """Standard points (m,) as y, (n_rows, m)."""
    return np.broadcast_to(dist.location + dist.scale * z, (dist.n_rows, len(z)))


def both(seed=1, rows=3):
    rng = np.random.default_rng(seed)
    return GaussianMixture(
        rng.normal(size=(rows, K)),
        rng.normal(size=(rows, K, 2)),
        rng.uniform(0.4, 1.2, size=(rows, K, 2)),
        location=[1.0, -2.0],
        scale=[2.0, 0.5],
    )


# --- one component is scipy's normal --------------------------------------------------------------


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
    np.testing.assert_allclose(
        dist.crps([20.0, 25.5]), scoringrules.crps_normal(np.array([20.0, 25.5]), 25.0, 3.0)
    )


def test_the_log_density_does_not_underflow():
    dist = GaussianMixture([[0.0, 0.0]], [[0.0, 1.0]], [[1.0, 1.0]])
    assert dist.pdf(1e6)[0] == 0
    # The nearer component has e^(1e6 - 1/2) times the density of the other.
    assert dist.logpdf(1e6)[0] == pytest.approx(stats.norm.logpdf(1e6, 1.0) + np.log(0.5))
    assert np.isneginf(dist.logpdf(1e300)[0])


# --- mixtures by quadrature -----------------------------------------------------------------------


@every_unit
def test_the_density_integrates_to_the_cdf_and_has_the_moments(units):
    dist = make(units)
    z, weight = line(np.linspace(-6, 6, 25), n=40)
    y = in_y(dist, z)
    density = dist.pdf(y) * dist.scale
    known = np.einsum("nk,nkm->nm", WEIGHTS, stats.norm.pdf(z, MEANS[..., None], STDS[..., None]))
    np.testing.assert_allclose(density, known, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(density @ weight, 1.0, rtol=1e-9)
    at = np.linspace(-6, 6, 25)
    below = np.stack([(density * weight)[:, z < a].sum(axis=1) for a in at], axis=1)
    np.testing.assert_allclose(dist.cdf(in_y(dist, at)), below, atol=1e-9)
    mean = (density * y) @ weight
    np.testing.assert_allclose(dist.mean(), mean, rtol=1e-9)
    var = (density * np.square(y - mean[:, None])) @ weight
    np.testing.assert_allclose(dist.var(), var, rtol=1e-9)
    np.testing.assert_allclose(dist.std(), np.sqrt(var), rtol=1e-9)


@every_unit
def test_quantiles_invert_the_cdf(units):
    dist = make(units)
    y = dist.ppf(LEVELS)
    assert y.shape == (ROWS, len(LEVELS))
    np.testing.assert_allclose(dist.cdf(y), np.tile(LEVELS, (ROWS, 1)), rtol=1e-9)
    assert np.all(np.diff(y, axis=1) > 0)
    np.testing.assert_array_equal(dist.median(), dist.ppf([0.5])[:, 0])
    np.testing.assert_array_equal(dist.ppf(LEVELS[::-1]), y[:, ::-1])


def test_the_outermost_quantiles_are_finite():
    y = make().ppf([0.0, 1.0])
    np.testing.assert_allclose(make().cdf(y)[:, 0], module.TAIL, rtol=1e-9)
    np.testing.assert_allclose(1.0 - make().cdf(y)[:, 1], module.TAIL, rtol=1e-3)


@every_unit
def test_crps_is_the_integral_of_the_squared_gap(units):
    dist = make(units)
    z = np.array([-2.6, 0.1, 1.4, 9.0])
    t, weight = line([*np.linspace(-6, 6, 25), *z], n=60)
    gap = np.square(dist.cdf(in_y(dist, t)) - (t >= z[:, None]))
    y = np.broadcast_to(dist.location[:, 0] + dist.scale[:, 0] * z, ROWS)
    np.testing.assert_allclose(dist.crps(y), gap @ weight * dist.scale[:, 0], rtol=1e-8)
    known = scoringrules.crps_mixnorm(
        y, dist.location + dist.scale * MEANS, dist.scale * STDS, WEIGHTS
    )
    np.testing.assert_allclose(dist.crps(y), known, rtol=1e-9)


def test_draws_follow_the_cdf():
    dist = make("per row")
    draws = dist.rvs(2000, random_state=1)
    assert draws.shape == (2000, ROWS)
    np.testing.assert_array_equal(draws, dist.rvs(2000, random_state=1))
    uniform = dist.cdf(draws.T.copy())
    for row in uniform:
        assert stats.kstest(row, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(uniform)[0, 1]) < 0.08
    assert dist.rvs(0).shape == (0, ROWS)


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
    dist = both()
    z = dist.mode()
    assert z.shape == (3, 2)
    steps = 1e-3 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    around = dist.pdf(z[:, None] + steps)
    assert np.all(around < dist.pdf(z)[:, None])
    grid = dist.location + dist.scale * np.stack(
        np.meshgrid(*[np.linspace(-3, 3, 121)] * 2), axis=-1
    ).reshape(-1, 2)
    assert np.all(dist.pdf(z) >= dist.pdf(grid, grid=True).max(axis=1) * (1 - 1e-9))


# --- several outputs ------------------------------------------------------------------------------


def test_several_outputs_have_a_joint_density_and_cdf():
    dist = both()
    z, weight = plane([-4.0, -2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 4.0], n=14)
    y = dist.location[0] + dist.scale[0] * z
    density = dist.pdf(y, grid=True)  # the scales' product is one
    np.testing.assert_allclose(density @ weight, 1.0, rtol=1e-6)
    corner = np.array([0.5, 0.5])
    below = np.all(z < corner, axis=1)
    cdf = dist.cdf(dist.location[0] + dist.scale[0] * corner)
    np.testing.assert_allclose(density[:, below] @ weight[below], cdf, rtol=1e-6)
    mean = np.einsum("nm,md->nd", density * weight, y)
    np.testing.assert_allclose(dist.mean(), mean, rtol=1e-5)
    square = np.einsum("nm,md->nd", density * weight, np.square(y))
    np.testing.assert_allclose(dist.var(), square - mean**2, rtol=1e-4)
    draws = dist.rvs(20_000, random_state=0)
    assert draws.shape == (20_000, 3, 2)
    error = dist.std() / np.sqrt(20_000)
    assert np.all(np.abs(draws.mean(axis=0) - dist.mean()) < 5 * error)
    share = np.mean(np.all(draws <= dist.location[0], axis=-1), axis=0)
    np.testing.assert_allclose(share, dist.cdf(dist.location[0]), atol=0.02)
    for ask in (lambda: dist.ppf(0.5), lambda: dist.crps(np.zeros(3))):
        with pytest.raises(NkcmeError, match="one output only"):
            ask()


# --- at the edge of floats ------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [2.0**1000, 2.0**-1000, 2.0**-1018])
def test_units_of_any_magnitude_only_scale(scale):
    """About 1e301 and 1e-301; powers of two round nothing, so bits are compared."""
    one, dist = make(), make(scale=scale)
    z = np.array([-1.0, 0.3, 2.0, 5.0])
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


# --- rows, blocks, refusals -----------------------------------------------------------------------


def test_rows_can_be_chosen():
    dist = make("per row")
    for rows in (1, slice(1, 3), np.array([2, 0]), np.array([True, False, True, False])):
        part = dist[rows]
        chosen = np.arange(ROWS)[[rows] if isinstance(rows, int) else rows]
        assert len(part) == len(chosen)
        np.testing.assert_array_equal(part.ppf([0.2, 0.9]), dist.ppf([0.2, 0.9])[chosen])
        np.testing.assert_array_equal(part.mode(), dist.mode()[chosen])
        np.testing.assert_array_equal(part.pdf(0.3), dist.pdf(0.3)[chosen])
    assert dist.smoothed() is dist
    nobody = dist[:0]
    for answer, shape in (
        (nobody.ppf([0.1, 0.2]), (0, 2)),
        (nobody.pdf([1.0], grid=True), (0, 1)),
        (nobody.mean(), (0,)),
        (nobody.std(), (0,)),
        (nobody.mode(), (0,)),
        (nobody.rvs(3), (3, 0)),
        (nobody.crps([]), (0,)),
    ):
        assert answer.shape == shape


@pytest.mark.parametrize("dist", [make("per row"), make("scalar"), both()], ids=repr)
def test_blocks_of_rows_and_points_give_what_the_whole_gives(dist, monkeypatch):
    rng = np.random.default_rng(0)
    d = dist.n_outputs
    grid, own = (rng.normal(size=(n, d)) if d > 1 else rng.normal(size=n) for n in (7, len(dist)))

    def ask():
        answers = [
            dist.logpdf(grid, grid=True),
            dist.pdf(own),
            dist.cdf(grid, grid=True),
            dist.mode(),
            dist.rvs(5, 0),
        ]
        return answers + ([dist.ppf(LEVELS), dist.crps(own)] if d == 1 else [])

    whole = ask()
    seen = []
    original = GaussianMixture._log_components

    def watch(self, z):
        seen.append(self.n_rows * z.shape[1] * self.n_components * self.n_outputs * 8)
        return original(self, z)

    monkeypatch.setattr(GaussianMixture, "_log_components", watch)
    monkeypatch.setattr(module, "MAX_MEMORY", 800)
    for ours, theirs in zip(ask(), whole, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert max(seen) <= 800


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda: GaussianMixture([[0.0]], [[0.0, 1.0]], [[1.0, 1.0]]), r"expected log_weights"),
        (lambda: GaussianMixture([0.0], [0.0], [1.0]), r"expected log_weights"),
        (lambda: GaussianMixture([[]], [[]], [[]]), "needs a component"),
        (lambda: GaussianMixture([[0.0]], [[0.0]], [[0.0]]), "must be positive numbers; got 0"),
        (lambda: GaussianMixture([[0.0]], [[0.0]], [[np.nan]]), "positive numbers; got nan"),
        (lambda: GaussianMixture([[0.0]], [[np.nan]], [[1.0]]), "means must be finite"),
        (lambda: GaussianMixture([[-np.inf]], [[0.0]], [[1.0]]), "needs a log weight"),
        (lambda: GaussianMixture([[0.0, np.nan]], [[0.0] * 2], [[1.0] * 2]), "needs a log weight"),
        (lambda: make(scale=0.0), "scale must be positive; got 0"),
        (lambda: make(location=[1.0, 2.0]), r"location must be .* got shape \(2,\)"),
        (lambda: make().rvs(-1), "must not be negative; got -1"),
        (lambda: make().crps([1.0]), r"one y for each of 4 rows; got \(1,\)"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(action, message):
    with pytest.raises(NkcmeError, match=message) as caught:
        action()
    assert "\n" not in str(caught.value)


def test_it_says_what_it_is():
    assert repr(make()) == "GaussianMixture(4 rows, 3 components, 1 outputs)"
