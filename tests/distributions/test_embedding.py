"""The embedding in both readings, beyond the contract: closed forms, degenerate cases, units."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from nkcme.distributions import blocks
from nkcme.distributions.embedding import Embedding, summing_to_one
from nkcme.distributions.readings import Measure
from nkcme.errors import NkcmeError
from nkcme.kernels import KERNELS
from support.known_scores import mixture_crps
from support.predicted_distributions import ATOMS, PLANE_ATOMS, ROWS, plane_embedding, weights
from support.predicted_distributions import embedding as make
from support.quadrature import line, plane

#: Those of any weights; tests/distributions/test_spread_atoms.py has the law.
READINGS = ("atomic", "smoothed")

SCIPY = {"gaussian": stats.norm, "laplace": stats.laplace, "cauchy": stats.cauchy}
BIN_WIDTH = 0.75
LEVELS = np.array([1e-9, 0.01, 0.2, 0.5, 0.77, 0.99, 1 - 1e-9])


def grid_of(dist):
    """Standard points and weights to integrate with, and y (n_rows, n) in the units of each row."""
    breaks = np.linspace(-2.375, 2.125, 13)  # the atoms, and the ends of their bins
    z, weight = line(breaks, n=100, tail=0.4)
    return weight, np.broadcast_to(dist.location + dist.scale * z, (ROWS, len(z)))


# --- density and quantiles ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["simplex", "signed"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_function_integrates_to_one_and_signed_weights_make_it_negative(kernel, kind):
    dist = make(kernel, kind, "smoothed", "units per row")
    weight, y = grid_of(dist)
    function = dist.embedding_function(y)
    np.testing.assert_allclose((function * dist.scale) @ weight, 1.0, atol=1e-9)
    assert np.any(function < 0) == (kind == "signed")
    if kind == "simplex":
        np.testing.assert_allclose(dist.pdf(y), function)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_density_of_signed_weights_is_the_positive_part_in_narrow_bins(kernel):
    dist = make(kernel, "signed", "smoothed", "units per row")
    weight, y = grid_of(dist)
    positive = np.maximum(dist.embedding_function(y), 0.0)
    positive /= (positive * dist.scale) @ weight[:, None]
    off = np.abs(dist.pdf(y) - positive) * dist.scale
    assert np.all(off @ weight < 0.04)


@pytest.mark.parametrize("kernel", KERNELS)
def test_quantiles_of_a_mixture_are_exact_for_narrow_and_wide_kernels(kernel):
    q = np.linspace(0.003, 0.997, 40)
    for bandwidth in (1e-7, 1e-4, 1e-2, 100.0):
        dist = make(kernel, bandwidth=bandwidth)
        np.testing.assert_allclose(dist.cdf(dist.ppf(q)), np.tile(q, (ROWS, 1)), atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_atom_is_the_kernel_itself(kernel):
    dist = Embedding([2.0], [[1.0], [1.0]], kernel, 0.3, location=5.0, scale=10.0)
    known = SCIPY[kernel](loc=25.0, scale=3.0)
    y = np.array([-40.0, 20.0, 25.0, 27.7])
    np.testing.assert_allclose(dist.pdf(y, grid=True)[0], known.pdf(y), rtol=1e-10)
    np.testing.assert_allclose(dist.cdf(y, grid=True)[1], known.cdf(y), rtol=1e-9)
    np.testing.assert_allclose(dist.ppf(LEVELS)[0], known.ppf(LEVELS), rtol=1e-6)
    np.testing.assert_allclose(dist.mode(), 25.0, atol=0.4)
    np.testing.assert_allclose(dist.logpdf([20.0, 27.7]), known.logpdf([20.0, 27.7]))


def test_one_atom_in_the_atomic_reading_is_as_wide_as_its_bandwidth():
    for atoms, w in (([2.0], [[1.0]]), ([2.0, 2.0, 2.0], [[0.2, 0.5, 0.3]])):
        dist = Embedding(atoms, w, bandwidth=0.5, reading="atomic")
        np.testing.assert_allclose(dist.ppf([0.0, 0.25, 1.0]), [[1.75, 1.875, 2.25]])
        np.testing.assert_allclose(dist.pdf([1.7, 1.9, 2.1, 2.3], grid=True), [[0, 2, 2, 0]])
        assert dist.herd(3).tolist() == [[2.0]] * 3


@settings(max_examples=40)
@given(
    interior=hnp.arrays(float, 3, elements=st.floats(-2, 2)),
    weights=hnp.arrays(float, (2, 5), elements=st.floats(-3, 3)),
    bandwidth=st.sampled_from([0.01, 0.3, 5.0]),
    kernel=st.sampled_from(list(KERNELS)),
    reading=st.sampled_from(READINGS),
    levels=hnp.arrays(float, 6, elements=st.floats(0, 1)),
)
def test_any_weights_have_one_monotone_cdf_and_quantiles_that_do_not_cross(
    interior, weights, bandwidth, kernel, reading, levels
):
    atoms = np.concatenate([[-2.0, 2.0], interior])  # unsorted, and perhaps repeated
    dist = Embedding(atoms, weights, kernel, bandwidth, 1.0, 0.5, reading)
    y = np.linspace(-3.0, 5.0, 60)
    cdf = dist.cdf(y, grid=True)
    assert np.all((cdf >= 0) & (cdf <= 1))
    assert np.all(np.diff(cdf, axis=1) >= -1e-15)
    levels = np.sort(levels)
    quantiles = dist.ppf(levels)
    assert np.all(np.diff(quantiles, axis=1) >= 0)
    np.testing.assert_allclose(dist.cdf(quantiles), np.tile(levels, (2, 1)), atol=1e-6)
    assert np.all(dist.pdf(y, grid=True) >= 0)
    assert np.all(np.isfinite(dist.crps(np.array([0.0, 1e6]))))
    assert np.all(np.isfinite(dist.rvs(3, 0)))


def test_unsorted_and_repeated_atoms_are_the_same_measure():
    tidy = Embedding([0.0, 1.0, 2.0], [[0.2, 0.5, 0.3]], bandwidth=0.3)
    untidy = Embedding([2.0, 1.0, 0.0, 1.0, 2.0], [[0.1, 0.4, 0.2, 0.1, 0.2]], bandwidth=0.3)
    y = np.linspace(-1, 3, 9)
    for reading in READINGS:
        a, b = tidy.read(reading), untidy.read(reading)
        np.testing.assert_allclose(a.pdf(y, grid=True), b.pdf(y, grid=True), rtol=1e-12)
        np.testing.assert_allclose(a.cdf(y, grid=True), b.cdf(y, grid=True), rtol=1e-10)
        np.testing.assert_allclose(a.ppf(LEVELS), b.ppf(LEVELS), rtol=1e-8)
        np.testing.assert_allclose(a.crps([0.7]), b.crps([0.7]), rtol=1e-10)
        np.testing.assert_allclose(a.var(), b.var(), rtol=1e-12)
        np.testing.assert_array_equal(a.mode(), b.mode())
    np.testing.assert_allclose(tidy.mmd(untidy), 0.0, atol=1e-7)
    close = Embedding([0.0, np.nextafter(1.0, 0.0), 1.0, 2.0], [[0.2, 0.2, 0.3, 0.3]])
    atomic = tidy.read("atomic")
    np.testing.assert_allclose(close.read("atomic").ppf(LEVELS), atomic.ppf(LEVELS), rtol=1e-12)
    np.testing.assert_allclose(close.read("atomic").pdf(1.0), atomic.pdf(1.0), rtol=1e-12)


def test_weights_that_are_no_distribution_give_a_cdf_without_nan():
    """Weights of zero, or that do not sum to one."""
    w = np.array([[0.0] * 6, [0.5] * 6, [-1.0] * 6])
    for reading in READINGS:
        dist = Embedding(ATOMS, w, bandwidth=0.4, reading=reading)
        np.testing.assert_allclose(dist.cdf(dist.ppf(LEVELS)), np.tile(LEVELS, (3, 1)), atol=1e-9)
        np.testing.assert_array_equal(dist.cdf([-1e9, 1e9], grid=True), [[0.0, 1.0]] * 3)
        assert np.all(np.isfinite(dist.crps(np.zeros(3))))
        t, weight = line(dist._reader.edges, n=3, tail=0.4)
        np.testing.assert_allclose(dist.pdf(t, grid=True) @ weight, 1.0, atol=1e-9)


def test_weights_are_divided_by_their_sum_unless_that_is_close_to_zero():
    w = summing_to_one(np.array([[1.0, 3.0], [2.0, -1.0], [1.0, -0.99]]))
    np.testing.assert_allclose(w, [[0.25, 0.75], [2.0, -1.0], [1.0, 0.0]], atol=1e-9)


# --- moments, mode, scores ------------------------------------------------------------------------


def test_atomic_variance_includes_that_of_the_bins():
    dist = make(reading="atomic", units="units per row")
    of_atoms = dist.weights @ ATOMS**2 - (dist.weights @ ATOMS) ** 2
    known = np.square(dist.scale[:, 0]) * (of_atoms + BIN_WIDTH**2 / 12)
    np.testing.assert_allclose(dist.var(), known, rtol=1e-10)
    np.testing.assert_allclose(dist.mean(), dist.embedding_mean(), rtol=1e-12)


def test_a_cauchy_kernel_has_no_variance_but_its_atoms_have():
    assert np.all(np.isinf(make("cauchy").var()))
    np.testing.assert_allclose(make("cauchy", reading="atomic").var(), make(reading="atomic").var())


def test_variance_keeps_its_digits_far_from_zero():
    near = Embedding(ATOMS, weights("simplex"), reading="atomic")
    far = Embedding(1e9 + ATOMS, weights("simplex"), reading="atomic")
    np.testing.assert_allclose(far.var(), near.var(), rtol=1e-6)


@pytest.mark.parametrize("reading", READINGS)
def test_the_mode_is_the_highest_point_also_of_a_narrow_kernel(reading):
    for bandwidth in (1e-6, 0.4):
        dist = make(reading=reading, units="shared units", bandwidth=bandwidth)
        grid = np.sort(np.concatenate([np.linspace(0.0, 20.0, 3001), 10.0 + 3.0 * ATOMS]))
        highest = dist.pdf(grid, grid=True).max(axis=1)
        np.testing.assert_allclose(dist.pdf(dist.mode()), highest, rtol=1e-2)


@pytest.mark.parametrize("bandwidth", [0.05, 0.4, 3.0])
def test_crps_of_a_gaussian_mixture_is_the_known_formula(bandwidth):
    dist = make(units="shared units", bandwidth=bandwidth)
    y = np.array([4.0, 10.5, 30.0])
    known = mixture_crps(
        y,
        np.tile(10.0 + 3.0 * ATOMS, (ROWS, 1)),
        np.full((ROWS, len(ATOMS)), 3.0 * bandwidth),
        weights("simplex"),
    )
    np.testing.assert_allclose(dist.crps(y), known, rtol=1e-3)


def test_crps_of_narrow_bins_is_that_of_a_weighted_ensemble():
    rng = np.random.default_rng(0)
    atoms, w = np.sort(rng.normal(size=1500)), rng.dirichlet(np.ones(1500), 2)
    y = np.array([-0.3, 2.0])
    apart = np.abs(atoms[:, None] - atoms)
    known = [w[i] @ np.abs(atoms - y[i]) - 0.5 * (w[i] @ apart @ w[i]) for i in range(2)]
    ours = Embedding(atoms, w, reading="atomic").crps(y)
    np.testing.assert_allclose(ours, known, rtol=3e-4)


# --- units and memory -----------------------------------------------------------------------------


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("kind", ["simplex", "signed"])
@pytest.mark.parametrize("scale", [1e30, 1e-30, 1e250])
def test_units_of_any_magnitude_only_scale(reading, kind, scale):
    one = make(kind=kind, reading=reading)
    dist = make(kind=kind, reading=reading, scale=scale)
    z = np.array([-1.0, 0.3, 2.0])
    np.testing.assert_allclose(dist.pdf(scale * z) * scale, one.pdf(z), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(dist.cdf(scale * z), one.cdf(z), rtol=1e-9)
    np.testing.assert_allclose(dist.ppf(LEVELS), scale * one.ppf(LEVELS), rtol=1e-9)
    for method in ("mean", "std", "mode"):
        expected = scale * getattr(one, method)()
        np.testing.assert_allclose(getattr(dist, method)(), expected, rtol=1e-9)
    np.testing.assert_allclose(dist.crps(scale * z), scale * one.crps(z), rtol=1e-9)
    np.testing.assert_allclose(dist.rvs(4, 0), scale * one.rvs(4, 0), rtol=1e-9)
    np.testing.assert_allclose(dist.inner(dist) * scale, one.inner(one), rtol=1e-9)


def test_blocks_respect_the_memory_bound(monkeypatch):
    """Rows x quantiles x atoms x 8 bytes stay below the bound."""
    dist = Embedding(ATOMS, np.tile(weights("simplex"), (40, 1)), bandwidth=0.4)
    seen = []
    original = Measure.through_kernel

    def watch(self, method, z):
        seen.append(max(len(z), 1) * z.shape[1] * len(self.atoms) * 8)
        return original(self, method, z)

    monkeypatch.setattr(Measure, "through_kernel", watch)
    monkeypatch.setattr(blocks, "MAX_MEMORY", 2**18)
    dist.ppf(np.linspace(0.1, 0.9, 50))
    dist.cdf(np.linspace(-2, 2, 400), grid=True)
    assert max(seen) <= 2**18


# --- several outputs ------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_joint_densities_integrate_to_one_and_their_cdf_is_the_integral(kernel):
    dist = plane_embedding(kernel)
    z, weight = plane(np.unique(PLANE_ATOMS), n=16, tail=0.5)
    y = dist.location + dist.scale * z
    density = dist.pdf(y, grid=True)  # the scales' product is one
    np.testing.assert_allclose(density @ weight, 1.0, rtol=1e-5)
    corner = np.array([0.5, 0.5])
    below = np.all(z < corner, axis=1)
    at_corner = dist.cdf(dist.location[0] + dist.scale[0] * corner)
    np.testing.assert_allclose(density[:, below] @ weight[below], at_corner, rtol=1e-5)


@pytest.mark.parametrize("spread", [False, True])
def test_joint_samples_have_the_covariance_of_the_mixture(spread):
    dist = plane_embedding(reading="atomic" if spread else "smoothed", spread=spread)
    samples = dist.rvs(20_000, random_state=0)
    for i in range(ROWS):
        w, eta = dist.weights[i], dist.location + dist.scale * PLANE_ATOMS
        within = 0.25 * np.eye(2) if not spread else np.tensordot(w, dist.covariances, 1)
        within = within * np.outer(dist.scale[0], dist.scale[0])
        covariance = (eta - w @ eta).T @ np.diag(w) @ (eta - w @ eta) + within
        np.testing.assert_allclose(dist.var()[i], np.diag(covariance))
        np.testing.assert_allclose(np.cov(samples[:, i].T), covariance, atol=0.06)


def test_atoms_of_several_outputs_without_covariances_are_a_discrete_measure():
    dist = plane_embedding(reading="atomic")
    samples = dist.rvs(5000, random_state=0)
    z = (samples - dist.location) / dist.scale
    for i in range(ROWS):
        hits = np.all(np.isclose(z[:, i, None], PLANE_ATOMS), axis=-1)
        assert np.all(hits.sum(axis=1) == 1)
        assert stats.chisquare(hits.sum(axis=0), 5000 * dist.weights[i]).pvalue > 1e-3
    at = dist.location[0] + dist.scale[0] * np.array([0.75, 0.75])
    np.testing.assert_allclose(dist.cdf(at), dist.weights[:, [0, 1, 3]].sum(axis=1))
    heaviest = PLANE_ATOMS[dist.weights.argmax(axis=1)]
    np.testing.assert_allclose(dist.mode(), dist.location + dist.scale * heaviest)
    narrow = dataclasses.replace(dist.read("smoothed"), bandwidth=1e-3)
    np.testing.assert_allclose(narrow.mode(), dist.mode())


def test_the_cdf_of_signed_weights_of_several_outputs_is_not_clipped():
    """A limit: there is no table to make it monotone. Samples are of the positive part."""
    w = np.array([[1.5, -0.5, -0.5, 0.5]])
    for reading in READINGS:
        dist = Embedding(PLANE_ATOMS, w, bandwidth=0.01, reading=reading)
        corners = np.array([[-0.9, 0.6], [0.1, 0.6], [1.1, 1.6]])
        np.testing.assert_allclose(dist.cdf(corners, grid=True), [[1.5, 1.0, 1.0]], atol=1e-9)
        samples = np.round(dist.rvs(500, 0), 0)
        assert not np.any(np.all(samples == [0.0, 0.0], axis=-1))


def test_the_log_density_of_gaussian_components_does_not_underflow():
    dist = plane_embedding(reading="atomic", spread=True)
    far = np.array([1e3, -1e3])
    np.testing.assert_array_equal(dist.pdf(far), 0.0)
    assert np.all(np.isfinite(dist.logpdf(far)))


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda: Embedding([0.0, 1.0], [[1.0]]), r"expected atoms \(m, d\) and weights"),
        (lambda: Embedding([], np.zeros((2, 0))), r"expected atoms \(m, d\) and weights"),
        (
            lambda: Embedding(PLANE_ATOMS, [[0.25] * 4], covariances=np.eye(2)),
            r"expected one covariance per atom, of shape \(4, 2, 2\); got \(2, 2\)",
        ),
        (lambda: make(reading="exact"), "reading must be one of"),
        (lambda: make(bandwidth=0.0), "bandwidth must be positive; got 0.0"),
        (lambda: make(bandwidth=float("nan")), "bandwidth must be positive; got nan"),
        (lambda: make(kernel="sinc"), "kernel must be one of"),
        (lambda: make(scale=-1.0), "scale must be positive; got -1"),
        (lambda: make(location=[1.0, 2.0, 3.0, 4.0]), r"location must be .* got shape \(4,\)"),
        (lambda: make(scale=np.ones((2, 1))), r"scale must be .* got shape \(2, 1\)"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(action, message):
    with pytest.raises(NkcmeError, match=message) as caught:
        action()
    assert "\n" not in str(caught.value)
