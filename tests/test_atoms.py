"""Grids of atoms and their Gram matrices against generic computations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from nkcme.atoms import Atoms, even_and_odd, from_even_and_odd, toeplitz
from nkcme.kernels import KERNELS, Gaussian, kernel_class

every_kernel = pytest.mark.parametrize("name", KERNELS)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 50])
def test_toeplitz_agrees_with_scipy(m):
    lags = np.random.default_rng(m).normal(size=m).astype(np.float32)
    np.testing.assert_array_equal(toeplitz(jnp.asarray(lags)), scipy.linalg.toeplitz(lags))


def test_a_grid_is_even_and_closed():
    atoms = Atoms.grid(jnp.float32(-1.5), jnp.float32(2.5), 9)
    np.testing.assert_allclose(atoms.locations[:, 0], np.arange(-1.5, 2.51, 0.5))
    assert float(atoms.spacing) == 0.5
    assert float(atoms.neighbour_distance()) == 0.5


def test_a_grid_of_one_atom_is_the_middle():
    atoms = Atoms.grid(jnp.float32(-1.0), jnp.float32(4.0), 1)
    np.testing.assert_array_equal(atoms.locations, [[1.5]])
    kernel = kernel_class("gaussian")(jnp.float32(2.0))
    np.testing.assert_allclose(atoms.gram(kernel), [[1 / np.sqrt(8 * np.pi)]], rtol=1e-6)
    assert float(atoms.neighbour_distance()) == 0.0


@pytest.mark.parametrize("n", [2, 3, 100])
@pytest.mark.parametrize(("low", "high"), [(-1e30, 1e30), (1e-30, 2e-30)])
def test_grids_of_any_magnitude_are_finite(n, low, high):
    atoms = Atoms.grid(jnp.float32(low), jnp.float32(high), n)
    assert np.all(np.isfinite(atoms.locations))
    assert np.isfinite(atoms.spacing)
    np.testing.assert_allclose(atoms.spacing, (high - low) / (n - 1), rtol=1e-5)


@every_kernel
def test_the_gram_matrix_of_a_grid_and_its_gradients_are_the_generic_ones(name):
    with jax.enable_x64(True):
        grid = Atoms.grid(jnp.asarray(-2.0), jnp.asarray(3.0), 12)
        points = Atoms.points(grid.locations)
        mixing = jnp.asarray(np.random.default_rng(0).normal(size=(12, 12)))

        def both(atoms, bandwidth):
            kernel = kernel_class(name)(bandwidth)
            return jnp.stack([atoms.gram(kernel), atoms.self_convolution_gram(kernel)])

        def mixed(atoms, bandwidth):
            return jnp.sum(both(atoms, bandwidth) * mixing[None])

        for bandwidth in (0.2, 4.0):
            fast, slow = both(grid, bandwidth), both(points, bandwidth)
            np.testing.assert_allclose(fast, slow, rtol=1e-12, atol=1e-300)
            np.testing.assert_allclose(
                jax.jit(jax.grad(mixed, argnums=1))(grid, bandwidth),
                jax.jit(jax.grad(mixed, argnums=1))(points, bandwidth),
                rtol=1e-10,
            )


def test_grids_stack_under_vmap():
    low, high = jnp.array([0.0, -1.0]), jnp.array([1.0, 3.0])
    atoms = jax.vmap(lambda a, b: Atoms.grid(a, b, 5))(low, high)
    kernel = kernel_class("laplace")(jnp.float32(0.7))
    grams = jax.vmap(lambda a: a.gram(kernel))(atoms)
    for i in range(2):
        alone = Atoms.points(atoms.locations[i]).gram(kernel)
        np.testing.assert_allclose(grams[i], alone, rtol=1e-5)


def test_the_neighbour_distance_of_scattered_atoms_is_the_median():
    locations = jnp.array([[0.0, 0.0], [0.0, 1.0], [5.0, 0.0], [5.0, 3.0], [50.0, 0.0]])
    # Nearest neighbours are at 1, 1, 3, 3 and 45.
    assert float(Atoms.points(locations).neighbour_distance()) == 3.0
    assert float(Atoms.points(locations[:1]).neighbour_distance()) == 0.0
    assert float(Atoms.points(jnp.zeros((3, 2))).neighbour_distance()) == 0.0


@pytest.mark.parametrize("m", [2, 4, 10, 100])
def test_the_gram_matrix_of_a_grid_has_an_even_and_an_odd_block(m: int) -> None:
    rng = np.random.default_rng(m)
    atoms = Atoms.grid(jnp.asarray(-1.0), jnp.asarray(2.0), m)
    kernel = Gaussian(jnp.asarray(0.4))
    w = jnp.asarray(rng.normal(size=(3, m)), jnp.float32)
    np.testing.assert_allclose(from_even_and_odd(even_and_odd(w)), w, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        jnp.sum(even_and_odd(w) ** 2), jnp.sum(w**2), rtol=1e-5
    )  # orthonormal
    product = from_even_and_odd(even_and_odd(w) @ atoms.blocks(kernel.value))
    np.testing.assert_allclose(product, w @ atoms.gram(kernel), rtol=1e-4, atol=1e-4)


def test_odd_grids_and_scattered_atoms_have_one_block() -> None:
    kernel = Gaussian(jnp.asarray(0.4))
    odd = Atoms.grid(jnp.asarray(-1.0), jnp.asarray(2.0), 5)
    for atoms in (odd, Atoms.points(jnp.ones((4, 2)) * jnp.arange(4.0)[:, None])):
        np.testing.assert_array_equal(atoms.blocks(kernel.value)[0], atoms.gram(kernel))
