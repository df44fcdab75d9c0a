"""NumPy's normal distribution agrees with SciPy's, and kernels in NumPy with those in JAX."""

import sys

import numpy as np
import pytest
import scipy.special

from nkcme.distributions import kernel_values, special_functions
from nkcme.kernels import evaluate


@pytest.fixture
def without_scipy(monkeypatch):
    monkeypatch.delitem(sys.modules, "scipy.special")


X = np.concatenate([np.linspace(-37.0, 37.0, 20_001), [0.0, -0.0, np.inf, -np.inf, 1e300]])
Q = np.concatenate([np.geomspace(1e-300, 0.5, 500), 1.0 - np.geomspace(1e-15, 0.5, 500), [0, 1]])


def test_the_normal_cdf_and_the_error_function(without_scipy):
    np.testing.assert_allclose(special_functions.ndtr(X), scipy.special.ndtr(X), 2e-13, 1e-300)
    np.testing.assert_allclose(special_functions.erf(X), scipy.special.erf(X), 1e-13, 1e-14)
    assert np.isnan(special_functions.ndtr(np.nan))


def test_normal_quantiles(without_scipy):
    np.testing.assert_allclose(special_functions.ndtri(Q), scipy.special.ndtri(Q), 1e-13, 1e-14)
    assert np.isnan(special_functions.ndtri(np.array([-0.1, 1.1, np.nan]))).all()


def test_sums_of_exponentials():
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=(3, 5)) * 1000.0, rng.uniform(size=(3, 5))
    expected = scipy.special.logsumexp(values, axis=-1, b=weights)
    np.testing.assert_allclose(special_functions.logsumexp(values, weights), expected)
    assert special_functions.logsumexp(np.full((1, 2), -np.inf))[0] == -np.inf


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "cauchy"])
@pytest.mark.parametrize("method", ["value", "cdf", "ppf"])
def test_kernels(kernel, method, without_scipy):
    argument = np.linspace(-9.0, 9.0, 40).reshape(5, 4, 2)
    if method == "ppf":
        argument = np.linspace(0.001, 0.999, 30)
    found = kernel_values.evaluate(kernel, method, 0.7, argument)
    np.testing.assert_allclose(found, evaluate(kernel, method, 0.7, argument), 1e-11, 1e-14)
    assert kernel_values.unit_variance(kernel) == {"gaussian": 1, "laplace": 2}.get(kernel, np.inf)
