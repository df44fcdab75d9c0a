"""Condensed targets: exact where they are few, and within a known bound where they are many."""

from __future__ import annotations

import numpy as np
import pytest

from nkcme.estimators.closed_form.condensing import condense

RNG = np.random.default_rng(0)


def gaussian(a: np.ndarray, b: np.ndarray, bandwidth: float) -> np.ndarray:
    return np.exp(-0.5 * np.sum(np.square(a[:, None] - b[None]), axis=-1) / bandwidth**2)


@pytest.mark.parametrize("d", [1, 2])
def test_few_distinct_targets_are_the_atoms(d):
    y = RNG.integers(0, 4, size=(200, d)).astype(float)
    atoms, shares = condense(y, np.ones(200), n_atoms=4**d, seed=0)
    assert len(atoms) == len(np.unique(y, axis=0))
    np.testing.assert_array_equal(shares.toarray() @ atoms, y)


@pytest.mark.parametrize("n_atoms", [2, 3, 4, 7, 100])
def test_a_split_target_keeps_its_mass_and_its_mean(n_atoms):
    y = RNG.normal(size=(500, 1))
    atoms, shares = condense(y, RNG.uniform(0.1, 2, 500), n_atoms, seed=0)
    assert len(atoms) <= n_atoms
    assert (atoms[0], atoms[-1]) == (y.min(), y.max())
    dense = shares.toarray()
    assert (dense >= 0).all()
    assert ((dense > 0).sum(axis=1) <= 2).all()
    np.testing.assert_allclose(dense.sum(axis=1), 1.0)
    np.testing.assert_allclose(dense @ atoms, y, atol=1e-12)


def test_the_error_of_the_kernel_is_that_of_linear_interpolation():
    """At most (gap / sigma)^2 / 8, and of that size where the gap is widest."""
    y = RNG.normal(size=(5000, 1))
    points = np.linspace(-4, 4, 401)[:, None]
    for n_atoms in (50, 100, 200):
        atoms, shares = condense(y, np.ones(5000), n_atoms, seed=0)
        bound = np.diff(atoms[:, 0]).max() ** 2 / 8
        error = np.abs(shares @ gaussian(atoms, points, 1.0) - gaussian(y, points, 1.0)).max()
        assert 0.5 * bound < error <= bound


def test_an_outlier_leaves_the_rest_half_of_the_atoms():
    y = np.r_[RNG.normal(size=2000), 1e6][:, None]
    atoms, _ = condense(y, np.ones(2001), n_atoms=200, seed=0)
    assert np.sum(np.abs(atoms) < 5) > 90


def test_quantiles_count_weights():
    y = np.linspace(0, 1, 1001)[:, None]
    atoms, _ = condense(y, np.where(y[:, 0] < 0.1, 100.0, 1e-3), n_atoms=100, seed=0)
    assert np.sum(atoms < 0.1) > 50


def test_several_outputs_go_to_the_nearest_centre():
    y = RNG.normal(size=(300, 2))
    atoms, shares = condense(y, np.ones(300), n_atoms=20, seed=0)
    assert atoms.shape == (20, 2)
    distance = np.linalg.norm(y[:, None] - atoms[None], axis=-1)
    np.testing.assert_array_equal(shares.toarray().argmax(axis=1), distance.argmin(axis=1))
    np.testing.assert_array_equal(shares.sum(axis=1), 1.0)
