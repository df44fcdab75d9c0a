"""Generalised Pareto tails, against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import genpareto

from nkcme.distributions.piecewise_uniform import PiecewiseUniform
from nkcme.distributions.tails import Tail, TailParameters

MASS, SCALE = np.array([0.1, 0.02]), np.array([0.5, 30.0])
DISTANCES = np.array([[0.0, 0.1, 2.0, 50.0], [0.0, 3.0, 100.0, 1e5]])


@pytest.fixture(params=[0.0, 0.2, 0.45, (0.0, 0.3), (0.45, 0.1)])
def tail(request):
    return Tail(MASS, SCALE, request.param)


def truth(tail):
    return genpareto(tail.shape[:, None], scale=tail.scale[:, None])


def test_survival_density_and_distance(tail):
    np.testing.assert_allclose(tail.survival(DISTANCES), truth(tail).sf(DISTANCES), rtol=1e-10)
    density = np.log(MASS)[:, None] + truth(tail).logpdf(DISTANCES)
    np.testing.assert_allclose(tail.log_density(DISTANCES), density, rtol=1e-10)
    survival = tail.survival(DISTANCES[:, :3])
    np.testing.assert_allclose(tail.distance(survival), DISTANCES[:, :3], rtol=1e-8, atol=1e-12)


def test_moments(tail):
    mean, square = tail.moments()
    expected = genpareto(tail.shape, scale=tail.scale)
    np.testing.assert_allclose(mean, expected.mean(), rtol=1e-10)
    np.testing.assert_allclose(square, expected.var() + expected.mean() ** 2, rtol=1e-8)


@pytest.mark.parametrize("power", [1, 2])
def test_integrals_of_the_survival_function(power, tail):
    t = np.array([[1.5], [40.0]])
    found = tail.integral(t, power)
    for row in range(2):
        survival = genpareto(tail.shape[row], scale=SCALE[row]).sf
        expected, _ = quad(lambda u, survival=survival: survival(u) ** power, 0, t[row, 0])
        assert found[row, 0] == pytest.approx(expected, rel=1e-7)


def test_what_lies_further_out_is_a_tail_again(tail):
    start = np.array([0.7, 20.0])
    beyond = tail.beyond(start)
    shifted = DISTANCES + start[:, None]
    expected = MASS[:, None] * tail.survival(shifted)
    np.testing.assert_allclose(beyond.mass[:, None] * beyond.survival(DISTANCES), expected)


def test_parameters_are_scaled_to_the_units_of_rows():
    tail = TailParameters(0.1, 2.0, 0.3).in_units(np.array([1.0, 10.0]))
    np.testing.assert_array_equal(tail.scale, [2.0, 20.0])
    np.testing.assert_array_equal(tail.mass, 0.1)


def test_a_row_with_next_to_no_tail_does_not_disturb_the_others():
    """1 / 1e-310 is beyond the range of a float; no quantile depends on it."""
    tail = Tail(np.array([0.1, 1e-310]), np.ones(2), 0.0)
    below = np.array([[0.1, 0.9], [1e-310, 1.0]])
    law = PiecewiseUniform(np.array([[0.0, 1.0], [0.0, 1.0]]), below, tail, tail)
    found = law.quantiles(np.array([[0.05, 0.5, 0.95]] * 2))
    expected = [[-np.log(2), 0.5, 1 + np.log(2)], [0.05, 0.5, 0.95]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
