"""Clusters of several outputs as atoms with covariances."""

import numpy as np
import pytest

from nkcme.distributions.atom_covariances import GaussianComponents
from nkcme.estimators.nkcme.atom_placement import cluster_atoms
from nkcme.estimators.nkcme.recipe import DEFAULT


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def clusters(y, weight, n_atoms):
    return cluster_atoms(y, weight, n_atoms, 0, DEFAULT.embedding)


def test_atoms_lie_where_the_data_are(rng):
    angle = rng.uniform(0, 2 * np.pi, 3000)
    y = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    atoms, _ = clusters(y, np.ones(3000), 50)
    np.testing.assert_allclose(np.linalg.norm(atoms, axis=1), 1.0, atol=0.01)


def test_clusters_and_their_shares_have_the_covariance_of_the_data(rng):
    """The law of total variance, but for the shrinkage of the clusters' covariances."""
    y = rng.normal(size=(6000, 4)) @ rng.normal(size=(4, 4))
    atoms, covariances = clusters(y, np.ones(6000), 60)
    nearest = np.argmin(np.linalg.norm(y[:, None] - atoms, axis=2), axis=1)
    share = np.bincount(nearest, minlength=60) / 6000
    off = atoms - share @ atoms
    within = np.tensordot(share, covariances, 1) / (1 + 2 / 4)
    total = np.einsum("a,ai,aj->ij", share, off, off) + within
    np.testing.assert_allclose(total, np.cov(y.T), rtol=0.02, atol=0.02)


def test_a_row_of_weight_two_is_two_rows(rng):
    y = rng.normal(size=(30, 2))
    far = np.concatenate([y, y + np.array([100.0, 0.0])])
    weight = np.r_[3.0 * np.ones(30), np.ones(30)]
    light = clusters(far, weight, 2)
    repeated = cluster_atoms(
        np.concatenate([far[:30]] * 3 + [far[30:]]), np.ones(120), 2, 0, DEFAULT.embedding
    )
    order = [np.argsort(clusters.atoms[:, 0]) for clusters in (light, repeated)]
    for mine, theirs in zip(light, repeated, strict=True):
        np.testing.assert_allclose(mine[order[0]], theirs[order[1]], rtol=1e-6)


def test_few_distinct_targets_are_the_atoms_themselves():
    y = np.repeat([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 20, axis=0)
    atoms, covariances = clusters(y, np.ones(60), 7)
    assert (atoms.shape, covariances.shape) == ((7, 2), (7, 2, 2))
    assert {tuple(atom) for atom in atoms} == {(0.0, 1.0), (1.0, 0.0), (1.0, 1.0)}
    assert not covariances.any()


def test_few_rows_make_few_clusters_which_are_repeated(rng):
    y = rng.normal(size=(60, 2))
    atoms, covariances = clusters(y, np.ones(60), 50)
    assert len(atoms) == 50
    assert len(np.unique(atoms, axis=0)) == 12
    assert np.all(np.linalg.eigvalsh(covariances) > 0)


def test_equal_outputs_have_a_density_and_nearly_equal_samples(rng):
    f = rng.normal(size=500)
    atoms, covariances = cluster_atoms(
        np.stack([f, f], axis=1), np.ones(500), 20, 0, DEFAULT.embedding
    )
    components = GaussianComponents(atoms, covariances)
    samples = components.transform(rng.integers(20, size=1000), rng.normal(size=(1000, 2)))
    assert np.all(np.isfinite(components.logpdf(atoms)))
    assert np.abs(samples[:, 0] - samples[:, 1]).max() < 0.01
