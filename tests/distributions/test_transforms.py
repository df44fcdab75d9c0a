"""Laws of log y as laws of y: edges, tails, and a log-normal distribution as the known truth."""

import numpy as np
import pytest
from scipy import stats

from nkcme import Embedding
from nkcme.distributions.piecewise_uniform import PiecewiseUniform
from nkcme.distributions.support import Support
from nkcme.distributions.tails import MAX_SHAPE, Tail, TailParameters, Tails
from nkcme.distributions.transforms import divided, exponential, restored, transformed
from nkcme.errors import NkcmeError

EDGES = np.array([[-1.0, 0.0, 0.5, 2.0], [3.0, 3.1, 3.2, 3.4]])
BELOW = np.array([[0.05, 0.3, 0.7, 0.96], [0.01, 0.5, 0.6, 0.9]])


def law_of_logs(lower_scale=(0.3, 0.1), upper_scale=(0.2, 0.4), shape=0.0):
    lower = Tail(BELOW[:, 0], np.array(lower_scale), shape)
    upper = Tail(1.0 - BELOW[:, -1], np.array(upper_scale), shape)
    return PiecewiseUniform(EDGES, BELOW, lower, upper)


def test_probabilities_at_edges_are_kept():
    law = exponential(law_of_logs())
    np.testing.assert_allclose(law.probability(np.exp(EDGES), inclusive=True), BELOW, rtol=1e-12)


def test_an_exponential_upper_tail_becomes_a_pareto_tail_exactly():
    logs = law_of_logs()
    law = exponential(logs)
    np.testing.assert_allclose(law.upper.shape, [0.2, 0.4])
    np.testing.assert_allclose(law.upper.scale, [0.2 * np.exp(2.0), 0.4 * np.exp(3.4)])
    beyond = EDGES[:, -1:] + np.array([0.01, 0.5, 3.0])
    expected = 1.0 - logs.probability(beyond, inclusive=True)
    np.testing.assert_allclose(1.0 - law.probability(np.exp(beyond), inclusive=True), expected)
    # Pareto's mean beyond the edge is edge / (1 - index).
    mean, _ = law.upper.moments()
    np.testing.assert_allclose(np.exp(EDGES[:, -1]) + mean, np.exp(EDGES[:, -1]) / [0.8, 0.6])


def test_heavier_upper_tails_have_hills_index_and_a_variance():
    heavier = exponential(law_of_logs(upper_scale=(0.2, 0.3), shape=0.25)).upper
    np.testing.assert_allclose(heavier.shape, [0.2 / 0.75, 0.3 / 0.75])
    draws = law_of_logs(upper_scale=(0.2, 0.3), shape=0.25).upper.distance(
        np.tile((np.arange(100_000) + 0.5) / 100_000, (2, 1))
    )
    np.testing.assert_allclose(draws.mean(axis=1), heavier.shape, rtol=1e-2)
    enormous = exponential(law_of_logs(upper_scale=(2.0, 30.0)))
    np.testing.assert_array_equal(enormous.upper.shape, MAX_SHAPE)
    assert np.all(np.isfinite(enormous.std()))


@pytest.mark.parametrize("shape", [0.0, 0.3])
def test_the_lower_tail_ends_at_zero_with_a_positive_density(shape):
    logs = law_of_logs(lower_scale=(0.2, 0.1), shape=shape)
    law = exponential(logs)
    np.testing.assert_array_equal(law.cdf([-1.0, 0.0], grid=True), 0.0)
    # Its quantiles at halves of the probability, and at halves of these, are those of log y.
    levels = np.array([[0.025, 0.05 / 64], [0.005, 0.01 / 64]])
    np.testing.assert_allclose(law.quantiles(levels), np.exp(logs.quantiles(levels)))
    tiny = np.array([1e-300, 1e-100, 1e-9, 0.01])
    assert np.all(np.isfinite(law.logpdf(tiny, grid=True)))
    np.testing.assert_array_equal(law.logpdf([-1.0], grid=True), -np.inf)


def test_the_density_does_not_rise_towards_zero_in_a_wide_lower_tail():
    law = exponential(law_of_logs(lower_scale=(5.0, 50.0)))
    for row, edge in enumerate(np.exp(EDGES[:, 0])):
        np.testing.assert_allclose(
            law[row].pdf(edge * np.array([[1e-9, 0.5]]))[0], BELOW[row, 0] / edge
        )


def test_enormous_logarithms_give_finite_edges():
    law = exponential(PiecewiseUniform(np.array([[-1e4, 0.0, 1e4]]), np.array([[0.0, 0.5, 1.0]])))
    assert np.all(np.isfinite(law.edges))
    assert np.all(law.edges > 0)


def test_without_tails_nothing_lies_beyond_the_edges():
    law = exponential(PiecewiseUniform(EDGES[:1], np.array([[0.0, 0.3, 0.7, 1.0]])))
    assert law.lower is None
    assert law.upper is None
    np.testing.assert_array_equal(law.edges, np.exp(EDGES[:1]))


def test_dividing_wide_bins_changes_no_law():
    edges, below = divided(EDGES[0], BELOW)
    assert np.max(np.diff(edges)) <= 0.1 + 1e-12
    np.testing.assert_array_equal(np.isin(EDGES[0], edges), True)
    for row in range(2):
        np.testing.assert_allclose(below[row], np.interp(edges, EDGES[0], BELOW[row]))
    narrow = np.array([0.0, 0.05, 0.05, 0.1])
    assert divided(narrow, BELOW)[0] is narrow


def test_y_and_its_logarithm():
    y = np.array([0.5, 1.0, 1e300])
    np.testing.assert_array_equal(transformed(y, "none"), y)
    np.testing.assert_allclose(restored(transformed(y, "log"), "log"), y, rtol=1e-12)
    assert np.isneginf(transformed(np.zeros(1), "log"))[0]


# --- embeddings of log y --------------------------------------------------------------------------


def log_normal(mean=1.0, sigma=0.5, n=200, **options) -> Embedding:
    """The embedding of log y ~ N(mean, sigma^2), by atoms that are much closer than sigma."""
    atoms = np.linspace(-5, 5, n)
    weights = stats.norm.pdf(atoms)[None] / stats.norm.pdf(atoms).sum()
    defaults = {"location": mean, "scale": sigma, "bandwidth": 0.1, "reading": "law"}
    return Embedding(atoms, weights, **defaults | {"transform": "log"} | options)


@pytest.mark.parametrize("sigma", [0.05, 0.5, 1.0])
def test_a_log_normal_distribution_is_recovered(sigma):
    dist, truth = log_normal(sigma=sigma), stats.lognorm(sigma, scale=np.e)
    assert dist.mean()[0] == pytest.approx(truth.mean(), rel=2e-3)
    assert dist.std()[0] == pytest.approx(truth.std(), rel=1e-2)
    levels = np.array([0.001, 0.05, 0.5, 0.95, 0.999])
    np.testing.assert_allclose(dist.ppf(levels)[0], truth.ppf(levels), rtol=5e-3)
    np.testing.assert_allclose(dist.cdf(truth.ppf(levels), grid=True)[0], levels, atol=1e-3)
    y = truth.ppf([0.1, 0.4, 0.8])
    np.testing.assert_allclose(dist.pdf(y, grid=True)[0], truth.pdf(y), rtol=0.05)
    assert dist.entropy()[0] == pytest.approx(truth.entropy(), abs=0.01)
    # Baran and Lerch (2015), the CRPS of a log-normal distribution.
    for one in y:
        w = (np.log(one) - 1.0) / sigma
        inner = stats.norm.cdf(w - sigma) + stats.norm.cdf(sigma / np.sqrt(2)) - 1
        score = one * (2 * stats.norm.cdf(w) - 1) - 2 * truth.mean() * inner
        assert dist.crps([one])[0] == pytest.approx(score, rel=5e-3, abs=2e-3 * truth.mean())


def test_few_atoms_far_apart_have_the_mean_of_even_logarithms():
    """An even density of log y over gaps of two has the mean of 1 / y, not of the middle."""
    dist = Embedding([0.0, 2.0], [[0.5, 0.5]], reading="law", transform="log")
    expected = (np.exp(3.0) - np.exp(-1.0)) / 4.0
    assert dist.mean()[0] == pytest.approx(expected, rel=2e-3)


def test_a_factor_of_y_is_a_shift_of_its_logarithm():
    one, other = log_normal(1.0), log_normal(1.0 + np.log(1e9))
    np.testing.assert_allclose(other.mean(), 1e9 * one.mean())
    np.testing.assert_allclose(other.std(), 1e9 * one.std())
    np.testing.assert_allclose(other.crps([2e9]), 1e9 * one.crps([2.0]))
    np.testing.assert_allclose(other.logpdf(2e9), one.logpdf(2.0) - np.log(1e9))


def test_rows_do_not_depend_on_other_rows():
    scales = np.array([[0.1], [1.0], [4.0]])
    tails = Tails(TailParameters(0.01, 0.5), TailParameters(0.01, 0.4, 0.1))
    dist = Embedding(
        np.linspace(-3, 3, 10), np.full((3, 10), 0.1), scale=scales, reading="law",
        transform="log", tails=tails, added_std=[0.0, 0.5, 0.0],
    )  # fmt: skip
    for row in range(3):
        np.testing.assert_array_equal(dist[row].mean(), dist.mean()[row])
        np.testing.assert_array_equal(dist[row].ppf([0.001, 0.5, 0.999])[0],
                                      dist.ppf([0.001, 0.5, 0.999])[row])  # fmt: skip


def test_rows_that_are_new_are_widened_around_the_median():
    """The factor is that of the deviation of log y: sqrt(0.3^2 + 0.4^2) / 0.3."""
    plain, wide = log_normal(sigma=0.3), log_normal(sigma=0.3, added_std=0.4)
    (low, middle, high), (lower, same, higher) = (
        dist.ppf([0.05, 0.5, 0.95])[0] for dist in (plain, wide)
    )
    factor = 0.5 / 0.3
    assert same == pytest.approx(middle)
    assert np.log(lower / middle) / np.log(low / middle) == pytest.approx(factor, rel=1e-2)
    assert (higher - middle) / (high - middle) == pytest.approx(factor, rel=1e-2)
    kept = log_normal(sigma=0.3, added_std=1e-12)
    np.testing.assert_array_equal(kept.ppf([0.05, 0.95]), plain.ppf([0.05, 0.95]))


def test_widening_makes_no_means_of_edges_without_probability():
    """One atom at twenty times the median, which hardly ever occurs."""
    atoms = np.append(np.linspace(-1, 1, 50), 30.0)
    weights = np.append(np.full(50, (1 - 1e-4) / 50), 1e-4)[None]
    tails = Tails(TailParameters(1e-4, 0.5), TailParameters(1e-4, 5.0, 0.3))
    parts = {"scale": 0.1, "reading": "law", "transform": "log", "tails": tails}
    wide = Embedding(atoms, weights, **parts, added_std=2.0)
    assert wide.mean()[0] < 2 * wide.ppf(0.95)[0]
    assert np.all(wide.ppf([0.0, 1e-6])[0] >= 0)
    assert np.isfinite(wide.logpdf(1e-9))[0]


def test_a_cap_has_an_exact_point_mass():
    cap = 3.7
    support = Support(0.0, cap, reached=(cap,))
    dist = log_normal(support=support)
    values, masses = dist.point_masses()
    np.testing.assert_array_equal(values, [cap])
    assert masses[0, 0] == pytest.approx(stats.lognorm(0.5, scale=np.e).sf(cap), abs=2e-3)
    assert dist.cdf([cap])[0] == 1.0
    assert dist.ppf(1.0)[0] == cap


def test_whole_numbers_of_a_law_of_logarithms():
    truth = stats.lognorm(0.5, scale=np.exp(2.0))
    dist = log_normal(2.0, support=Support(1.0, integer=True))
    k = np.arange(1, 60)
    expected = np.diff(truth.cdf(np.append(-np.inf, k + 0.5)))
    np.testing.assert_allclose(dist.pmf(k, grid=True)[0], expected, atol=1e-3)
    assert dist.mean()[0] == pytest.approx(truth.mean(), rel=5e-3)


def test_the_hilbert_space_is_that_of_log_y():
    weights = np.array([[0.2, 0.8], [0.7, 0.3]])
    parts = {"atoms": [-1.0, 1.0], "weights": weights, "scale": 2.0, "reading": "law"}
    logs, of_y = Embedding(**parts), Embedding(**parts, transform="log")
    np.testing.assert_array_equal(of_y.mmd(of_y[0]), logs.mmd(logs[0]))
    points = np.array([0.1, 1.0, 30.0])
    np.testing.assert_allclose(
        of_y.embedding_function(points, grid=True),
        logs.embedding_function(np.log(points), grid=True),
    )
    np.testing.assert_array_equal(of_y.embedding_function(0.0), 0.0)
    np.testing.assert_allclose(of_y.embedding_mean(), np.exp(logs.embedding_mean()))
    np.testing.assert_allclose(of_y.herd(4), np.exp(logs.herd(4)))
    np.testing.assert_allclose(of_y.expect(np.log), logs.expect(lambda y: y))
    with pytest.raises(NkcmeError, match=r"one Hilbert space.*log y"):
        of_y.mmd(logs)


def test_only_the_law_is_read_from_an_embedding_of_log_y():
    dist = log_normal()
    with pytest.raises(NkcmeError, match=r'read as a law of y.*"law"'):
        dist.read("atomic")
    with pytest.raises(NkcmeError, match="transform must be one of"):
        log_normal(transform="root")
    assert dist.smoothed() is dist
    assert "law reading of log y" in repr(dist)
