"""Sums of tails over evenly spaced points, against Hurwitz' zeta function and added one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import zeta

from nkcme.distributions.tail_sums import tail_sums
from nkcme.distributions.tails import Tail

SCALES = np.array([1e-9, 0.01, 0.3, 1.0, 2.7, 10.0, 4e3, 1e9])
MASS = np.linspace(0.01, 0.9, len(SCALES))
FIRST = np.linspace(0.0, 1.0, len(SCALES))


@pytest.mark.parametrize("shape", [0.1, 0.25, 0.4, 0.45])
def test_endless_sums_of_heavy_tails(shape):
    # P(t + i) = mass (shape / scale)^-p (q + i)^-p.
    p, q = 1.0 / shape, SCALES / shape + FIRST
    unit = MASS * (shape / SCALES) ** -p
    total, by_number = tail_sums(Tail(MASS, SCALES, shape), FIRST)
    np.testing.assert_allclose(total, unit * zeta(p, q), rtol=1e-8)
    # Zeta's two terms cancel where the scale is very small or large.
    expected = unit * (zeta(p - 1.0, q) - q * zeta(p, q))
    trusted = (SCALES > 1e-3) & (SCALES < 1e6)
    np.testing.assert_allclose(by_number[trusted], expected[trusted], rtol=1e-7)


def test_endless_sums_of_exponential_tails():
    ratio = np.exp(-1.0 / SCALES)
    first = MASS * np.exp(-FIRST / SCALES)
    total, by_number = tail_sums(Tail(MASS, SCALES), FIRST)
    missing = -np.expm1(-1.0 / SCALES)
    np.testing.assert_allclose(total, first / missing, rtol=1e-8)
    np.testing.assert_allclose(by_number, first * ratio / missing**2, rtol=1e-8)


@given(
    shape=st.just(0.0) | st.floats(1e-6, 0.45),
    scale=st.floats(1e-3, 1e3),
    t=st.floats(0.0, 2.0),
    count=st.integers(0, 300),
)
def test_sums_of_some_terms(shape, scale, t, count):
    tail = Tail(np.array([0.3]), np.array([scale]), shape)
    number = np.arange(count)
    terms = 0.3 * tail.survival(t + number[None])
    total, by_number = tail_sums(tail, np.array([t]), np.array([float(count)]))
    endless, endless_by_number = tail_sums(tail, np.array([t]))
    assert total[0] == pytest.approx(terms.sum(), abs=1e-8 * endless[0])
    # The rest cancels, and with it as many digits.
    assert by_number[0] == pytest.approx(
        np.sum(number * terms), rel=1e-7, abs=1e-7 * endless_by_number[0]
    )


def test_the_square_of_a_tail_is_a_tail():
    tail, t = Tail(MASS, SCALES, 0.4), np.linspace(0.0, 9.0, 4) * SCALES[:, None]
    square = tail.squared()
    expected = (MASS[:, None] * tail.survival(t)) ** 2
    np.testing.assert_allclose(square.mass[:, None] * square.survival(t), expected, rtol=1e-12)
