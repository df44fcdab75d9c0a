"""The problems of two outputs: samples follow the density, and each has its known moments."""

import numpy as np
import pytest

from nkcme.datasets.plane import PLANE, load_plane
from nkcme.errors import NkcmeError

every_problem = pytest.mark.parametrize("problem", PLANE.values(), ids=PLANE)

MOMENTS = (
    lambda y: y,
    lambda y: y**2,
    np.abs,
    lambda y: y[..., :1] * y[..., 1:],
    lambda y: y[..., :1] ** 2 * y[..., 1:],
)

POINTS = np.array([-1.0, -0.4, 0.0, 0.7, 1.0])


@every_problem
def test_the_density_integrates_to_one_and_to_the_moments_of_samples(problem):
    # An even number of points leaves out the centre, where the density of the ring has a pole.
    first, second = np.linspace(-5.5, 5.5, 400), np.linspace(-14.5, 14.5, 1500)
    cell = (first[1] - first[0]) * (second[1] - second[0])
    grid = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1)
    draws = problem.sample(POINTS, np.random.default_rng(1), n_draws=20_000)
    assert draws.shape == (20_000, len(POINTS), 2)
    for k, x in enumerate(POINTS):
        density = cell * problem.pdf(x, grid)
        assert density.sum() == pytest.approx(1.0, abs=2e-3)
        for moment in MOMENTS:
            known = np.sum(density[..., None] * moment(grid), axis=(0, 1))
            drawn = moment(draws[:, k])
            scatter = drawn.std(axis=0) / np.sqrt(len(drawn))
            assert np.all(np.abs(drawn.mean(axis=0) - known) < 4 * scatter + 1e-3)


def test_the_radius_of_the_ring_follows_x():
    draws = load_plane("ring").sample(POINTS, np.random.default_rng(0), n_draws=4000)
    radius = np.linalg.norm(draws, axis=-1)
    np.testing.assert_allclose(radius.mean(axis=0), 1 + 0.5 * POINTS, atol=0.01)
    np.testing.assert_allclose(radius.std(axis=0), 0.1, atol=0.01)


def test_the_outputs_of_the_banana_are_uncorrelated_but_dependent():
    x = np.array([-1.0, 1.0])
    draws = load_plane("banana").sample(x, np.random.default_rng(0), n_draws=40_000)
    for k in range(2):
        first, second = draws[:, k].T
        assert abs(np.corrcoef(first, second)[0, 1]) < 0.05
        # E (Y1^2 - 1) Y2 = bend E (Y1^2 - 1)^2 = 2 bend.
        assert np.mean((first**2 - 1) * second) == pytest.approx(2 * x[k], abs=0.2)


def test_the_correlation_within_a_lobe_of_the_mixture_changes_sign():
    law = load_plane("mixture").conditional(np.array([-1.0, 0.0, 1.0]))
    np.testing.assert_allclose(law.correlations[:, 0], [-0.9, 0.0, 0.9], atol=1e-12)
    np.testing.assert_allclose(law.weights.sum(axis=-1), 1.0)


@every_problem
def test_a_table_is_set_by_its_seed(problem):
    X, y = problem.make(50, seed=3)
    again = problem.make(50, seed=3)
    assert (X.shape, y.shape) == ((50, 1), (50, 2))
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(y, again[1])
    assert not np.array_equal(y, problem.make(50, seed=4)[1])


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(NkcmeError, match="'moon'; there are ring, banana, mixture"):
        load_plane("moon")
