"""Sums of arithmetic progressions, against their terms."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nkcme.distributions.progressions import Progressions

SHAPE = (2, 3)
ends = hnp.arrays(float, SHAPE, elements=st.floats(-10.0, 10.0))


@given(hnp.arrays(int, SHAPE, elements=st.integers(0, 20)), ends, ends, ends, ends)
def test_sums_are_those_of_the_terms(count, a, b, c, d):
    # One term is both the first and the last.
    b, d = np.where(count == 1, a, b), np.where(count == 1, c, d)
    sums, products = np.zeros(2), np.zeros(2)
    for row, column in np.ndindex(SHAPE):
        at = row, column
        x, y = (np.linspace(u[at], v[at], count[at]) for u, v in ((a, b), (c, d)))
        sums[row] += x.sum()
        products[row] += x @ y
    one, other = Progressions(count, a, b), Progressions(count, c, d)
    np.testing.assert_allclose(one.sum(), sums, atol=1e-9)
    np.testing.assert_allclose(one.dot(other), products, atol=1e-9)
