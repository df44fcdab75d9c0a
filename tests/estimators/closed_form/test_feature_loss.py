"""The loss of features against its formula, in double and in single precision."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nkcme.estimators.closed_form.feature_loss import feature_loss

TALL_WIDE_SQUARE = [(30, 7), (7, 30), (12, 12)]


def formula(psi, k_y, regularization):
    inverse = jnp.linalg.inv(psi.T @ psi + regularization * jnp.eye(psi.shape[1]))
    return -jnp.trace(k_y @ psi @ inverse @ psi.T) / len(psi)


def gram(y, bandwidth=1.0):
    squares = np.sum(np.square(y[:, None] - y[None]), axis=-1)
    return np.exp(-0.5 * squares / bandwidth**2)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("shape", TALL_WIDE_SQUARE)
def test_value_and_gradient_are_those_of_the_formula(shape, rng):
    psi = np.maximum(rng.normal(size=shape), 0.0)
    k_y = gram(rng.normal(size=(shape[0], 2)))
    with jax.enable_x64(True):
        psi, k_y = jnp.asarray(psi), jnp.asarray(k_y)
        ours = jax.value_and_grad(lambda p: 3.0 * feature_loss(p, k_y, 0.1))(psi)
        expected = jax.value_and_grad(lambda p: 3.0 * formula(p, k_y, 0.1))(psi)
        np.testing.assert_allclose(ours[0], expected[0], rtol=1e-10)
        np.testing.assert_allclose(ours[1], expected[1], atol=1e-10)


@pytest.mark.parametrize("shape", [(64, 20), (20, 64), (32, 32)])
def test_single_precision_is_accurate_for_large_features(shape, rng):
    """Training makes features large: Gram matrices of norm 1e4 to 1e5 with a lambda of 0.1. If the
    inverse were multiplied last, the first digit of the gradient would be wrong."""
    x = rng.normal(size=(shape[0], 1))
    psi = np.maximum(x * rng.normal(size=shape[1]) + rng.normal(size=shape[1]), 0.0)
    k_y = gram(x + 0.3 * rng.normal(size=x.shape), 0.1)
    loss = jax.value_and_grad(lambda p: feature_loss(p, jnp.asarray(k_y, p.dtype), 0.1))
    for norm, tolerance in ((1e4, 0.01), (1e5, 0.1)):
        large = (psi * np.sqrt(norm) / np.linalg.norm(psi, 2)).astype(np.float32)
        single = loss(jnp.asarray(large))
        with jax.enable_x64(True):
            double = loss(jnp.asarray(large, jnp.float64))
        np.testing.assert_allclose(single[0], double[0], rtol=tolerance / 10)
        error = np.asarray(single[1]) - np.asarray(double[1])
        assert np.linalg.norm(error) < tolerance * np.linalg.norm(double[1])


@pytest.mark.parametrize("shape", [(64, 20), (20, 64)])
def test_features_too_large_for_single_precision_give_a_finite_loss(shape, rng):
    psi = jnp.asarray(np.maximum(rng.normal(size=shape), 0.0) * 1e5, jnp.float32)
    value, gradient = jax.value_and_grad(
        lambda p: feature_loss(p, jnp.ones((shape[0], shape[0])), 0.1)
    )(psi)
    assert -1.001 * shape[0] <= value <= 0.0
    assert np.isfinite(gradient).all()
