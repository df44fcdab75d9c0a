"""The disagreement of members in the Hilbert space, against Gram matrices of embeddings."""

import numpy as np
import pytest

from nkcme.distributions.embedding import Embedding
from nkcme.estimators.nkcme.uncertainty import disagreement
from nkcme.kernels import KERNELS, kernel_class


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def by_norms(weights, atoms, shift, kernel, bandwidth):
    """By Gram matrices: half the mean square distance of all pairs of members."""
    n_members, n_rows, _ = weights.shape
    square = np.zeros(n_rows)
    for i in range(n_members):
        for j in range(n_members):
            a, b = (
                Embedding(atoms, weights[k], kernel, bandwidth, shift[k], 1.0, "smoothed")
                for k in (i, j)
            )
            square += np.square(a.mmd(b)) / (2 * n_members * (n_members - 1))
    top = float(kernel_class(kernel)(bandwidth).value(np.zeros(atoms.shape[1])))
    return np.sqrt(square / top)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
@pytest.mark.parametrize("d", [1, 2])
def test_it_agrees_with_gram_matrices(kernel, d, rng):
    weights = rng.dirichlet(np.ones(12), size=(3, 4))
    atoms = np.sort(rng.normal(size=(12, d)), axis=0)
    shift = 0.5 * rng.normal(size=(3, 4, d))
    ours = disagreement(weights, atoms, shift, kernel, 0.7)
    np.testing.assert_allclose(ours, by_norms(weights, atoms, shift, kernel, 0.7), rtol=0.04)


def test_it_is_zero_for_equal_members_and_one_for_disjoint_ones(rng):
    atoms = np.linspace(-1, 1, 20)[:, None]
    weights = np.broadcast_to(rng.dirichlet(np.ones(20), size=5), (4, 5, 20))
    still = np.zeros((4, 5, 1))
    np.testing.assert_allclose(disagreement(weights, atoms, still, "gaussian", 0.3), 0, atol=1e-3)
    one = np.eye(20)[[10]][None].repeat(4, axis=0)
    apart = 20.0 * np.arange(4.0)[:, None, None]
    far = disagreement(one, atoms, apart, "gaussian", 0.3)
    np.testing.assert_allclose(far, 1.0, atol=0.1)
    np.testing.assert_array_equal(disagreement(one[:1], atoms, still[:1, :1], "gaussian", 0.3), 0)


def test_two_points_a_shift_apart_have_the_distance_of_the_kernel():
    """||k(0, .) - k(t, .)||^2 = 2 k(0) - 2 k(t); half of it is the variance of the pair."""
    shift = np.array([0.0, 0.4])[:, None, None]
    distance = disagreement(np.ones((2, 1, 1)), np.zeros((1, 1)), shift, "gaussian", 0.5)
    expected = np.sqrt(1 - np.exp(-0.5 * (0.4 / 0.5) ** 2))
    np.testing.assert_allclose(distance, expected, rtol=1e-2)
