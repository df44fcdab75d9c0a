"""Cells cover the data; their laws are normal laws."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from nkcme.distributions.atom_covariances import NormalCells, cover, overlap

RNG = np.random.default_rng(0)


def known_cells(d: int, m: int = 3) -> NormalCells:
    rng = np.random.default_rng(d)
    roots = rng.normal(size=(m, d, d))
    return NormalCells(rng.normal(size=(m, d)), roots @ roots.swapaxes(1, 2) + 0.2 * np.eye(d))


@pytest.mark.parametrize("d", [2, 3, 10])
def test_the_density_is_that_of_normal_laws(d):
    cells, y = known_cells(d), RNG.normal(size=(4, 5, d))
    density = cells.logpdf(y)
    assert density.shape == (4, 5, 3)
    for a in range(3):
        law = multivariate_normal(cells.atoms[a], cells.covariances[a])
        np.testing.assert_allclose(density[..., a], law.logpdf(y), rtol=1e-9)


@pytest.mark.parametrize(("d", "tolerance"), [(2, 1e-3), (3, 5e-3), (5, 1e-2)])
def test_the_cdf_is_that_of_normal_laws(d, tolerance):
    cells, y = known_cells(d), 1.5 * RNG.normal(size=(8, d))
    probability = cells.cdf(y)
    for a in range(3):
        law = multivariate_normal(cells.atoms[a], cells.covariances[a], seed=0)
        np.testing.assert_allclose(probability[:, a], law.cdf(y), atol=tolerance)
    np.testing.assert_allclose(cells.cdf(np.full((1, d), 60.0)), 1.0)
    np.testing.assert_allclose(cells.cdf(np.full((1, d), -60.0)), 0.0, atol=1e-200)


def test_draws_have_the_mean_and_the_covariance_of_their_cell():
    cells = known_cells(3)
    chosen = np.repeat([0, 2], 40_000)
    draws = cells.carry(chosen, RNG.normal(size=(80_000, 3)))
    for a in (0, 2):
        own = draws[chosen == a]
        np.testing.assert_allclose(own.mean(axis=0), cells.atoms[a], atol=0.05)
        np.testing.assert_allclose(np.cov(own.T), cells.covariances[a], rtol=0.05, atol=0.08)


def test_atoms_lie_where_the_data_are_and_not_all_over_the_cube():
    angle = RNG.uniform(0, 2 * np.pi, 3000)
    y = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    atoms, _ = cover(y, np.ones(3000), 50, seed=0)
    np.testing.assert_allclose(np.linalg.norm(atoms, axis=1), 1.0, atol=0.01)


def test_cells_and_their_shares_have_the_covariance_of_the_data():
    """The law of total variance, but for what is drawn from one cell to another."""
    y = RNG.normal(size=(6000, 4)) @ RNG.normal(size=(4, 4))
    atoms, covariances = cover(y, np.ones(6000), 60, seed=0)
    nearest = np.argmin(np.linalg.norm(y[:, None] - atoms, axis=2), axis=1)
    share = np.bincount(nearest, minlength=60) / 6000
    off = atoms - share @ atoms
    within = np.tensordot(share, covariances, 1) / overlap(4)
    total = np.einsum("a,ai,aj->ij", share, off, off) + within
    np.testing.assert_allclose(total, np.cov(y.T), rtol=0.02, atol=0.02)


def test_a_row_of_weight_two_is_two_rows():
    y = RNG.normal(size=(30, 2))
    far = np.concatenate([y, y + np.array([100.0, 0.0])])
    weight = np.r_[3.0 * np.ones(30), np.ones(30)]
    light = cover(far, weight, 2, seed=0)
    repeated = cover(np.concatenate([far[:30]] * 3 + [far[30:]]), np.ones(120), 2, seed=0)
    order = [np.argsort(cells.atoms[:, 0]) for cells in (light, repeated)]
    for mine, theirs in zip(light, repeated, strict=True):
        np.testing.assert_allclose(mine[order[0]], theirs[order[1]], rtol=1e-6)


def test_few_distinct_targets_are_the_atoms_themselves():
    y = np.repeat([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 20, axis=0)
    atoms, covariances = cover(y, np.ones(60), 7, seed=0)
    assert (atoms.shape, covariances.shape) == ((7, 2), (7, 2, 2))
    assert {tuple(atom) for atom in atoms} == {(0.0, 1.0), (1.0, 0.0), (1.0, 1.0)}
    assert not covariances.any()


def test_few_rows_make_few_cells_which_are_repeated():
    y = RNG.normal(size=(60, 2))
    atoms, covariances = cover(y, np.ones(60), 50, seed=0)
    assert len(atoms) == 50
    assert len(np.unique(atoms, axis=0)) == 12
    assert np.all(np.linalg.eigvalsh(covariances) > 0)


def test_outputs_that_are_tied_have_a_density_and_draws_that_are_tied():
    f = RNG.normal(size=500)
    atoms, covariances = cover(np.stack([f, f], axis=1), np.ones(500), 20, seed=0)
    cells = NormalCells(atoms, covariances)
    draws = cells.carry(RNG.integers(20, size=1000), RNG.normal(size=(1000, 2)))
    assert np.all(np.isfinite(cells.logpdf(atoms)))
    assert np.abs(draws[:, 0] - draws[:, 1]).max() < 0.01
