"""Condensed targets: exact if few are distinct, otherwise within a known bound."""

from __future__ import annotations

import numpy as np
import pytest

from nkcme.estimators.closed_form.condensing import condense


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def gaussian(a: np.ndarray, b: np.ndarray, bandwidth: float) -> np.ndarray:
    return np.exp(-0.5 * np.sum(np.square(a[:, None] - b[None]), axis=-1) / bandwidth**2)


@pytest.mark.parametrize("d", [1, 2])
def test_few_distinct_targets_are_the_atoms(d, rng):
    y = rng.integers(0, 4, size=(200, d)).astype(float)
    atoms, shares = condense(y, np.ones(200), n_atoms=4**d, seed=0)
    assert len(atoms) == len(np.unique(y, axis=0))
    np.testing.assert_array_equal(shares.toarray() @ atoms, y)


@pytest.mark.parametrize("n_atoms", [2, 3, 4, 7, 100])
def test_a_split_target_keeps_its_mass_and_its_mean(n_atoms, rng):
    y = rng.normal(size=(500, 1))
    atoms, shares = condense(y, rng.uniform(0.1, 2, 500), n_atoms, seed=0)
    assert len(atoms) <= n_atoms
    assert (atoms[0], atoms[-1]) == (y.min(), y.max())
    dense = shares.toarray()
    assert (dense >= 0).all()
    assert ((dense > 0).sum(axis=1) <= 2).all()
    np.testing.assert_allclose(dense.sum(axis=1), 1.0)
    np.testing.assert_allclose(dense @ atoms, y, atol=1e-12)


def test_the_kernel_has_the_error_of_linear_interpolation(rng):
    """It is at most (gap / sigma)^2 / 8, and close to that at the widest gap."""
    y = rng.normal(size=(5000, 1))
    points = np.linspace(-4, 4, 401)[:, None]
    for n_atoms in (50, 100, 200):
        atoms, shares = condense(y, np.ones(5000), n_atoms, seed=0)
        bound = np.diff(atoms[:, 0]).max() ** 2 / 8
        error = np.abs(shares @ gaussian(atoms, points, 1.0) - gaussian(y, points, 1.0)).max()
        assert 0.5 * bound < error <= bound


def test_an_outlier_does_not_use_up_the_atoms(rng):
    y = np.r_[rng.normal(size=2000), 1e6][:, None]
    atoms, _ = condense(y, np.ones(2001), n_atoms=200, seed=0)
    assert np.sum(np.abs(atoms) < 5) > 90


def test_the_quantiles_are_weighted():
    y = np.linspace(0, 1, 1001)[:, None]
    atoms, _ = condense(y, np.where(y[:, 0] < 0.1, 100.0, 1e-3), n_atoms=100, seed=0)
    assert np.sum(atoms < 0.1) > 50


def test_with_several_outputs_each_target_has_the_nearest_atom(rng):
    y = rng.normal(size=(300, 2))
    atoms, shares = condense(y, np.ones(300), n_atoms=20, seed=0)
    assert atoms.shape == (20, 2)
    distance = np.linalg.norm(y[:, None] - atoms[None], axis=-1)
    np.testing.assert_array_equal(shares.toarray().argmax(axis=1), distance.argmin(axis=1))
    np.testing.assert_array_equal(shares.sum(axis=1), 1.0)
