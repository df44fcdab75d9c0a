"""What every density kernel must satisfy, as checks of a kernel by its name.

`CHECKS` holds them all. They compare the kernel with quadrature, finite differences and symmetries
and need no closed form, so that a new kernel is checked without further input.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import integrate

from nkcme.kernels import KERNELS, kernel_class
from support.quadrature import line, plane, upto

DIMENSIONS = (1, 2, 3)


@partial(jax.jit, static_argnums=(0, 1))
def _call(name: str, method: str, bandwidth: Any, *arguments: Any) -> Any:
    return getattr(kernel_class(name)(bandwidth), method)(*arguments)


class make:
    """A kernel in double precision with compiled methods."""

    def __init__(self, name: str, bandwidth: float):
        self._kernel = name, float(bandwidth)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        name, bandwidth = self._kernel
        return lambda *arguments: _call(name, method, bandwidth, *arguments)


def points(d: int, n: int = 7, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=3.0, size=(n, d))


def value_is_the_symmetric_product_of_one_dimensional_values(name: str) -> None:
    for d in DIMENSIONS:
        for bandwidth in (0.07, 1.0, 30.0):
            kernel, difference = make(name, bandwidth), points(d)
            each = [np.asarray(kernel.value(difference[:, [j]])) for j in range(d)]
            value = np.asarray(kernel.value(difference))
            np.testing.assert_allclose(value, np.prod(each, axis=0), rtol=1e-12)
            np.testing.assert_array_equal(value, kernel.value(-difference))
            assert np.all(value >= 0)


def value_integrates_to_one(name: str) -> None:
    for bandwidth in (0.07, 30.0):
        x, weight = line([0.0], tail=bandwidth)
        total = weight @ np.asarray(make(name, bandwidth).value(x[:, None]))
        assert total == pytest.approx(1.0, abs=1e-10)
    x, weight = plane([0.0])
    assert weight @ np.asarray(make(name, 0.8).value(x)) == pytest.approx(1.0, abs=1e-8)


def gram_is_positive_semidefinite_with_a_constant_diagonal(name: str) -> None:
    for d in DIMENSIONS:
        x = points(d, n=30)
        for bandwidth in (0.05, 1.0, 50.0):
            kernel = make(name, bandwidth)
            gram = np.asarray(kernel.gram(x, x))
            np.testing.assert_allclose(gram, gram.T, rtol=1e-14)
            at_zero = kernel.value(jnp.zeros((1, d)))[0]
            np.testing.assert_allclose(np.diag(gram), at_zero, rtol=1e-14)
            eigenvalues = np.linalg.eigvalsh(gram)
            assert eigenvalues[0] > -1e-13 * eigenvalues[-1]
            np.testing.assert_allclose(gram[2, 5], kernel.value(x[2] - x[5]), rtol=1e-14)


def self_convolution_is_the_integral_of_the_product(name: str) -> None:
    kernel = make(name, 0.6)
    for b in (0.0, 1e-4, 0.1, 0.9, 7.0):
        y, weight = line([0.0, b], n=200, tail=0.6)
        product = kernel.value(y[:, None]) * kernel.value(y[:, None] - b)
        known = weight @ np.asarray(product)
        assert kernel.self_convolution(jnp.array([b])) == pytest.approx(known, rel=1e-8)
    y, weight = plane([0.0, 0.5], n=60)
    product = kernel.value(y) * kernel.value(y - jnp.array([[0.5, 0.5]]))
    known = weight @ np.asarray(product)
    assert kernel.self_convolution(jnp.array([0.5, 0.5])) == pytest.approx(known, rel=1e-8)


def cdf_is_the_integral_of_the_value(name: str) -> None:
    kernel = make(name, 0.6)
    for b in (-8.0, -0.3, 0.0, 0.4, 5.0):
        y, weight = upto(b, [0.0], n=200, tail=0.6)
        known = weight @ np.asarray(kernel.value(y[:, None]))
        assert kernel.cdf(jnp.array([b])) == pytest.approx(known, abs=1e-11)
        if b < 0:  # the tail itself, to many digits
            assert kernel.cdf(jnp.array([b])) == pytest.approx(known, rel=1e-6)
    both = kernel.cdf(jnp.array([0.3, -0.2]))
    each = kernel.cdf(jnp.array([0.3])) * kernel.cdf(jnp.array([-0.2]))
    assert both == pytest.approx(float(each), rel=1e-14)


def cdf_and_ppf_keep_their_digits_in_the_tails(name: str) -> None:
    q = np.concatenate([np.geomspace(1e-13, 0.4, 30), [0.5], 1 - np.geomspace(1e-10, 0.4, 30)])
    kernel = make(name, 0.6)
    np.testing.assert_allclose(kernel.cdf(kernel.ppf(q)[:, None]), q, rtol=1e-11)
    half = np.geomspace(1e-10, 0.5, 20)
    np.testing.assert_allclose(kernel.ppf(1 - half), -np.asarray(kernel.ppf(half)), rtol=1e-5)
    assert np.all(np.diff(np.asarray(kernel.ppf(np.sort(q)))) > 0)
    np.testing.assert_array_equal(kernel.ppf(jnp.array([0.0, 0.5, 1.0])), [-np.inf, 0.0, np.inf])


def unit_variance_is_the_second_moment(name: str) -> None:
    declared, kernel = KERNELS[name].unit_variance, make(name, 1.0)
    if math.isinf(declared):
        u, weight = line(np.concatenate([-np.geomspace(1, 1e8, 30), np.geomspace(1, 1e8, 30)]))
        inner = np.abs(u) < 1e8
        moment = np.asarray(kernel.value(u[:, None])) * u**2 * weight
        assert moment[inner].sum() > 1e6
    else:
        u, weight = line([0.0], n=200)
        moment = weight @ (u**2 * np.asarray(kernel.value(u[:, None])))
        assert moment == pytest.approx(declared, rel=1e-8)


def characteristic_is_the_fourier_transform_and_lies_in_the_unit_interval(name: str) -> None:
    kernel = make(name, 0.6)

    def density(u: float) -> float:
        return float(kernel.value(np.array([u])))

    for omega in (0.3, 1.0, 4.0):
        half, _ = integrate.quad(density, 0, np.inf, weight="cos", wvar=omega, limit=200)
        assert kernel.characteristic(jnp.array([omega])) == pytest.approx(2 * half, abs=1e-8)
    one = kernel.characteristic(jnp.array([0.3]))
    product = kernel.characteristic(jnp.array([0.3, 0.0, 0.3]))
    assert product == pytest.approx(float(one) ** 2, rel=1e-14)
    everywhere = np.asarray(kernel.characteristic(jnp.linspace(-200, 200, 4001)[:, None]))
    assert np.all((everywhere >= 0) & (everywhere <= 1))
    assert kernel.characteristic(jnp.zeros(1)) == 1.0


def gradients_agree_with_finite_differences(name: str) -> None:
    step = 1e-5
    for d in DIMENSIONS:
        difference = points(d, n=5)

        @jax.jit
        def f(bandwidth: Any, shift: Any, difference: np.ndarray = difference) -> Any:
            kernel, moved = kernel_class(name)(bandwidth), difference + shift
            return jnp.stack(
                [kernel.value(moved), kernel.self_convolution(moved), kernel.cdf(moved)]
            )

        slopes = jax.jit(jax.jacfwd(f, argnums=(0, 1)))
        for bandwidth in (0.4, 3.0):
            by_bandwidth, by_shift = slopes(bandwidth, 0.0)
            numeric = (f(bandwidth + step, 0.0) - f(bandwidth - step, 0.0)) / (2 * step)
            np.testing.assert_allclose(by_bandwidth, numeric, rtol=1e-6, atol=1e-10)
            numeric = (f(bandwidth, step) - f(bandwidth, -step)) / (2 * step)
            np.testing.assert_allclose(by_shift, numeric, rtol=1e-6, atol=1e-10)


def gradients_are_finite_where_a_target_is_an_atom(name: str) -> None:
    @jax.jit
    def slopes(difference: Any, bandwidth: Any) -> Any:
        def total(method: str, difference: Any, bandwidth: Any) -> Any:
            return jnp.sum(getattr(kernel_class(name)(bandwidth), method)(difference))

        methods = ("value", "self_convolution")
        return [jax.grad(partial(total, m), argnums=(0, 1))(difference, bandwidth) for m in methods]

    for slope in jax.tree.leaves(slopes(jnp.zeros((1, 2)), 0.5)):
        assert np.all(np.isfinite(slope))


def single_precision_is_finite_far_away_and_stays_single(name: str) -> None:
    kernel = kernel_class(name)(jnp.asarray(0.5, jnp.float32))
    far = jnp.asarray([[0.0], [1e10], [1e30], [3e38]], jnp.float32)
    for method in ("value", "self_convolution", "cdf"):
        values = getattr(kernel, method)(far)
        assert values.dtype == jnp.float32
        assert np.all(np.isfinite(values))
    np.testing.assert_array_equal(kernel.cdf(far)[1:], 1.0)


def theorem_3_1_the_l2_norm_is_at_most_the_norm_of_the_hilbert_space(name: str) -> None:
    """w' C w <= w' K w for signed w."""
    m, number = 6, st.floats(-10, 10)
    for d in (1, 2):

        @given(
            eta=hnp.arrays(float, (m, d), elements=number),
            w=hnp.arrays(float, m, elements=number),
            log_bandwidth=st.floats(-7, 7),
        )
        def holds(eta: np.ndarray, w: np.ndarray, log_bandwidth: float) -> None:
            kernel = make(name, math.exp(log_bandwidth))
            gram = np.asarray(kernel.gram(eta, eta))
            smoothed = np.asarray(kernel.self_convolution(eta[:, None] - eta[None]))
            rounding = 1e-13 * (np.abs(w) @ gram @ np.abs(w))
            assert w @ smoothed @ w <= w @ gram @ w + rounding
            assert w @ smoothed @ w >= -rounding

        holds()


CHECKS: list[Callable[[str], None]] = [
    value_is_the_symmetric_product_of_one_dimensional_values,
    value_integrates_to_one,
    gram_is_positive_semidefinite_with_a_constant_diagonal,
    self_convolution_is_the_integral_of_the_product,
    cdf_is_the_integral_of_the_value,
    cdf_and_ppf_keep_their_digits_in_the_tails,
    unit_variance_is_the_second_moment,
    characteristic_is_the_fourier_transform_and_lies_in_the_unit_interval,
    gradients_agree_with_finite_differences,
    gradients_are_finite_where_a_target_is_an_atom,
    single_precision_is_finite_far_away_and_stays_single,
    theorem_3_1_the_l2_norm_is_at_most_the_norm_of_the_hilbert_space,
]
