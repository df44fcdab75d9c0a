"""Embeddings as elements of a Hilbert space: the laws of inner product, distance and witness."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from nkcme.distributions.embedding import Embedding
from nkcme.errors import NkcmeError
from nkcme.kernels import KERNELS
from support.predicted_distributions import (
    ATOMS,
    ROWS,
    UNITS,
    plane_embedding,
    weights,
)
from support.predicted_distributions import embedding as make
from support.quadrature import line

SCIPY = {"gaussian": stats.norm, "laplace": stats.laplace, "cauchy": stats.cauchy}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def three(kernel):
    """Three embeddings with signed weights in one space."""
    rng = np.random.default_rng(8)
    for _ in range(3):
        atoms, w = rng.normal(size=5), rng.normal(0.5, 1.0, size=(4, 5))
        yield Embedding(atoms, w / w.sum(axis=1, keepdims=True), kernel, 0.7, 2.0, 3.0)


@every_kernel
@pytest.mark.parametrize("units", UNITS)
def test_expectation_reproduces_the_density(kernel, units):
    """<k(c, .), mu> = mu(c): the reproducing property."""
    dist = make(kernel, "signed", "smoothed", units)
    c = 1.3
    for i in range(ROWS):
        row = dist[i]
        bandwidth = 0.4 * float(row.scale[0, 0])
        value = row.expect(lambda y, b=bandwidth: SCIPY[kernel].pdf(y - c, scale=b))
        np.testing.assert_allclose(value, row.embedding_function(c), rtol=1e-10)
    np.testing.assert_allclose(dist.expect(lambda y: y), dist.embedding_mean(), rtol=1e-12)
    np.testing.assert_allclose(dist.expect(np.ones_like), 1.0, rtol=1e-12)


@every_kernel
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


@every_kernel
def test_the_witness_is_the_difference_and_integrates_to_zero(kernel):
    a, b, _ = three(kernel)
    breaks = 2 + 3 * np.concatenate([a.atoms[:, 0], b.atoms[:, 0]])
    t, weight = line(breaks, n=100, tail=2.0)
    witness = a.witness(b.read("atomic"), t, grid=True)
    np.testing.assert_allclose(witness @ weight, 0.0, atol=1e-9)
    ours, theirs = (e.embedding_function(t, grid=True)[1] for e in (a, b))
    np.testing.assert_allclose(witness[1], ours - theirs)


@pytest.mark.parametrize(("kernel", "factor"), [("gaussian", np.sqrt(2.0)), ("cauchy", 2.0)])
def test_the_inner_product_at_a_wider_bandwidth_is_that_of_the_densities(kernel, factor):
    a, b, _ = three(kernel)
    t, weight = line(2 + 3 * np.concatenate([a.atoms[:, 0], b.atoms[:, 0]]), n=40, tail=2.0)
    ours, theirs = (e.embedding_function(t, grid=True) for e in (a, b))
    known = (ours * theirs) @ weight
    wide = (dataclasses.replace(e, bandwidth=factor * 0.7) for e in (a, b))
    np.testing.assert_allclose(next(wide).inner(next(wide)), known, rtol=1e-8)


def test_one_row_pairs_with_every_row():
    many = dataclasses.replace(make(units="units per row"), scale=3.0)
    one = make(units="shared units")
    for inner in (many.inner(one[1]), one[1].inner(many)):
        known = [many[i].inner(one[1])[0] for i in range(ROWS)]
        np.testing.assert_allclose(inner, known, rtol=1e-12)
    assert many.mmd(one[0]).shape == (ROWS,)
    np.testing.assert_allclose(one.witness(one[0], 0.3), one.pdf(0.3) - one[0].pdf(0.3))
    with pytest.raises(NkcmeError, match="cannot pair 3 rows with 2"):
        many.inner(one[:2])
    with pytest.raises(NkcmeError, match="cannot pair 2 rows with 3"):
        many[:2].mmd(one)


def test_no_rows_give_empty_results():
    for units in UNITS:
        empty = make(units=units)[:0]
        assert empty.herd(4).shape == (4, 0)
        assert empty.expect(np.sin).shape == empty.mmd(empty).shape == (0,)


def test_embeddings_of_different_spaces_are_not_compared():
    for other in (make("laplace"), make(bandwidth=0.41), make(scale=2.0)):
        with pytest.raises(NkcmeError, match="one Hilbert space"):
            make().inner(other)
        with pytest.raises(NkcmeError, match="one Hilbert space"):
            make().witness(other, 0.0)


def test_the_same_measure_in_other_units_is_the_same_element():
    location, scale = np.array([[0.0], [1.0], [-40.0]]), np.array([[1.0], [2.0], [20.0]])
    one = Embedding(3.0 * ATOMS, weights("simplex"), "laplace", 0.6)
    q = np.array([0.01, 0.5, 0.99])
    for i in range(ROWS):
        atoms = (3.0 * ATOMS - location[i]) / scale[i]
        bandwidth = 0.6 / scale[i, 0]
        other = Embedding(atoms, weights("simplex"), "laplace", bandwidth, location[i], scale[i])
        np.testing.assert_allclose(other.mmd(one), 0.0, atol=1e-7)
        np.testing.assert_allclose(other.inner(one), one.inner(one), rtol=1e-10)
        np.testing.assert_allclose(other.ppf(q), one.ppf(q), rtol=1e-6)
        np.testing.assert_allclose(other.expect(np.cos), one.expect(np.cos), rtol=1e-10)
        np.testing.assert_allclose(other.witness(one, 0.3), 0.0, atol=1e-12)


def test_the_space_of_several_outputs():
    a = plane_embedding()
    b = dataclasses.replace(a, weights=a.weights[::-1])
    np.testing.assert_allclose(a.inner(b), b.inner(a))
    assert np.all(a.mmd(b)[[0, 2]] > 0)
    c = np.array([0.3, -1.9])
    known = a.expect(lambda y: np.prod(stats.norm.pdf(y - c, scale=0.5 * a.scale[0]), axis=1))
    np.testing.assert_allclose(a.pdf(c), known)


@pytest.mark.parametrize("size", [-1, 1.5, True])
def test_a_number_of_super_samples_that_is_no_whole_number_is_refused(size):
    with pytest.raises(NkcmeError, match="must be a whole number of at least 0"):
        make().herd(size)
