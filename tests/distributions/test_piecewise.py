"""Piecewise linear distribution functions: against exact integrals, and as properties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nkcme.distributions.piecewise import CdfTable

BINS, ROWS = 5, 3


@st.composite
def tables(draw, least_step=0.0):
    """Rows of signed masses on shared edges, some of which may coincide."""
    steps = draw(hnp.arrays(float, BINS, elements=st.floats(least_step, 3.0)))
    masses = draw(hnp.arrays(float, (ROWS, BINS), elements=st.floats(-1.0, 1.0)))
    edges = np.concatenate([[0.0], np.cumsum(steps)]) + draw(st.floats(-5.0, 5.0))
    return CdfTable.from_masses(edges, masses)


LEVELS = np.array([0.0, 1e-12, 0.1, 0.1 + 1e-13, 0.5, 0.77, 1 - 1e-12, 1.0])


@given(tables())
def test_every_row_is_a_distribution_function(table):
    assert np.all(table.values[:, 0] == 0.0)
    assert np.all(table.values[:, -1] == 1.0)
    assert np.all(np.diff(table.values, axis=1) >= 0)
    z = np.linspace(table.edges[0] - 1.0, table.edges[-1] + 1.0, 101)[None]
    at = table.at(z)
    assert at.shape == (ROWS, 101)
    assert np.all(np.diff(at, axis=1) >= 0)
    np.testing.assert_array_equal(at[:, [0, -1]], np.tile([0.0, 1.0], (ROWS, 1)))


@given(tables())
def test_quantiles_never_cross_and_lie_on_the_table(table):
    z = table.inverse(LEVELS[None])
    assert z.shape == (ROWS, len(LEVELS))
    assert np.all(np.diff(z, axis=1) >= 0)
    assert np.all((z >= table.edges[0]) & (z <= table.edges[-1]))


@given(tables(least_step=1e-3), hnp.arrays(float, (ROWS, 4), elements=st.floats(0.0, 1.0)))
def test_the_inverse_inverts(table, q):
    np.testing.assert_allclose(table.at(table.inverse(q)), q, atol=1e-11)


@given(tables(least_step=1e-3))
def test_the_inverse_of_the_cdf_is_the_identity_where_there_is_mass(table):
    middle = 0.5 * (table.edges[1:] + table.edges[:-1])
    back = table.inverse(table.at(middle[None]))
    mass = np.diff(table.values, axis=1)
    away = np.where(mass > 1e-3, np.abs(back - middle), 0.0)
    assert np.max(away) < 1e-8


def exact_crps(table, row, z):
    """The integral of (F - 1{t >= z})^2, by quadrature on each piece of a square of lines."""
    nodes, weights = np.polynomial.legendre.leggauss(3)
    breaks = np.unique([*table.edges, z])
    total = 0.0
    for a, b in itertools.pairwise(breaks):
        t = 0.5 * (a + b) + 0.5 * (b - a) * nodes
        gap = table.at(t[None])[row] - (0.5 * (a + b) >= z)
        total += 0.5 * (b - a) * (weights @ gap**2)
    return total


@given(tables(), hnp.arrays(float, ROWS, elements=st.floats(-20.0, 30.0)))
def test_crps_is_the_integral_of_its_definition(table, z):
    known = [exact_crps(table, i, z[i]) for i in range(ROWS)]
    np.testing.assert_allclose(table.crps(z), known, rtol=1e-9, atol=1e-11)


def test_crps_of_a_uniform_distribution_is_the_closed_form():
    table = CdfTable.from_masses(np.array([2.0, 2.5, 4.0]), np.array([[0.5, 1.5]]))
    # For U(0, 1): z^2 - z + 1/3 inside, the distance more outside (scoringrules.crps_uniform).
    for z, known in ((3.0, 2 * (0.25 - 0.5 + 1 / 3)), (2.0, 2 / 3), (7.0, 2 / 3 + 3.0)):
        assert table.crps(np.array([z]))[0] == pytest.approx(known, rel=1e-12)


def test_masses_are_clipped_and_normalised():
    edges = np.array([0.0, 1.0, 2.0, 4.0])
    masses = np.array([[1.0, -1.0, 1.0], [0.5, 0.25, 0.25]])
    table = CdfTable.from_masses(edges, masses)
    np.testing.assert_allclose(table.values, [[0, 0.5, 0.5, 1], [0, 0.5, 0.75, 1]])
    np.testing.assert_array_equal(masses[0], [1.0, -1.0, 1.0])  # the argument is not modified
    # A flat piece: its left end is the quantile, and its right end the next one's limit.
    np.testing.assert_allclose(table.inverse(np.array([[0.5, 0.5 + 1e-12]]))[0], [1.0, 2.0])


@pytest.mark.parametrize("masses", [[-1.0, -2.0], [0.0, 0.0], [np.nan, 1.0]])
def test_a_row_without_positive_mass_is_spread_evenly(masses):
    table = CdfTable.from_masses(np.array([0.0, 1.0, 2.0]), np.array([masses]))
    np.testing.assert_allclose(table.values, [[0.0, 0.5, 1.0]])


def test_coinciding_edges_are_a_step():
    table = CdfTable.from_masses(np.array([0.0, 1.0, 1.0, 2.0]), np.array([[0.25, 0.5, 0.25]]))
    np.testing.assert_allclose(
        table.at(np.array([[0.5, 1.0 - 1e-9, 1.0, 1.5]]))[0], [0.125, 0.25, 0.75, 0.875], atol=1e-8
    )
    np.testing.assert_allclose(
        table.inverse(np.array([[0.2, 0.3, 0.6, 0.9]]))[0], [0.8, 1.0, 1.0, 1.6]
    )


def test_many_rows_are_inverted_to_the_same_precision():
    rng = np.random.default_rng(0)
    edges = np.linspace(-1.0, 1.0, 30)
    table = CdfTable.from_masses(edges, rng.dirichlet(np.full(29, 0.1), 20_000))
    q = rng.uniform(size=(20_000, 3))
    np.testing.assert_allclose(table.at(table.inverse(q)), q, atol=1e-11)
    alone = CdfTable(edges, table.values[-1:])
    np.testing.assert_allclose(table.inverse(q)[-1:], alone.inverse(q[-1:]), atol=1e-9)


def test_a_table_of_no_rows():
    table = CdfTable.from_masses(np.array([0.0, 1.0]), np.zeros((0, 1)))
    assert table.at(np.zeros((1, 4))).shape == (0, 4)
    assert table.inverse(np.full((1, 4), 0.5)).shape == (0, 4)
    assert table.crps(np.zeros(0)).shape == (0,)
