"""The toy problems: the laws of all, what is known of each, and the paper's evaluation."""

import numpy as np
import pytest
from scipy import stats

from nkcme.datasets import TOYS, evaluate_was1, load_toy, was1_floor
from support.refusals import refusal
from support.toy_laws import every_law

every_toy = pytest.mark.parametrize("toy", TOYS.values(), ids=TOYS)

# Both ends, both sides of the ring's steps at |x| = 1, and ordinary points. Not bimodal's x = 0.
POINTS = {
    "bimodal": [-5.0, -1.3, -0.02, 0.4, 2.0, 5.0],
    "skewed": [-5.0, -1.3, 0.0, 0.4, 2.0, 5.0],
    "ring": [-2.0, -1.5, -1.0, 0.0, 0.7, 1.0, 1.0001, 2.0],
}


@every_toy
@every_law
def test_every_toy_problem_satisfies_every_law(toy, law):
    law(toy, np.array(POINTS[toy.name]))


@every_toy
def test_ppf_at_zero_and_one_is_the_support(toy):
    ends = toy.ppf(POINTS[toy.name], [0.0, 1.0])
    np.testing.assert_array_equal(ends, np.tile([-np.inf, np.inf], (len(ends), 1)))


def test_bimodal_mean_and_variance_are_the_mixtures():
    toy = load_toy("bimodal")
    x = np.array([-2.0, 0.5, 3.0])
    p = 1 / (1 + np.exp(-1.5 * x))
    draws = toy.sample(x, np.random.default_rng(0), n_draws=40_000)
    variance = p * (1 - p) + (0.05 * x) ** 2
    four_errors = 4 * np.sqrt(variance / 40_000)
    assert np.all(np.abs(draws.mean(axis=0) - (0.2 * x + p)) < four_errors)
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.1)


def test_bimodal_at_zero_is_two_point_masses():
    toy = load_toy("bimodal")
    q = [0.0, 1e-9, 0.5, 0.5 + 1e-9, 1.0]
    assert toy.ppf([0.0], q).tolist() == [[0.0, 0.0, 0.0, 1.0, 1.0]]
    assert toy.cdf(0.0, [-1e-9, 0.0, 0.5, 1.0, 2.0]).tolist() == [0.0, 0.5, 0.5, 1.0, 1.0]
    assert toy.pdf(0.0, [0.0, 0.5, 1.0]).tolist() == [np.inf, 0.0, np.inf]
    draws = toy.sample([0.0], np.random.default_rng(0), n_draws=1000)
    assert set(draws.ravel()) == {0.0, 1.0}
    assert stats.binomtest(int(draws.sum()), 1000).pvalue > 1e-3


def test_bimodal_next_to_zero_is_finite():
    toy = load_toy("bimodal")
    for x in (5e-324, 1e-308, 1e-200, -1e-9):
        assert np.all(np.isfinite(toy.ppf([x], [0.1, 0.5, 0.9])))
        assert toy.cdf(x, 0.5) == pytest.approx(0.5)
        assert toy.pdf(x, 0.5) == 0.0


def test_skewed_is_scipys_skew_normal():
    toy = load_toy("skewed")
    x = np.array([-4.0, 0.0, 3.0])
    alpha = -8 + 8 / (1 + np.exp(-x))
    truth = stats.skewnorm(alpha, 0.1 * x, 0.1 * np.abs(x) + 0.05)
    np.testing.assert_allclose(toy.pdf(x, x / 7), truth.pdf(x / 7))
    q = [0.05, 0.5, 0.95]
    np.testing.assert_allclose(toy.ppf(x, q), np.transpose([truth.ppf(level) for level in q]))


def test_ring_at_its_ends_is_one_gaussian():
    toy = load_toy("ring")
    y = np.linspace(-0.4, 0.4, 9)
    for x in (-2.0, 2.0):
        np.testing.assert_allclose(toy.pdf(x, y), stats.norm.pdf(y, scale=0.1))
        np.testing.assert_allclose(
            toy.ppf([x], [0.1, 0.5, 0.9])[0], stats.norm.ppf([0.1, 0.5, 0.9], scale=0.1), atol=1e-12
        )


def test_ring_holds_half_its_mass_inside_up_to_one_and_none_beyond():
    toy = load_toy("ring")
    for x in (-1.0, 0.0, 1.0):
        assert toy.cdf(x, 1.0) - toy.cdf(x, -1.0) == pytest.approx(0.5, abs=1e-12)
    assert toy.pdf(1.0 + 1e-9, 0.0) == pytest.approx(0.0, abs=1e-12)
    # The arcs are 2 sin(±arccos(x / 2)).
    assert toy.ppf([1.5], [0.25, 0.75])[0] == pytest.approx(
        2 * np.sin(np.array([-1, 1]) * np.arccos(0.75)), abs=1e-12
    )


# --- the paper's evaluation


@pytest.mark.parametrize(
    ("name", "published", "std_of_a_run"),
    [("bimodal", 4.20, 0.150), ("skewed", 4.05, 0.127), ("ring", 17.57, 0.780)],
)
def test_floor_is_the_published_one(name, published, std_of_a_run):
    """x100, within three standard errors of the difference of two means.

    The published floor is a mean over 10 runs, ours over 100; the std of a run was measured.
    """
    standard_error = std_of_a_run * np.sqrt(1 / 10 + 1 / 100)
    floor = 100 * was1_floor(load_toy(name), seeds=range(100))
    assert floor == pytest.approx(published, abs=3 * standard_error)


def test_a_constant_shift_costs_what_it_should():
    """Far away, W1 is the difference of the means for any shapes."""
    toy = load_toy("skewed")
    far = evaluate_was1(toy, lambda X: np.full((50, 200), 100.0), seed=4)
    assert far == pytest.approx(100.0 - toy.make(20_000, seed=5)[1].mean(), abs=0.03)


# --- bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: load_toy("moon"),
            "no toy data set is named 'moon'; there are bimodal, skewed, ri",
        ),
        (lambda: load_toy("ring").pdf(2.1, 0.0), "x of ring must lie in [-2, 2], got 2.1"),
        (lambda: load_toy("skewed").cdf([0.0, np.nan], 0.0), "must lie in [-5, 5], got nan"),
        (
            lambda: load_toy("ring").ppf([[0.0]], [0.5]),
            "x must have shape (n_rows,), got (1, 1",
        ),
        (
            lambda: load_toy("ring").ppf([0.0], [1.5]),
            "(n_q,), got [1.5]",
        ),
        (
            lambda: evaluate_was1(load_toy("ring"), lambda X: np.zeros((200, 50)), seed=0),
            "sampler must give draws of shape (50, 200), got (200, 50)",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    assert message in refusal(call)
