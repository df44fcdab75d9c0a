"""Every kernel passes every check of the contract, and those of the library are scipy's."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest
from scipy import stats

from nkcme.errors import NkcmeError
from nkcme.kernels import KERNELS, Gaussian, kernel_class, register_kernel
from support.kernel_contract import CHECKS, DIMENSIONS, make, points

every_kernel = pytest.mark.parametrize("name", KERNELS)

SCIPY = {"gaussian": stats.norm, "laplace": stats.laplace, "cauchy": stats.cauchy}


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


@every_kernel
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(name, check):
    check(name)


@pytest.mark.parametrize("name", SCIPY)
def test_values_cdf_and_quantiles_are_those_of_scipy(name):
    known = SCIPY[name](scale=0.6)
    kernel, u = make(name, 0.6), points(1)
    np.testing.assert_allclose(kernel.value(u), known.pdf(u[:, 0]), rtol=1e-12)
    q = np.concatenate([np.geomspace(1e-13, 0.4, 30), [0.5], 1 - np.geomspace(1e-10, 0.4, 30)])
    z = known.ppf(q)
    np.testing.assert_allclose(kernel.ppf(q), z, rtol=1e-6, atol=1e-15)
    np.testing.assert_allclose(kernel.cdf(z[:, None]), q, rtol=1e-11)


@pytest.mark.parametrize(("name", "factor"), [("gaussian", math.sqrt(2.0)), ("cauchy", 2.0)])
def test_stable_kernels_convolve_to_themselves_at_a_wider_bandwidth(name, factor):
    for d in DIMENSIONS:
        np.testing.assert_allclose(
            make(name, 0.7).self_convolution(points(d)),
            make(name, factor * 0.7).value(points(d)),
            rtol=1e-12,
        )


def test_an_unknown_kernel_is_refused_with_the_known_names():
    with pytest.raises(NkcmeError, match=r"one of cauchy, gaussian, laplace; got 'sinc'"):
        kernel_class("sinc")


def test_a_name_belongs_to_one_kernel():
    class Other(Gaussian):
        pass

    with pytest.raises(NkcmeError, match="a kernel named 'gaussian' exists already"):
        register_kernel(Other)
    assert register_kernel(Gaussian) is KERNELS["gaussian"] is Gaussian
