"""The embedding in both readings: against quadrature, closed forms, and the laws of its space."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scoringrules
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import integrate, stats

from nkcme.distributions import embedding as module
from nkcme.distributions.embedding import READINGS, Embedding
from nkcme.errors import NkcmeError
from nkcme.kernels import KERNELS
from support.quadrature import line, plane

SCIPY = {"gaussian": stats.norm, "laplace": stats.laplace, "cauchy": stats.cauchy}
ETA = np.array([-2.0, -1.25, -0.5, 0.25, 1.0, 1.75])  # even, so that cells are of one width
WIDTH = 0.75
ROWS = 3


def _signed(rng, rows, atoms):
    """Weights that sum to one, about a third of them negative."""
    w = rng.normal(0.5, 1.0, size=(rows, atoms))
    return w / w.sum(axis=1, keepdims=True)


WEIGHTS = {
    "simplex": np.random.default_rng(0).dirichlet(np.ones(len(ETA)), ROWS),
    "signed": _signed(np.random.default_rng(4), ROWS, len(ETA)),
}
UNITS = {
    "standard": {},
    "scalar": {"location": 10.0, "scale": 3.0},
    "per row": {"location": [[1.0], [2.0], [-3.0]], "scale": [[0.5], [2.0], [7.0]]},
}


def make(kernel="gaussian", weights="simplex", reading="smoothed", units="standard", **options):
    options = {"bandwidth": 0.4} | UNITS[units] | options
    return Embedding(ETA, WEIGHTS[weights], kernel=kernel, reading=reading, **options)


# Every kernel, both kinds of weights, both readings, and each kind of units with each of them.
CASES = [
    pytest.param(make(k, w, r, u), id=f"{k}-{w}-{r}-{u}")
    for k in KERNELS
    for w, r, u in (
        ("simplex", "smoothed", "per row"),
        ("signed", "smoothed", "scalar"),
        ("simplex", "atomic", "scalar"),
        ("signed", "atomic", "per row"),
    )
    if r == "smoothed" or k == "gaussian"  # the atomic reading does not use the kernel
]
every_case = pytest.mark.parametrize("dist", CASES)
BREAKS = np.linspace(-2.375, 2.125, 13)  # the atoms, and the ends of their cells
LEVELS = np.array([1e-9, 0.01, 0.2, 0.5, 0.77, 0.99, 1 - 1e-9])


def tolerance(dist):
    """Exact for a mixture and for cells; signed smoothed rows come from a table."""
    exact = dist.reading == "atomic" or np.all(dist.weights >= 0)
    return 1e-9 if exact else 2e-3


def grid_of(dist):
    """Standard points (n,) and weights to integrate with, and y (n_rows, n) in the rows' units."""
    z, weight = line(BREAKS, n=100, tail=0.4)
    y = dist.location + dist.scale * z
    return z, weight, np.broadcast_to(y, (ROWS, len(z)))


# --- density, distribution function, quantiles ----------------------------------------------------


@every_case
def test_the_clipped_density_integrates_to_one_and_the_cdf_is_its_integral(dist):
    z, weight, y = grid_of(dist)
    density = dist.pdf(y, clip=True) * dist.scale
    assert np.all(density >= 0)
    np.testing.assert_allclose(density @ weight, 1.0, atol=tolerance(dist))
    below = np.stack([(density * weight)[:, z < at].sum(axis=1) for at in BREAKS], axis=1)
    cdf = dist.cdf(np.broadcast_to(dist.location + dist.scale * BREAKS, below.shape))
    np.testing.assert_allclose(cdf, below, atol=tolerance(dist))


@every_case
def test_the_raw_density_integrates_to_one_too_and_may_dip_below_zero(dist):
    _, weight, y = grid_of(dist)
    density = dist.pdf(y)
    np.testing.assert_allclose((density * dist.scale) @ weight, 1.0, atol=1e-9)
    assert np.any(density < 0) == np.any(dist.weights < 0)


@every_case
def test_the_cdf_is_differentiated_by_the_density(dist):
    """The derivative of the CDF is the clipped density, checked over short steps."""
    z = np.array([-1.9, -0.77, 0.11, 0.4, 1.55])  # within cells
    step = 0.02
    low, high = (dist.location + dist.scale * (z + s) for s in (-step, step))
    low, high = (np.broadcast_to(v, (ROWS, len(z))) for v in (low, high))
    rise = (dist.cdf(high) - dist.cdf(low)) / (2 * step)
    middle = np.broadcast_to(dist.location + dist.scale * z, (ROWS, len(z)))
    density = dist.pdf(middle, clip=True) * dist.scale
    loose = 3e-3 if tolerance(dist) < 1e-6 else 0.06
    np.testing.assert_allclose(rise, density, atol=loose)


@every_case
def test_quantiles_invert_the_cdf(dist):
    y = dist.ppf(LEVELS)
    assert y.shape == (ROWS, len(LEVELS))
    np.testing.assert_allclose(dist.cdf(y), np.tile(LEVELS, (ROWS, 1)), atol=1e-9)
    assert np.all(np.diff(y, axis=1) > 0)
    np.testing.assert_array_equal(dist.ppf([0.5])[:, 0], dist.median())
    np.testing.assert_allclose(dist.interval(0.9), dist.ppf([0.05, 0.95]), rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_mixtures_quantiles_are_exact_however_narrow_or_wide_its_kernel(kernel):
    q = np.linspace(0.003, 0.997, 40)
    for bandwidth in (1e-7, 1e-4, 1e-2, 100.0):
        dist = make(kernel, bandwidth=bandwidth)
        np.testing.assert_allclose(dist.cdf(dist.ppf(q)), np.tile(q, (ROWS, 1)), atol=1e-8)


def test_one_atom_is_the_kernel_itself():
    for kernel, known in SCIPY.items():
        dist = Embedding([2.0], [[1.0], [1.0]], kernel, 0.3, location=5.0, scale=10.0)
        theirs = known(loc=25.0, scale=3.0)
        y = np.array([-40.0, 20.0, 25.0, 27.7])
        np.testing.assert_allclose(dist.pdf(y, grid=True)[0], theirs.pdf(y), rtol=1e-10)
        np.testing.assert_allclose(dist.cdf(y, grid=True)[1], theirs.cdf(y), rtol=1e-9)
        np.testing.assert_allclose(dist.ppf(LEVELS)[0], theirs.ppf(LEVELS), rtol=1e-6)
        np.testing.assert_allclose(dist.mode(), 25.0, atol=0.4)
        np.testing.assert_allclose(dist.logpdf([20.0, 27.7]), theirs.logpdf([20.0, 27.7]))


def test_one_atom_read_atomically_is_as_wide_as_its_bandwidth():
    for atoms, weights in (([2.0], [[1.0]]), ([2.0, 2.0, 2.0], [[0.2, 0.5, 0.3]])):
        dist = Embedding(atoms, weights, bandwidth=0.5, reading="atomic")
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
    assert np.all(dist.pdf(y, grid=True, clip=True) >= 0)
    assert np.all(np.isfinite(dist.crps(np.array([0.0, 1e6]))))
    assert np.all(np.isfinite(dist.rvs(3, 0)))


# --- moments, mode, draws, scores ----------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_smoothed_mean_and_variance_are_those_of_the_density(kernel, weights):
    dist = make(kernel, weights, "smoothed", "per row")
    _, weight, y = grid_of(dist)
    density = dist.pdf(y) * dist.scale
    mean = (density * y) @ weight
    var = (density * np.square(y - mean[:, None])) @ weight
    np.testing.assert_allclose(dist.mean(), mean, rtol=1e-8)
    spread = np.asarray(dist.weights @ ETA**2 - (dist.weights @ ETA) ** 2)
    clipped = spread < 0  # documented: signed weights whose atoms have a negative variance
    np.testing.assert_allclose(dist.var()[~clipped], var[~clipped], rtol=1e-8)
    np.testing.assert_allclose(dist.std() ** 2, dist.var())


def test_atomic_mean_and_variance_are_those_of_the_atoms():
    dist = make(reading="atomic", units="per row")
    _, weight, y = grid_of(dist)
    density = dist.pdf(y) * dist.scale
    mean = (density * y) @ weight
    var = (density * np.square(y - mean[:, None])) @ weight
    np.testing.assert_allclose(dist.mean(), mean, rtol=1e-12)
    # Spreading an atom evenly over a cell adds the cell's variance to the density's, not to `var`.
    cell = np.square(WIDTH * dist.scale[:, 0]) / 12
    np.testing.assert_allclose(dist.var(), var - cell, rtol=1e-10)


def test_a_cauchy_kernel_has_no_variance_but_its_atoms_have():
    assert np.all(np.isinf(make("cauchy").var()))
    np.testing.assert_allclose(make("cauchy", reading="atomic").var(), make(reading="atomic").var())


def test_variance_keeps_its_digits_far_from_zero():
    near = Embedding(ETA, WEIGHTS["simplex"], reading="atomic")
    far = Embedding(1e9 + ETA, WEIGHTS["simplex"], reading="atomic")
    np.testing.assert_allclose(far.var(), near.var(), rtol=1e-6)


@pytest.mark.parametrize("reading", READINGS)
def test_the_mode_is_where_the_density_is_highest(reading):
    for bandwidth in (1e-6, 0.4):
        dist = make(reading=reading, units="scalar", bandwidth=bandwidth)
        at_mode = dist.pdf(dist.mode())
        grid = np.sort(np.concatenate([np.linspace(0.0, 20.0, 3001), 10.0 + 3.0 * ETA]))
        highest = dist.pdf(grid, grid=True).max(axis=1)
        np.testing.assert_allclose(at_mode, highest, rtol=1e-2)


@every_case
def test_draws_follow_the_cdf(dist):
    draws = dist.rvs(2000, random_state=1)
    assert draws.shape == (2000, ROWS)
    np.testing.assert_array_equal(draws, dist.rvs(2000, random_state=1))
    uniform = dist.cdf(draws.T.copy())
    for row in uniform:
        assert stats.kstest(row, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(uniform)[0, 1]) < 0.08  # rows are drawn independently


@every_case
def test_crps_is_the_integral_of_the_squared_gap(dist):
    z = np.array([-2.6, 0.1, 1.4])
    y = dist.location[:, 0] + dist.scale[:, 0] * z
    t, weight = line([*np.linspace(-2.375, 2.125, 7), *z], n=150, tail=0.4)
    cdf = dist.cdf(np.broadcast_to(dist.location + dist.scale * t, (ROWS, len(t))))
    known = np.square(cdf - (t >= z[:, None])) @ weight * dist.scale[:, 0]
    loose = 1e-9 if dist.reading == "atomic" else 3e-3
    np.testing.assert_allclose(dist.crps(y), known, rtol=loose)


@pytest.mark.parametrize("bandwidth", [0.05, 0.4, 3.0])
def test_crps_of_a_gaussian_mixture_is_the_known_formula(bandwidth):
    dist = make(units="scalar", bandwidth=bandwidth)
    y = np.array([4.0, 10.5, 30.0])
    known = scoringrules.crps_mixnorm(
        y,
        np.tile(10.0 + 3.0 * ETA, (ROWS, 1)),
        np.full((ROWS, len(ETA)), 3.0 * bandwidth),
        WEIGHTS["simplex"],
    )
    np.testing.assert_allclose(dist.crps(y), known, rtol=1e-3)


def test_crps_of_narrow_cells_is_that_of_a_weighted_ensemble():
    rng = np.random.default_rng(0)
    atoms, weights = np.sort(rng.normal(size=4000)), rng.dirichlet(np.ones(4000), 2)
    y = np.array([-0.3, 2.0])
    known = [
        weights[i] @ np.abs(atoms - y[i])
        - 0.5 * (weights[i] @ np.abs(atoms[:, None] - atoms) @ weights[i])
        for i in range(2)
    ]
    ours = Embedding(atoms, weights, reading="atomic").crps(y)
    np.testing.assert_allclose(ours, known, rtol=1e-4)


# --- units ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("scale", [1e30, 1e-30, 1e250])
def test_units_of_any_magnitude_only_scale(reading, weights, scale):
    one = make(weights=weights, reading=reading)
    dist = make(weights=weights, reading=reading, scale=scale)
    z = np.array([-1.0, 0.3, 2.0])
    np.testing.assert_allclose(dist.pdf(scale * z) * scale, one.pdf(z), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(dist.cdf(scale * z), one.cdf(z), rtol=1e-9)
    np.testing.assert_allclose(dist.ppf(LEVELS), scale * one.ppf(LEVELS), rtol=1e-9)
    np.testing.assert_allclose(dist.mean(), scale * one.mean(), rtol=1e-9)
    np.testing.assert_allclose(dist.std(), scale * one.std(), rtol=1e-9)
    np.testing.assert_allclose(dist.mode(), scale * one.mode(), rtol=1e-9)
    np.testing.assert_allclose(dist.crps(scale * z), scale * one.crps(z), rtol=1e-9)
    np.testing.assert_allclose(dist.rvs(4, 0), scale * one.rvs(4, 0), rtol=1e-9)
    np.testing.assert_allclose(dist.inner(dist) * scale, one.inner(one), rtol=1e-9)


def test_the_same_measure_in_other_units_is_the_same_point_of_the_space():
    """Rows of many units, all of the same y: nothing that is asked of them may differ."""
    location, scale = np.array([[0.0], [1.0], [-40.0]]), np.array([[1.0], [2.0], [20.0]])
    for i in range(ROWS):
        atoms = (3.0 * ETA - location[i]) / scale[i]
        other = Embedding(
            atoms, WEIGHTS["simplex"], "laplace", 0.6 / scale[i, 0], location[i], scale[i]
        )
        one = Embedding(3.0 * ETA, WEIGHTS["simplex"], "laplace", 0.6)
        np.testing.assert_allclose(other.mmd(one), 0.0, atol=1e-7)
        np.testing.assert_allclose(other.inner(one), one.inner(one), rtol=1e-10)
        np.testing.assert_allclose(other.ppf(LEVELS), one.ppf(LEVELS), rtol=1e-6)
        np.testing.assert_allclose(other.expect(np.cos), one.expect(np.cos), rtol=1e-10)
        np.testing.assert_allclose(other.witness(one, 0.3), 0.0, atol=1e-12)


# --- the Hilbert space ---------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("units", UNITS)
def test_expectation_reproduces_the_density(kernel, units):
    """<k(c, .), mu> = mu(c), which is what makes the space a reproducing one."""
    dist = make(kernel, "signed", "smoothed", units)
    c = 1.3
    for i in range(ROWS):
        row = dist[i]
        bandwidth = 0.4 * float(row.scale[0, 0])
        value = row.expect(lambda y, b=bandwidth: SCIPY[kernel].pdf(y - c, scale=b))
        np.testing.assert_allclose(value, row.pdf(c), rtol=1e-10)
    np.testing.assert_allclose(dist.expect(lambda y: y), dist.mean(), rtol=1e-12)
    np.testing.assert_allclose(dist.expect(np.ones_like), 1.0, rtol=1e-12)


def three(kernel):
    rng = np.random.default_rng(8)
    for _ in range(3):
        yield Embedding(rng.normal(size=5), _signed(rng, 4, 5), kernel, 0.7, 2.0, 3.0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_inner_product_and_the_distance_obey_their_laws(kernel):
    a, b, c = three(kernel)
    np.testing.assert_allclose(a.inner(b), b.inner(a), rtol=1e-12)
    assert np.all(a.inner(a) > 0)
    assert np.all(a.inner(b) ** 2 <= a.inner(a) * b.inner(b) * (1 + 1e-12))
    np.testing.assert_allclose(a.mmd(b), b.mmd(a), rtol=1e-12)
    np.testing.assert_array_equal(a.mmd(a), 0.0)
    assert np.all(a.mmd(b) > 1e-3)
    assert np.all(a.mmd(c) <= a.mmd(b) + b.mmd(c) + 1e-12)
    # ||mu - nu||^2 = <h, mu> - <h, nu> with h the witness mu - nu.
    gaps = [
        one.expect(lambda y, i=i: a[i].witness(b[i], y, grid=True)[0])[i]
        for one in (a, b)
        for i in range(4)
    ]
    np.testing.assert_allclose(np.square(a.mmd(b)), np.subtract(gaps[:4], gaps[4:]), rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_witness_is_the_difference_and_integrates_to_zero(kernel):
    a, b, _ = three(kernel)
    t, weight = line(
        np.concatenate([2 + 3 * a.atoms[:, 0], 2 + 3 * b.atoms[:, 0]]), n=100, tail=2.0
    )
    witness = a.witness(b.read("atomic"), t, grid=True)
    np.testing.assert_allclose(witness @ weight, 0.0, atol=1e-9)
    np.testing.assert_allclose(witness[1], a.pdf(t, grid=True)[1] - b.pdf(t, grid=True)[1])


@pytest.mark.parametrize(("kernel", "factor"), [("gaussian", np.sqrt(2.0)), ("cauchy", 2.0)])
def test_the_inner_product_at_a_wider_bandwidth_is_that_of_the_densities(kernel, factor):
    a, b, _ = three(kernel)
    t, weight = line(2 + 3 * np.concatenate([a.atoms[:, 0], b.atoms[:, 0]]), n=40, tail=2.0)
    known = (a.pdf(t, grid=True) * b.pdf(t, grid=True)) @ weight
    wide = (dataclasses.replace(e, bandwidth=factor * 0.7) for e in (a, b))
    np.testing.assert_allclose(next(wide).inner(next(wide)), known, rtol=1e-8)


def test_one_row_pairs_with_every_row():
    many, one = make(units="per row", bandwidth=0.4), make(units="scalar")
    many = dataclasses.replace(many, scale=3.0)
    for ours, theirs in ((many.inner(one[1]), many), (one[1].inner(many), many)):
        known = [theirs[i].inner(one[1])[0] for i in range(ROWS)]
        np.testing.assert_allclose(ours, known, rtol=1e-12)
    assert many.mmd(one[0]).shape == (ROWS,)
    with pytest.raises(NkcmeError, match="cannot pair 3 rows with 2"):
        many.inner(one[:2])
    with pytest.raises(NkcmeError, match="cannot pair 2 rows with 3"):
        many[:2].mmd(one)


def test_embeddings_of_other_spaces_are_not_compared():
    for other in (make("laplace"), make(bandwidth=0.41), make(scale=2.0)):
        with pytest.raises(NkcmeError, match="one Hilbert space"):
            make().inner(other)
        with pytest.raises(NkcmeError, match="one Hilbert space"):
            make().witness(other, 0.0)


# --- several outputs ------------------------------------------------------------------------------

ATOMS_2D = np.array([[-1.0, 0.5], [0.0, 0.0], [1.0, 1.5], [0.5, -1.0]])


def plane_case(kernel="gaussian", reading="smoothed", seed=0):
    weights = np.random.default_rng(seed).dirichlet(np.ones(4), 2)
    return Embedding(ATOMS_2D, weights, kernel, 0.5, [1.0, -2.0], [2.0, 0.5], reading)


@pytest.mark.parametrize("kernel", KERNELS)
def test_joint_densities_integrate_to_one_and_their_cdf_is_the_integral(kernel):
    dist = plane_case(kernel)
    z, weight = plane(np.unique(ATOMS_2D), n=16, tail=0.5)
    density = dist.pdf(dist.location + dist.scale * z, grid=True) * 1.0
    np.testing.assert_allclose(density @ weight, 1.0, rtol=1e-5)  # the scales' product is one
    np.testing.assert_allclose(
        dist.pdf(dist.location + dist.scale * z[:5], grid=True, clip=True), density[:, :5]
    )
    corner = np.array([0.5, 0.5])
    below = np.all(z < corner, axis=1)
    at_corner = dist.cdf(dist.location[0] + dist.scale[0] * corner)
    np.testing.assert_allclose(density[:, below] @ weight[below], at_corner, rtol=1e-5)


def test_joint_moments_and_draws():
    dist = plane_case()
    draws = dist.rvs(20_000, random_state=0)
    assert draws.shape == (20_000, 2, 2)
    for i in range(2):
        w = dist.weights[i]
        eta = dist.location + dist.scale * ATOMS_2D
        mean = w @ eta
        covariance = (eta - mean).T @ np.diag(w) @ (eta - mean) + np.diag(
            (0.5 * dist.scale[0]) ** 2
        )
        np.testing.assert_allclose(dist.mean()[i], mean)
        np.testing.assert_allclose(dist.var()[i], np.diag(covariance))
        error = np.sqrt(np.diag(covariance) / 20_000)
        assert np.all(np.abs(draws[:, i].mean(axis=0) - mean) < 5 * error)
        np.testing.assert_allclose(np.cov(draws[:, i].T), covariance, atol=0.05)


def test_several_outputs_read_atomically_are_their_atoms():
    dist = plane_case(reading="atomic")
    draws = dist.rvs(5000, random_state=0)
    z = (draws - dist.location) / dist.scale
    for i in range(2):
        hits = np.all(np.isclose(z[:, i, None], ATOMS_2D), axis=-1)
        assert np.all(hits.sum(axis=1) == 1)
        assert stats.chisquare(hits.sum(axis=0), 5000 * dist.weights[i]).pvalue > 1e-3
    at = dist.location[0] + dist.scale[0] * np.array([0.75, 0.75])
    expected = dist.weights[:, [0, 1, 3]].sum(axis=1)
    np.testing.assert_allclose(dist.cdf(at), expected)
    np.testing.assert_allclose(
        dist.expect(lambda y: y[:, 0] * y[:, 1]),
        dist.weights @ np.prod(dist.location + dist.scale * ATOMS_2D, axis=1),
    )
    with pytest.raises(NkcmeError, match=r"use \.read"):
        dist.pdf(at)


def test_signed_weights_of_several_outputs_have_the_cdf_they_have():
    """A limit: there is no table to make it monotone. Draws are of the positive part."""
    weights = np.array([[1.5, -0.5, -0.5, 0.5]])
    for reading in READINGS:
        dist = Embedding(ATOMS_2D, weights, bandwidth=0.01, reading=reading)
        corners = np.array([[-0.9, 0.6], [0.1, 0.6], [1.1, 1.6]])
        np.testing.assert_allclose(dist.cdf(corners, grid=True), [[1.5, 1.0, 1.0]], atol=1e-9)
        drawn = np.round(dist.rvs(500, 0), 0)
        assert not np.any(np.all(drawn == [0.0, 0.0], axis=-1))


def test_what_has_no_meaning_for_several_outputs_says_so():
    dist = plane_case()
    for ask in (lambda: dist.ppf(0.5), lambda: dist.crps(np.zeros(2)), lambda: dist.interval()):
        with pytest.raises(NkcmeError, match="one output only"):
            ask()


def test_the_space_of_several_outputs():
    a, b = plane_case(), plane_case(seed=1)
    np.testing.assert_allclose(a.inner(b), b.inner(a))
    assert np.all(a.mmd(b) > 0)
    c = np.array([0.3, -1.9])
    known = a.expect(lambda y: np.prod(stats.norm.pdf(y - c, scale=0.5 * a.scale[0]), axis=1))
    np.testing.assert_allclose(a.pdf(c), known)
    assert a.mode().shape == (2, 2)
    best = dataclasses.replace(a, bandwidth=1e-3).mode()
    np.testing.assert_allclose(best, a.location + a.scale * ATOMS_2D[a.weights.argmax(axis=1)])


# --- shapes, rows and memory -----------------------------------------------------------------


def test_points_come_one_a_row_several_a_row_for_all_or_as_a_grid():
    dist = make(units="per row")
    y = np.array([0.0, 1.0, 2.0])
    grid = dist.pdf(y, grid=True)
    assert grid.shape == (3, 3)
    np.testing.assert_allclose(dist.pdf(y), np.diag(grid), rtol=1e-12)
    np.testing.assert_allclose(dist.pdf(np.tile(y, (3, 1))), grid, rtol=1e-12)
    np.testing.assert_allclose(dist.pdf(1.0), grid[:, 1], rtol=1e-12)
    assert dist.pdf(np.zeros((3, 1))).shape == (3, 1)


@pytest.mark.parametrize("units", UNITS)
def test_rows_are_chosen_as_in_numpy(units):
    dist = make(units=units)
    y = np.array([0.0, 1.0, 2.0])
    whole = dist.pdf(y, grid=True)
    mask = np.array([True, False, True])
    for rows in (slice(1, None), slice(None, None, -1), [2, 0, 0], mask, np.array([1])):
        np.testing.assert_allclose(dist[rows].pdf(y, grid=True), whole[rows], rtol=1e-12)
        assert len(dist[rows]) == len(whole[rows])
    for i in (0, -1, np.int64(1)):
        np.testing.assert_allclose(dist[i].pdf(y, grid=True), whole[i][None], rtol=1e-12)
    with pytest.raises(IndexError):
        dist[3]


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("reading", READINGS)
def test_no_rows_give_empty_answers(units, reading):
    dist = make(units=units, reading=reading)[[]]
    y = np.zeros(2)
    for answer, shape in (
        (dist.pdf(y, grid=True, clip=True), (0, 2)),
        (dist.cdf(y, grid=True), (0, 2)),
        (dist.pdf(np.zeros(0)), (0,)),
        (dist.ppf([0.1, 0.9]), (0, 2)),
        (dist.rvs(4), (4, 0)),
        (dist.herd(4), (4, 0)),
        (dist.crps(np.zeros(0)), (0,)),
        (dist.mode(), (0,)),
        (dist.mean(), (0,)),
        (dist.expect(np.sin), (0,)),
        (dist.mmd(dist), (0,)),
    ):
        assert answer.shape == shape


@every_case
def test_blocks_of_rows_and_points_give_what_the_whole_gives(dist, monkeypatch):
    y = np.linspace(-1.0, 4.0, 7)

    def ask():
        return [
            dist.pdf(y, grid=True, clip=True),
            dist.pdf(y[:3]),
            dist.cdf(y, grid=True),
            dist.ppf(LEVELS[:-1]),
            dist.mode(),
            dist.rvs(5, 0),
            dist.crps(y[:3]),
        ]

    whole = ask()
    monkeypatch.setattr(module, "MAX_MEMORY", 2000)
    for ours, theirs in zip(ask(), whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_blocks_are_as_small_as_memory_asks(monkeypatch):
    """Rows at once x quantiles x atoms x 8 bytes stay below the bound."""
    dist = Embedding(ETA, np.tile(WEIGHTS["simplex"], (40, 1)), bandwidth=0.4)
    seen = []
    original = Embedding._through_kernel

    def watch(self, what, z):
        seen.append(max(len(z), 1) * z.shape[1] * self.n_atoms * 8)
        return original(self, what, z)

    monkeypatch.setattr(Embedding, "_through_kernel", watch)
    monkeypatch.setattr(module, "MAX_MEMORY", 2**18)
    dist.ppf(np.linspace(0.1, 0.9, 50))
    dist.cdf(np.linspace(-2, 2, 400), grid=True)
    assert max(seen) <= 2**18


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
    twins = Embedding([0.0, np.nextafter(1.0, 0.0), 1.0, 2.0], [[0.2, 0.2, 0.3, 0.3]])
    atomic = tidy.read("atomic")
    np.testing.assert_allclose(twins.read("atomic").ppf(LEVELS), atomic.ppf(LEVELS), rtol=1e-12)
    np.testing.assert_allclose(twins.read("atomic").pdf(1.0), atomic.pdf(1.0), rtol=1e-12)


def test_rows_that_are_no_distribution_still_answer():
    """Weights of zero, or that do not sum to one: nothing is NaN, and the CDF is a CDF."""
    weights = np.array([[0.0] * 6, [0.5] * 6, [-1.0] * 6])
    for reading in READINGS:
        dist = Embedding(ETA, weights, bandwidth=0.4, reading=reading)
        np.testing.assert_allclose(dist.cdf(dist.ppf(LEVELS)), np.tile(LEVELS, (3, 1)), atol=1e-9)
        np.testing.assert_array_equal(dist.cdf([-1e9, 1e9], grid=True), [[0.0, 1.0]] * 3)
        assert np.all(np.isfinite(dist.crps(np.zeros(3))))
        half = dist[1]
        t, weight = line(np.linspace(-2.375, 2.125, 13), n=60, tail=0.4)
        np.testing.assert_allclose(half.pdf(t, grid=True, clip=True) @ weight, 1.0, atol=1e-9)


def test_the_log_density_is_that_of_the_clipped_one():
    dist = make(weights="signed")
    y = np.linspace(-3, 3, 50)
    clipped = dist.pdf(y, grid=True, clip=True)
    assert np.any(clipped == 0)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(dist.logpdf(y, grid=True), np.log(clipped))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda: Embedding([0.0, 1.0], [[1.0]]), r"expected atoms \(m, d\) and weights"),
        (lambda: Embedding([], np.zeros((2, 0))), r"expected atoms \(m, d\) and weights"),
        (lambda: make(reading="exact"), "reading must be one of"),
        (lambda: make(bandwidth=0.0), "bandwidth must be positive; got 0.0"),
        (lambda: make(bandwidth=float("nan")), "bandwidth must be positive; got nan"),
        (lambda: make(kernel="sinc"), "kernel must be one of"),
        (lambda: make(scale=-1.0), "scale must be positive; got -1"),
        (lambda: make(location=[1.0, 2.0, 3.0]), r"location must be .* got shape \(3,\)"),
        (lambda: make(scale=np.ones((2, 1))), r"scale must be .* got shape \(2, 1\)"),
        (lambda: make().pdf([1.0, 2.0]), "one y for each of 3 rows.*pass grid=True"),
        (lambda: make().pdf(np.zeros((2, 3))), "one y for each of 3 rows"),
        (lambda: make().pdf(np.zeros((2, 3)), grid=True), "a grid is one list of points"),
        (lambda: plane_case().pdf(np.zeros((2, 3))), "2 outputs in its last axis"),
        (lambda: make().ppf([0.5, 1.5]), "quantile levels must be numbers from 0 to 1"),
        (lambda: make().ppf(float("nan")), "quantile levels must be numbers from 0 to 1"),
        (lambda: make().interval(1.0), "coverage must lie between 0 and 1"),
        (lambda: make().rvs(-1), "must not be negative; got -1"),
        (lambda: make().herd(-1), "must not be negative; got -1"),
        (lambda: make().crps([1.0]), r"one y for each of 3 rows; got \(1,\)"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(action, message):
    with pytest.raises(NkcmeError, match=message) as caught:
        action()
    assert "\n" not in str(caught.value)


def test_it_says_what_it_is():
    assert repr(make()) == (
        "Embedding(3 rows, 6 atoms, 1 outputs, gaussian kernel of bandwidth 0.4, smoothed reading)"
    )


def test_scipys_integrator_agrees_about_one_row():
    """An independent look at one signed row, with scipy's adaptive quadrature."""
    dist = make("laplace", "signed")[0]
    density = lambda y: dist.pdf(y, clip=True)[0]  # noqa: E731
    total, _ = integrate.quad(density, -6.0, 6.0, points=list(ETA), limit=60, epsabs=1e-5)
    assert total == pytest.approx(1.0, abs=2e-3)


def test_mode_of_several_outputs_read_atomically_is_the_heaviest_atom() -> None:
    atoms = np.array([[0.0, 0.0], [1.0, 2.0], [3.0, 1.0]])
    dist = Embedding(atoms, [[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]], location=1.0, reading="atomic")
    np.testing.assert_allclose(dist.mode(), atoms[[1, 0]] + 1.0)


def test_witness_pairs_one_row_with_every_row() -> None:
    dist = Embedding(np.linspace(-1, 1, 5), np.eye(5)[:3], bandwidth=0.5)
    values = dist.witness(dist[0], [0.3, 0.3, 0.3])
    np.testing.assert_allclose(values, dist.pdf(0.3) - dist[0].pdf(0.3))
