"""What every density kernel must be. A new kernel is an entry in KERNELS, and is held to this."""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import integrate, stats

from nkcme.errors import NkcmeError
from nkcme.kernels import KERNELS, kernel_class
from support.quadrature import line, plane, upto

every_kernel = pytest.mark.parametrize("name", KERNELS)
every_dimension = pytest.mark.parametrize("d", [1, 2, 3])
every_bandwidth = pytest.mark.parametrize("bandwidth", [0.07, 1.0, 30.0])

SCIPY = {"gaussian": stats.norm, "laplace": stats.laplace, "cauchy": stats.cauchy}


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


@partial(jax.jit, static_argnums=(0, 1))
def _ask(name, method, bandwidth, *arguments):
    return getattr(kernel_class(name)(bandwidth), method)(*arguments)


class make:
    """A kernel whose methods are compiled whole, which is faster than piece by piece."""

    def __init__(self, name, bandwidth):
        self._kernel = name, float(bandwidth)

    def __getattr__(self, method):
        name, bandwidth = self._kernel
        return lambda *arguments: _ask(name, method, bandwidth, *arguments)


def points(d, n=7, seed=0):
    return np.random.default_rng(seed).normal(scale=3.0, size=(n, d))


@every_kernel
@every_dimension
@every_bandwidth
def test_value_is_the_product_of_one_dimensional_densities(name, d, bandwidth):
    difference = points(d)
    known = np.prod(SCIPY[name].pdf(difference, scale=bandwidth), axis=-1)
    kernel = make(name, bandwidth)
    np.testing.assert_allclose(kernel.value(difference), known, rtol=1e-12)
    np.testing.assert_array_equal(kernel.value(-difference), kernel.value(difference))
    assert np.all(np.asarray(kernel.value(difference)) >= 0)


@every_kernel
def test_value_integrates_to_one(name):
    for bandwidth in (0.07, 30.0):
        x, weight = line([0.0], tail=bandwidth)
        total = weight @ np.asarray(make(name, bandwidth).value(x[:, None]))
        assert total == pytest.approx(1.0, abs=1e-10)
    x, weight = plane([0.0])
    assert weight @ np.asarray(make(name, 0.8).value(x)) == pytest.approx(1.0, abs=1e-8)


@every_kernel
@every_dimension
def test_gram_is_positive_semidefinite_and_has_a_constant_diagonal(name, d):
    x = points(d, n=30)
    for bandwidth in (0.05, 1.0, 50.0):
        kernel = make(name, bandwidth)
        gram = np.asarray(kernel.gram(x, x))
        np.testing.assert_allclose(gram, gram.T, rtol=1e-14)
        np.testing.assert_allclose(np.diag(gram), kernel.value(jnp.zeros((1, d)))[0], rtol=1e-14)
        eigenvalues = np.linalg.eigvalsh(gram)
        assert eigenvalues[0] > -1e-13 * eigenvalues[-1]
        np.testing.assert_allclose(gram[2, 5], kernel.value(x[2] - x[5]), rtol=1e-14)


@every_kernel
def test_self_convolution_is_the_integral_of_the_product(name):
    kernel = make(name, 0.6)
    for b in (0.0, 0.1, 0.9, 7.0):
        y, weight = line([0.0, b], n=200, tail=0.6)
        product = kernel.value(y[:, None]) * kernel.value(y[:, None] - b)
        known = weight @ np.asarray(product)
        assert kernel.self_convolution(jnp.array([b])) == pytest.approx(known, rel=1e-8)
    y, weight = plane([0.0, 0.5], n=60)
    product = kernel.value(y) * kernel.value(y - jnp.array([[0.5, 0.5]]))
    known = weight @ np.asarray(product)
    assert kernel.self_convolution(jnp.array([0.5, 0.5])) == pytest.approx(known, rel=1e-8)


@pytest.mark.parametrize(("name", "factor"), [("gaussian", math.sqrt(2.0)), ("cauchy", 2.0)])
@every_dimension
def test_stable_kernels_convolve_to_themselves_at_a_wider_bandwidth(name, factor, d):
    difference = points(d)
    np.testing.assert_allclose(
        make(name, 0.7).self_convolution(difference),
        make(name, factor * 0.7).value(difference),
        rtol=1e-12,
    )


@every_kernel
def test_cdf_is_the_integral_of_the_value(name):
    kernel = make(name, 0.6)
    for b in (-8.0, -0.3, 0.0, 0.4, 5.0):
        y, weight = upto(b, [0.0], n=200, tail=0.6)
        known = weight @ np.asarray(kernel.value(y[:, None]))
        assert kernel.cdf(jnp.array([b])) == pytest.approx(known, abs=1e-11)
    both = kernel.cdf(jnp.array([0.3, -0.2]))
    assert both == pytest.approx(
        float(kernel.cdf(jnp.array([0.3])) * kernel.cdf(jnp.array([-0.2]))), rel=1e-14
    )


@every_kernel
def test_cdf_and_ppf_keep_their_digits_in_the_tails(name):
    q = np.concatenate([np.geomspace(1e-13, 0.4, 30), [0.5], 1 - np.geomspace(1e-10, 0.4, 30)])
    z = SCIPY[name].ppf(q, scale=0.6)
    kernel = make(name, 0.6)
    np.testing.assert_allclose(kernel.ppf(q), z, rtol=1e-6, atol=1e-15)
    np.testing.assert_allclose(kernel.cdf(z[:, None]), q, rtol=1e-11)
    np.testing.assert_allclose(kernel.cdf(kernel.ppf(q)[:, None]), q, rtol=1e-11)
    np.testing.assert_array_equal(kernel.ppf(jnp.array([0.0, 0.5, 1.0])), [-np.inf, 0.0, np.inf])


@every_kernel
def test_unit_variance(name):
    declared = KERNELS[name].unit_variance
    assert declared == SCIPY[name].var() or (math.isinf(declared) and name == "cauchy")


@every_kernel
def test_characteristic_is_the_fourier_transform_and_lies_in_the_unit_interval(name):
    kernel = make(name, 0.6)
    for omega in (0.3, 1.0, 4.0):
        half, _ = integrate.quad(
            SCIPY[name](scale=0.6).pdf, 0, np.inf, weight="cos", wvar=omega, limit=200
        )
        assert kernel.characteristic(jnp.array([omega])) == pytest.approx(2 * half, abs=1e-8)
    one = kernel.characteristic(jnp.array([0.3]))
    product = kernel.characteristic(jnp.array([0.3, 0.0, 0.3]))
    assert product == pytest.approx(float(one) ** 2, rel=1e-14)
    everywhere = kernel.characteristic(jnp.linspace(-200, 200, 4001)[:, None])
    assert np.all((np.asarray(everywhere) >= 0) & (np.asarray(everywhere) <= 1))
    assert kernel.characteristic(jnp.zeros(1)) == 1.0


@every_kernel
@every_dimension
def test_gradients_by_bandwidth_and_difference_agree_with_finite_differences(name, d):
    difference, step = points(d, n=5), 1e-5

    @jax.jit
    def f(bandwidth, shift):
        kernel, moved = kernel_class(name)(bandwidth), difference + shift
        return jnp.stack([kernel.value(moved), kernel.self_convolution(moved), kernel.cdf(moved)])

    slopes = jax.jit(jax.jacfwd(f, argnums=(0, 1)))
    for bandwidth in (0.4, 3.0):
        by_bandwidth, by_shift = slopes(bandwidth, 0.0)
        numeric = (f(bandwidth + step, 0.0) - f(bandwidth - step, 0.0)) / (2 * step)
        np.testing.assert_allclose(by_bandwidth, numeric, rtol=1e-6, atol=1e-10)
        numeric = (f(bandwidth, step) - f(bandwidth, -step)) / (2 * step)
        np.testing.assert_allclose(by_shift, numeric, rtol=1e-6, atol=1e-10)


@every_kernel
def test_single_precision_survives_far_points_and_stays_single(name):
    kernel = kernel_class(name)(jnp.asarray(0.5, jnp.float32))
    far = jnp.asarray([[0.0], [1e10], [1e30], [3e38]], jnp.float32)
    for what in ("value", "self_convolution", "cdf"):
        values = getattr(kernel, what)(far)
        assert values.dtype == jnp.float32
        assert np.all(np.isfinite(values))
    np.testing.assert_array_equal(kernel.cdf(far)[1:], 1.0)


@every_kernel
@pytest.mark.parametrize("d", [1, 2])
def test_theorem_3_1_the_self_convolution_norm_is_the_smaller(name, d):
    """w' C w <= w' K w for signed w: the L2 norm of mu is at most its norm in the Hilbert space."""
    m = 6
    number = st.floats(-10, 10)

    @given(
        eta=hnp.arrays(float, (m, d), elements=number),
        w=hnp.arrays(float, m, elements=number),
        log_bandwidth=st.floats(-7, 7),
    )
    def holds(eta, w, log_bandwidth):
        kernel = make(name, math.exp(log_bandwidth))
        gram = np.asarray(kernel.gram(eta, eta))
        smoothed = np.asarray(kernel.self_convolution(eta[:, None] - eta[None]))
        rounding = 1e-13 * (np.abs(w) @ gram @ np.abs(w))
        assert w @ smoothed @ w <= w @ gram @ w + rounding
        assert w @ smoothed @ w >= -rounding

    with jax.enable_x64(True):
        holds()


def test_an_unknown_kernel_is_refused_with_the_known_names():
    with pytest.raises(NkcmeError, match=r"one of cauchy, gaussian, laplace; got 'sinc'"):
        kernel_class("sinc")
