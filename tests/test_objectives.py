"""The losses against the sums of the paper, and their gradients against autodiff."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from nkcme.atoms import Atoms
from nkcme.kernels import KERNELS, kernel_class
from nkcme.objectives import mixture_log_likelihood, rkhs_loss, sq_loss
from support.quadrature import line

every_kernel = pytest.mark.parametrize("name", KERNELS)
LOSSES = {"rkhs": (rkhs_loss, "value"), "sq": (sq_loss, "self_convolution")}
every_loss = pytest.mark.parametrize("loss", LOSSES)

N, M = 3, 4


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def example(d, seed=0):
    """Signed weights, targets and atoms."""
    rng = np.random.default_rng(seed)
    return (jnp.asarray(rng.normal(size=s)) for s in ((N, M), (N, d), (M, d)))


def slow(loss, name):
    """(1/n) sum_i [ -2 sum_a k(y_i, eta_a) w_ia + sum_ab G(eta_a, eta_b) w_ia w_ib ], term by
    term, with the derivatives of JAX."""
    quadratic = LOSSES[loss][1]

    def f(w, y, eta, bandwidth):
        kernel = kernel_class(name)(bandwidth)
        linear = kernel.value(y[:, None] - eta[None]) * w
        gram = getattr(kernel, quadratic)(eta[:, None] - eta[None])
        squares = gram[None] * w[:, :, None] * w[:, None, :]
        return jnp.mean(-2 * jnp.sum(linear, axis=1) + jnp.sum(squares, axis=(1, 2)))

    return f


def fast(loss, name):
    def f(w, y, eta, bandwidth):
        return LOSSES[loss][0](w, y, Atoms.points(eta), kernel_class(name)(bandwidth))

    return f


@pytest.mark.parametrize(("loss", "factor"), [("rkhs", 1.0), ("sq", math.sqrt(2.0))])
@pytest.mark.parametrize("d", [1, 2])
def test_losses_are_the_formulas_of_the_paper(loss, factor, d):
    w, y, eta = (np.asarray(v) for v in example(d))
    sigma = 0.7

    def k(s, a, b):
        return (2 * np.pi * s**2) ** (-d / 2) * np.exp(-np.sum((a - b) ** 2) / (2 * s**2))

    total = 0.0
    for i in range(N):
        total -= 2 * sum(k(sigma, y[i], eta[a]) * w[i, a] for a in range(M))
        for a in range(M):
            for b in range(M):
                total += k(factor * sigma, eta[a], eta[b]) * w[i, a] * w[i, b]
    value = fast(loss, "gaussian")(w, y, eta, jnp.asarray(sigma))
    assert value == pytest.approx(total / N, rel=1e-12)


@every_kernel
@pytest.mark.parametrize("d", [1, 2])
def test_values_and_gradients_are_those_of_the_sums(name, d):
    arguments = (*example(d), jnp.asarray(0.8))

    @jax.jit
    def values_and_gradients(*arguments):
        return {
            (loss, way.__name__): jax.value_and_grad(way(loss, name), (0, 1, 2, 3))(*arguments)
            for loss in LOSSES
            for way in (fast, slow)
        }

    found = values_and_gradients(*arguments)
    for loss in LOSSES:
        ours, theirs = (jax.tree.leaves(found[loss, way]) for way in ("fast", "slow"))
        assert len(ours) == len(theirs) == 5
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-13)


@every_loss
def test_gradients_are_right_under_vmap_and_through_vmap(loss):
    """As in training: replicas under vmap, the bandwidth a softplus of a parameter."""
    w, y, eta = (jnp.stack([a, 2.0 * a, -a]) for a in example(1))
    rho = jnp.array([-1.0, 0.3, 2.0])

    def of(f):
        def one(w, y, eta, rho):
            return f(w, y, eta, jax.nn.softplus(rho))

        return one

    everything = (0, 1, 2, 3)
    ours = jax.jit(jax.vmap(jax.grad(of(fast(loss, "laplace")), everything)))(w, y, eta, rho)
    inside = jax.jit(
        jax.grad(
            lambda *a: jax.vmap(of(fast(loss, "laplace")))(*a) @ jnp.array([1.0, 2.0, 3.0]),
            everything,
        )
    )(w, y, eta, rho)
    theirs = jax.jit(jax.vmap(jax.grad(of(slow(loss, "laplace")), everything)))(w, y, eta, rho)
    for a, b, c in zip(ours, theirs, inside, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-13)
        lift = jnp.array([1.0, 2.0, 3.0]).reshape((3,) + (1,) * (b.ndim - 1))
        np.testing.assert_allclose(c, lift * b, rtol=1e-9, atol=1e-13)


@every_kernel
def test_a_grid_of_atoms_gives_the_same_losses_and_gradients(name):
    w, y, _ = example(1)
    grid = Atoms.grid(jnp.asarray(-1.0), jnp.asarray(2.0), M)

    def on_grid(loss):
        return lambda w, y, eta, bandwidth: LOSSES[loss][0](
            w, y, grid, kernel_class(name)(bandwidth)
        )

    @jax.jit
    def both(*arguments):
        return [
            [
                jax.value_and_grad(f, (0, 1, 3))(*arguments)
                for f in (on_grid(loss), slow(loss, name))
            ]
            for loss in LOSSES
        ]

    for ours, theirs in both(w, y, grid.locations, jnp.asarray(0.8)):
        for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-13)


@every_kernel
def test_sq_loss_is_the_integrated_square_less_twice_the_density(name):
    w, y, eta = example(1)
    kernel = kernel_class(name)(jnp.asarray(0.8))
    t, weight = line(np.asarray(eta)[:, 0], n=60, tail=2.0)
    density = np.asarray(w @ kernel.gram(eta, t[:, None]))
    at_y = np.sum(np.asarray(w * kernel.gram(y, eta)), axis=1)
    known = np.mean(np.square(density) @ weight - 2 * at_y)
    assert sq_loss(w, y, Atoms.points(eta), kernel) == pytest.approx(known, rel=1e-8)


@every_kernel
def test_joint_optimisation_bounds_the_sq_loss_from_above(name):
    for seed in range(20):
        w, y, eta = example(1, seed)
        kernel, atoms = kernel_class(name)(jnp.asarray(0.8)), Atoms.points(eta)
        assert sq_loss(w, y, atoms, kernel) <= rkhs_loss(w, y, atoms, kernel) + 1e-12


def test_rkhs_loss_is_least_at_the_solution_of_the_normal_equations():
    """For one x the best weights solve G w = mean_i k(eta, y_i): there the gradient is zero."""
    _, y, eta = example(1)
    kernel, atoms = kernel_class("gaussian")(jnp.asarray(0.5)), Atoms.points(eta)
    best = jnp.linalg.solve(atoms.gram(kernel), jnp.mean(kernel.gram(eta, y), axis=1))

    def loss(w):
        return rkhs_loss(jnp.broadcast_to(w, (N, M)), y, atoms, kernel)

    np.testing.assert_allclose(jax.grad(loss)(best), 0.0, atol=1e-12)
    assert loss(best) < loss(best + 0.01)


def test_forward_mode_is_refused():
    """A limit: the hand-written rules are for reverse mode, which training uses."""
    arguments = (*example(1), jnp.asarray(0.8))
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(fast("rkhs", "gaussian"), arguments, arguments)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_the_likelihood_is_that_of_the_mixture(n_outputs):
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(4))
    means, stds = rng.normal(size=(2, 4, n_outputs))
    stds = np.exp(stds)
    for y in rng.normal(size=(5, n_outputs)):
        components = [
            stats.multivariate_normal(m, np.diag(s**2)).logpdf(y)
            for m, s in zip(means, stds, strict=True)
        ]
        ours = mixture_log_likelihood(*map(jnp.asarray, (np.log(weights), means, np.log(stds), y)))
        np.testing.assert_allclose(ours, logsumexp(components, b=weights), rtol=1e-12)


def test_the_log_likelihood_is_finite_far_from_every_component():
    log_weights, means, log_stds = jnp.log(jnp.ones(2) / 2), jnp.zeros((2, 1)), jnp.zeros((2, 1))
    value = mixture_log_likelihood(log_weights, means, log_stds, jnp.asarray([1e4]))
    np.testing.assert_allclose(value, -0.5e8 - 0.5 * np.log(2 * np.pi), rtol=1e-12)
