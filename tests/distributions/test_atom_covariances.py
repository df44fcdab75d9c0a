"""The Gaussians of atoms with covariances against scipy's multivariate normal distribution."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from nkcme.distributions.atom_covariances import GaussianComponents, need_covariances
from nkcme.errors import ModelFileError


def components(d: int, m: int = 3) -> GaussianComponents:
    rng = np.random.default_rng(d)
    roots = rng.normal(size=(m, d, d))
    covariances = roots @ roots.swapaxes(1, 2) + 0.2 * np.eye(d)
    return GaussianComponents(rng.normal(size=(m, d)), covariances)


@pytest.mark.parametrize("d", [2, 3, 10])
def test_log_density(d):
    known, y = components(d), np.random.default_rng(0).normal(size=(4, 5, d))
    density = known.logpdf(y)
    assert density.shape == (4, 5, 3)
    for a in range(3):
        normal = multivariate_normal(known.atoms[a], known.covariances[a])
        np.testing.assert_allclose(density[..., a], normal.logpdf(y), rtol=1e-9)


@pytest.mark.parametrize(("d", "tolerance"), [(2, 1e-3), (3, 5e-3), (5, 1e-2)])
def test_cdf(d, tolerance):
    known, y = components(d), 1.5 * np.random.default_rng(0).normal(size=(8, d))
    probability = known.cdf(y)
    for a in range(3):
        normal = multivariate_normal(known.atoms[a], known.covariances[a], seed=0)
        np.testing.assert_allclose(probability[:, a], normal.cdf(y), atol=tolerance)
    np.testing.assert_allclose(known.cdf(np.full((1, d), 60.0)), 1.0)
    np.testing.assert_allclose(known.cdf(np.full((1, d), -60.0)), 0.0, atol=1e-200)


def test_samples_have_the_mean_and_the_covariance_of_their_component():
    known, rng = components(3), np.random.default_rng(0)
    chosen = np.repeat([0, 2], 40_000)
    samples = known.transform(chosen, rng.normal(size=(80_000, 3)))
    for a in (0, 2):
        own = samples[chosen == a]
        np.testing.assert_allclose(own.mean(axis=0), known.atoms[a], atol=0.05)
        np.testing.assert_allclose(np.cov(own.T), known.covariances[a], rtol=0.05, atol=0.08)


def test_covariances_of_a_file_are_positive_definite_or_all_zero():
    need_covariances(components(2).covariances)
    need_covariances(np.zeros((3, 2, 2)))
    for bad in (-np.eye(2), np.array([[1.0, 2.0], [2.0, 1.0]]), np.full((2, 2), np.nan)):
        with pytest.raises(ModelFileError, match="not positive definite"):
            need_covariances(np.stack([np.eye(2), bad]))
