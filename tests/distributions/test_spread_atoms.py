"""Atoms spread over the gaps beside them keep their means."""

from __future__ import annotations

import numpy as np
import pytest

from nkcme.distributions.embedding import Embedding
from nkcme.distributions.support import Support
from nkcme.errors import NkcmeError

ATOMS = np.array([-1.0, -0.9, 0.0, 2.0, 2.1, 2.5])
UNITS = {"location": [[0.0], [5.0], [-100.0]], "scale": [[1.0], [4.0], [0.1]]}


@pytest.fixture
def weights():
    return np.random.default_rng(0).dirichlet(np.ones(len(ATOMS)), size=3)


@pytest.mark.parametrize("overlap", [0.0, 0.5, 1.0])
def test_moments_are_those_of_the_density(overlap, weights):
    dist = Embedding(ATOMS, weights, reading="law", overlap=overlap, **UNITS)
    z = np.linspace(-1.5, 3.5, 200_001)
    y = dist.location + dist.scale * z
    density = dist.pdf(y) * dist.scale * (z[1] - z[0])
    np.testing.assert_allclose(density.sum(axis=1), 1.0, rtol=1e-3)
    mean = np.sum(density * y, axis=1)
    expected = dist.location[:, 0] + dist.scale[:, 0] * (weights @ ATOMS)
    np.testing.assert_allclose(dist.mean(), expected, rtol=1e-12)
    np.testing.assert_allclose((dist.mean() - mean) / dist.scale[:, 0], 0.0, atol=1e-2)
    var = np.sum(density * np.square(y - mean[:, None]), axis=1)
    np.testing.assert_allclose(dist.var(), var, rtol=2e-3)
    within = (1 / 12 + overlap / 4) * np.diff(ATOMS, prepend=-1.1) * np.diff(ATOMS, append=2.9)
    of_atoms = weights @ ATOMS**2 - (weights @ ATOMS) ** 2
    known = np.square(dist.scale[:, 0]) * (of_atoms + weights @ within)
    np.testing.assert_allclose(dist.var(), known, rtol=1e-9)


def test_one_outlier_does_not_move_the_mean_of_the_draws():
    """An atom at 1e6 with a weight of 1e-5; the next one is at 2."""
    atoms = np.append(np.linspace(-2, 2, 50), 1e6)
    weights = np.append(np.full(50, (1 - 1e-5) / 50), 1e-5)[None]
    dist = Embedding(atoms, weights, reading="law", overlap=0.0)
    assert dist.mean() == pytest.approx(10.0)
    assert np.mean(dist.ppf((np.arange(10**6) + 0.5) / 10**6)) == pytest.approx(10.0, rel=0.02)


def test_atoms_on_a_bound_that_y_reaches_are_points():
    dist = Embedding(
        [0.0, 1.0, 2.0],
        [[0.3, 0.5, 0.2]],
        reading="law",
        location=5.0,
        support=Support(lower=5.0, reached=(5.0,)),
    )
    first = repr(dist).splitlines()[0]
    assert first.endswith("law reading on numbers from 5 with a point mass at 5)")
    assert dist.pmf(5.0) == pytest.approx(0.3)
    assert dist.mean() == pytest.approx(5.9)


def test_a_law_needs_weights_of_one_output_that_are_not_negative():
    for atoms, weights in (([0.0, 1.0], [[1.5, -0.5]]), (np.zeros((2, 2)), [[0.5, 0.5]])):
        with pytest.raises(NkcmeError, match="not negative"):
            Embedding(atoms, weights, reading="law")
