"""Laws on a support: whatever is asked, it is the same law, and none of it lies elsewhere."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from nkcme.distributions.piecewise_uniform import PiecewiseUniform
from nkcme.distributions.support import EVERYTHING, Support
from nkcme.distributions.tails import Tail
from nkcme.errors import NkcmeError

ROWS = 4

SUPPORTS = {
    "everything": EVERYTHING,
    "bounded below": Support(lower=-0.5),
    "zero-inflated": Support(lower=-0.5, reached=(-0.5,)),
    "with other odds": Support(lower=-0.5, reached=(-0.5,), odds=((1.0, 0.5),)),
    "capped": Support(lower=-0.3, upper=0.7, reached=(0.7,)),
    "wide": Support(lower=-9, upper=9),
    "beyond the edges": Support(lower=5.0),
    "below the edges": Support(upper=-4.0),
    "a distant bound": Support(lower=-9, reached=(-9,)),
    "whole numbers": Support(integer=True),
    "counts": Support(lower=0.0, integer=True),
    "values": Support(values=(-1.0, 0.2, 0.5)),
    "values and others": Support(values=(-1.0, 0.2, 0.5), unseen=0.1),
}

every_support = pytest.mark.parametrize("name", SUPPORTS)


@pytest.fixture(scope="module")
def unbounded():
    rng = np.random.default_rng(0)
    edges = np.sort(rng.normal(size=(ROWS, 12)), axis=1)
    edges[1, 4], edges[2, 4], edges[2, 5] = edges[1, 5], edges[2, 3], edges[2, 3]  # point masses
    lower = Tail(np.array([0.02, 0.1, 0.01, 0.2]), np.array([0.3, 1.0, 0.2, 0.5]), 0.2)
    upper = Tail(np.array([0.05, 0.1, 0.02, 0.01]), np.array([0.3, 1.0, 0.2, 0.5]), 0.0)
    mass = rng.dirichlet(np.ones(11), ROWS) * (1 - lower.mass - upper.mass)[:, None]
    below = lower.mass[:, None] + np.concatenate([np.zeros((ROWS, 1)), np.cumsum(mass, 1)], axis=1)
    return PiecewiseUniform(edges, below, lower, upper)


def quantile_sample(law, n=200_000):
    """Evenly spaced quantiles, which stand for the law."""
    return law.quantiles(np.tile((np.arange(n) + 0.5) / n, (ROWS, 1)))


@every_support
def test_quantiles_invert_the_cdf(name, unbounded):
    law = SUPPORTS[name].restrict(unbounded)
    q = np.linspace(0.0005, 0.9995, 997)
    y = law.ppf(q)
    upto = law.cdf(y)
    assert np.all(upto - law.pmf(y) <= q + 1e-9)
    assert np.all(upto >= q - 1e-9)


@every_support
def test_no_mass_lies_elsewhere(name, unbounded):
    law = SUPPORTS[name].restrict(unbounded)
    assert np.all(SUPPORTS[name].contains(law.rvs(2000, random_state=0)))


@every_support
def test_moments_and_scores_are_those_of_the_law(name, unbounded):
    law = SUPPORTS[name].restrict(unbounded)
    x = quantile_sample(law)
    np.testing.assert_allclose(law.mean(), x.mean(axis=1), atol=1e-4)
    np.testing.assert_allclose(law.var(), x.var(axis=1), rtol=3e-3)
    y = np.array([-1.7, 0.1, 0.4, 3.0])
    level = (np.arange(x.shape[1]) + 0.5) / x.shape[1]
    # E|X - y| - E|X - X'| / 2, the second by the mean difference of sorted values.
    spread = 2 * np.mean(x * level, axis=1) - x.mean(axis=1)
    expected = np.mean(np.abs(x - y[:, None]), axis=1) - spread
    np.testing.assert_allclose(law.crps(y), expected, atol=1e-5)


@every_support
def test_density_and_point_masses_integrate_to_the_cdf(name, unbounded):
    law = SUPPORTS[name].restrict(unbounded)
    values, masses = law.point_masses()
    for row in range(ROWS):
        one = law[row]
        places = np.unique(one.edges[0]) if isinstance(one, PiecewiseUniform) else values
        if SUPPORTS[name].integer:  # thousands of values, without density between any of them
            places = places[:: len(places) // 5]

        def density(y, one=one):
            return 0.0 if one.pmf([y])[0] > 0 else one.pdf([y])[0]

        ends = np.concatenate([[-np.inf], places, [np.inf]])
        total = sum(quad(density, a, b, limit=60)[0] for a, b in pairwise(ends))
        assert total + masses[row].sum() == pytest.approx(1.0, abs=1e-5)
        # Up to a point in between as well.
        stop = places[len(places) // 2]
        part = sum(quad(density, a, b)[0] for a, b in pairwise(ends) if b <= stop)
        part += masses[row, values <= stop].sum()
        assert law.cdf(np.full(ROWS, stop))[row] == pytest.approx(part, abs=1e-5)


@pytest.mark.parametrize("name", [name for name in SUPPORTS if SUPPORTS[name].is_discrete])
def test_the_mode_is_the_most_probable_value(name, unbounded):
    law = SUPPORTS[name].restrict(unbounded)
    values, masses = law.point_masses()
    np.testing.assert_allclose(masses, law.pmf(values, grid=True), atol=1e-12)
    np.testing.assert_allclose(law.pmf(law.mode()), masses.max(axis=1), atol=1e-12)


def test_values_beyond_a_cap_lie_on_it(unbounded):
    law = SUPPORTS["capped"].restrict(unbounded)
    # The law between the bounds is that of all values above the lower one.
    point = np.full((ROWS, 1), 0.7)
    above = 1 - unbounded.probability(point, inclusive=False)
    kept = 1 - unbounded.probability(np.full((ROWS, 1), -0.3), inclusive=False)
    np.testing.assert_allclose(law.pmf(np.full(ROWS, 0.7)), (above / kept)[:, 0])


def test_a_law_far_from_the_support_lies_on_its_bound(unbounded):
    plain = PiecewiseUniform(unbounded.edges, np.tile(np.linspace(0, 1, 12), (ROWS, 1)))
    law = Support(lower=50.0, upper=60.0).restrict(plain)
    np.testing.assert_array_equal(law.rvs(5, random_state=0), 50.0)


def test_a_widened_law_keeps_its_mean_and_gains_the_variance(unbounded):
    added = np.zeros(unbounded.n_rows)
    added[1:] = np.geomspace(0.01, 1e4, unbounded.n_rows - 1)
    wider = unbounded.widened(added)
    np.testing.assert_allclose(wider.mean(), unbounded.mean())
    np.testing.assert_allclose(wider.var(), unbounded.var() + np.square(added))
    np.testing.assert_array_equal(wider.edges[0], unbounded.edges[0])
    point = PiecewiseUniform(np.full((1, 2), 3.0), np.array([[0.0, 1.0]]))
    np.testing.assert_array_equal(point.widened(np.ones(1)).ppf([0.1, 0.9]), [[3.0, 3.0]])


def test_a_calibrated_law_is_the_map_of_its_cdf(unbounded):
    plain = PiecewiseUniform(unbounded.edges, np.tile(np.linspace(0, 1, 12), (ROWS, 1)))
    levels = np.linspace(0, 1, 101)
    law = plain.calibrated(levels**2)
    y = plain.ppf([0.05, 0.333, 0.9])
    expected = np.interp(plain.cdf(y), levels, levels**2)
    np.testing.assert_allclose(law.cdf(y), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("support", "text"),
    [
        (EVERYTHING, "numbers"),
        (Support(lower=0.0, integer=True), "whole numbers from 0"),
        (Support(upper=50.0, reached=(50.0,)), "numbers up to 50 with a point mass at 50"),
        (Support(values=(1.0, 2.0, 3.0, 5.0)), "4 values (1, 2, 3, ... 5)"),
    ],
)
def test_a_support_describes_itself(support, text):
    assert str(support) == text


def test_rounded_training_values_are_recognised():
    values = Support(values=(0.1, 0.25, 7.0))
    rounded = np.float32([0.1, 7.0, 0.25]).astype(float)
    np.testing.assert_array_equal(
        values.snapped(rounded, 1e-6 * (1 + np.abs(rounded))), [0.1, 7.0, 0.25]
    )
    capped = Support(lower=0.0, upper=1.3, reached=(1.3,))
    rounded = np.float32([1.3, 0.7, -1e-9]).astype(float)
    np.testing.assert_allclose(
        capped.snapped(rounded, 1e-6 * (1 + np.abs(rounded))), [1.3, 0.7, 0.0], rtol=1e-6
    )
    assert capped.snapped(rounded, 1e-6 * (1 + np.abs(rounded)))[0] == 1.3


def test_bounds_in_the_wrong_order_are_refused():
    with pytest.raises(NkcmeError, match="lower < upper; got"):
        Support(lower=1.0, upper=0.0)
