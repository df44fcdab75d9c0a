"""Laws of whole numbers, against all probabilities added one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkcme.distributions.piecewise_uniform import PiecewiseUniform
from nkcme.distributions.tails import Tail
from nkcme.distributions.whole_numbers import WholeNumbers
from nkcme.errors import NkcmeError

ROWS = 5


def continuous(seed, location, scale, *, n_edges=9, shape=0.1, tails=True, jumps=True):
    """Laws with edges of this location and scale, of which some coincide."""
    rng = np.random.default_rng(seed)
    edges = location + scale * np.sort(rng.normal(size=(ROWS, n_edges)), axis=1)
    if jumps:
        edges[1, 3] = edges[1, 4]
        edges[2, :3] = edges[2, 0]  # on the first edge
        edges[3] = np.sort(np.rint(edges[3]) + 0.5)  # where rounding changes
        edges[4, -2] = edges[4, -1]
    lower, upper = rng.uniform(0.01, 0.1, size=(2, ROWS))
    mass = rng.dirichlet(np.ones(n_edges - 1), ROWS)
    below = np.concatenate([np.zeros((ROWS, 1)), np.cumsum(mass, axis=1)], axis=1)
    below = lower[:, None] + (1.0 - lower - upper)[:, None] * np.minimum(below, 1.0)
    if not tails:
        return PiecewiseUniform(edges, below)
    scales = scale * rng.uniform(0.1, 0.5, size=(2, ROWS))
    tails = (Tail(mass, s, shape) for mass, s in zip((lower, upper), scales, strict=True))
    return PiecewiseUniform(edges, below, *tails)


def listed(law, low, high):
    """The whole numbers from low to high and the probabilities of at most each, one by one."""
    k = np.arange(low, high + 1.0)
    upto = law.law.probability(np.tile(k + 0.5, (ROWS, 1)), inclusive=True)
    upto[:, k < law.lower] = 0.0
    upto[:, k >= law.upper] = 1.0
    return k, upto


def check(law, low, high, y):
    k, upto = listed(law, low, high)
    # Nothing lies below the list; what lies above it is too rare to matter.
    masses = np.diff(upto, axis=1, prepend=0.0)
    mean = masses @ k
    var = np.sum(masses * (k - mean[:, None]) ** 2, axis=1)
    scale = np.sqrt(var).max() + 0.01
    np.testing.assert_allclose(law.mean(), mean, atol=1e-6 * scale)
    np.testing.assert_allclose(law.var(), var, rtol=4e-6, atol=1e-9)
    np.testing.assert_allclose(law.cdf(k, grid=True), upto, atol=1e-12)
    np.testing.assert_allclose(law.pmf(k, grid=True), masses, atol=1e-12)
    np.testing.assert_allclose(law.pmf(law.mode()), masses.max(axis=1), atol=1e-10)
    assert np.all(np.isin(law.mode(), k))
    for point in y:
        # E|X - y| - E|X - X'| / 2.
        spread = np.sum(upto[:, :-1] * (1.0 - upto[:, :-1]), axis=1)
        expected = np.sum(masses * np.abs(k - point), axis=1) - spread
        found = law.crps(np.full(ROWS, point))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * scale)


LAWS = {
    "many edges between two whole numbers": (0.3, 0.4, {"n_edges": 40}),
    "one whole number": (7.2, 1e-3, {}),
    "halfway": (3.5, 1e-7, {}),
    "a few": (2.0, 3.0, {}),
    "wide": (40.0, 300.0, {}),
    "wide, many edges": (-500.0, 300.0, {"n_edges": 60}),
    "exponential tails": (0.0, 30.0, {"shape": 0.0}),
    "no tails": (5.0, 20.0, {"tails": False}),
    "one edge wide": (0.0, 8.0, {"n_edges": 6, "jumps": False}),
}
every_law = pytest.mark.parametrize("name", LAWS)


def named(name):
    location, scale, options = LAWS[name]
    return continuous(0, location, scale, **options), location, max(scale, 1.0)


@every_law
def test_unbounded(name):
    law, location, scale = named(name)
    reach = np.ceil(60 * scale)
    y = location + scale * np.array([-9.0, -2.2, -0.1, 0.0, 0.3, 1.9, 12.0])
    check(
        WholeNumbers(law), np.rint(location) - reach, np.rint(location) + reach, [*np.rint(y), y[1]]
    )


@every_law
@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (-0.2, 40.0), (-40.0, -1.5), (1.5, 9.0)])
def test_within_bounds(name, bounds):
    law, location, scale = named(name)
    lower, upper = (np.rint(location + scale * bound) for bound in bounds)
    whole = WholeNumbers(law, lower - 0.4, upper + 0.7)
    y = [lower - 3.0, lower, 0.5 * (lower + upper), np.rint(0.3 * lower + 0.7 * upper), upper + 2.5]
    check(whole, lower - 5, upper + 5, y)
    samples = whole.rvs(50, random_state=0)
    assert np.all((samples >= lower) & (samples <= upper) & (samples == np.rint(samples)))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 3e3])
def test_heavy_tails_within_bounds(scale):
    law = continuous(1, 10.0, scale, shape=0.4)
    lower, upper = np.rint(10.0 - 20.0 * scale), np.rint(10.0 + 40.0 * scale)
    check(WholeNumbers(law, lower, upper), lower, upper, [10.0, 13.0, np.rint(10.0 + 15.0 * scale)])


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    location=st.floats(-50.0, 50.0),
    scale=st.floats(-3.0, 2.0),
    shape=st.just(0.0) | st.floats(1e-6, 0.45),
    lower=st.integers(-300, 0),
    width=st.integers(1, 500),
    y=st.floats(-320.0, 520.0),
)
def test_every_law(seed, location, scale, shape, lower, width, y):
    law = continuous(seed, location, 10.0**scale, shape=shape)
    check(WholeNumbers(law, lower, lower + width), lower - 3, lower + width + 3, [y, np.rint(y)])


@every_law
def test_quantiles_invert_the_cdf(name):
    law = WholeNumbers(named(name)[0])
    q = np.linspace(1e-6, 1.0 - 1e-6, 501)
    y = law.ppf(q)
    upto = law.cdf(y)
    assert np.all(upto >= q - 1e-12)
    assert np.all(law.cdf(y - 1.0) <= q + 1e-12)


@pytest.mark.parametrize("shape", [0.0, 0.4])
def test_at_a_huge_scale_rounding_does_not_matter(shape):
    law = continuous(2, 3e8, 1e9, shape=shape, jumps=False)
    whole = WholeNumbers(law)
    np.testing.assert_allclose(whole.mean(), law.mean(), rtol=1e-7)
    np.testing.assert_allclose(whole.std(), law.std(), rtol=1e-7)
    for y in (-2e10, 0.0, 3e8, 1e9, 5e10):
        np.testing.assert_allclose(whole.crps(np.full(ROWS, y)), law.crps(np.full(ROWS, y)))
    near = np.rint(law.ppf([0.2, 0.7]))
    np.testing.assert_allclose(whole.logpdf(near), law.logpdf(near), rtol=1e-4)


def test_far_in_the_tail_probabilities_keep_their_digits():
    law = continuous(0, 0.0, 1.0, shape=0.1)
    edge, tail = law.edges[:, -1], law.upper
    k = np.full(ROWS, 1000.0)
    t = np.stack([k - 0.5 - edge, k + 0.5 - edge], axis=1)
    expected = tail.mass * -np.diff(tail.survival(t), axis=1)[:, 0]
    assert expected.max() < 1e-16
    np.testing.assert_allclose(WholeNumbers(law).pmf(k), expected, rtol=1e-9)


def test_point_masses_are_listed_if_they_are_not_too_many():
    law = WholeNumbers(continuous(0, 40.0, 10.0), lower=0.0)
    values, masses = law.point_masses()
    np.testing.assert_array_equal(values, np.arange(values[0], values[-1] + 1.0))
    np.testing.assert_array_equal(masses, law.pmf(values, grid=True))
    np.testing.assert_allclose(masses.sum(axis=1), 1.0, atol=1e-8)
    with pytest.raises(NkcmeError, match="ask pmf for the values of interest"):
        WholeNumbers(continuous(0, 0.0, 1e6)).point_masses()


def test_rows_and_points_at_infinity():
    law = WholeNumbers(continuous(0, 4.0, 3.0), lower=0.0)
    np.testing.assert_array_equal(law[[2, 0]].mean(), law.mean()[[2, 0]])
    np.testing.assert_array_equal(law.cdf([-np.inf, np.inf], grid=True), np.tile([0, 1], (ROWS, 1)))
    np.testing.assert_array_equal(law.crps(np.full(ROWS, np.inf)), np.inf)
    none = law[np.zeros(ROWS, bool)]
    assert none.mean().shape == none.std().shape == none.mode().shape == none.crps([]).shape == (0,)
    assert none.point_masses()[1].shape == (0, 0)
