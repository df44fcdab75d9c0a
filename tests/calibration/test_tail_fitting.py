"""Tails that are fitted to samples have the probabilities and the quantiles of the truth."""

import numpy as np
import pytest
from scipy import stats

from nkcme.calibration.tail_fitting import fit_tails


def fit(z, first, last):
    return fit_tails(z, np.ones(len(z)), first, last, share=0.02, least_rows=20)


@pytest.mark.parametrize(
    "law", [stats.norm(), stats.t(4), stats.expon()], ids=lambda d: d.dist.name
)
def test_quantiles_beyond_most_rows(law):
    """The edge at the 99.9 % quantile of 100,000 rows; the 99.99 % quantile lies in the tail."""
    z = law.ppf(np.random.default_rng(0).uniform(size=100_000))
    edge = law.ppf(0.999)
    upper = fit(z, z.min(), edge).upper.in_units(np.ones(1))
    # A tail that begins at the outermost row has a mass of at most one row: only its shape counts.
    distance = upper.distance(np.array([[0.1]]))[0, 0]
    assert edge + distance == pytest.approx(law.ppf(0.9999), rel=0.15)


def test_the_tails_of_a_sample_are_those_of_its_mirror_image():
    z = np.random.default_rng(1).gumbel(size=5000)
    tails, mirrored = fit(z, -3.0, 9.0), fit(-z, -9.0, 3.0)
    np.testing.assert_allclose(tails.lower, mirrored.upper)
    np.testing.assert_allclose(tails.upper, mirrored.lower)


@pytest.mark.parametrize("n", [5, 50, 5000])
def test_beyond_all_rows_there_is_about_one_row_in_n(n):
    z = np.random.default_rng(2).normal(size=n)
    for tail in fit(z, z.min(), z.max()):
        assert 0.2 / n < tail.mass < 1.0 / n
        assert 0 < tail.scale < 3


def test_equal_values_have_a_thin_tail():
    z = np.concatenate([np.zeros(500), np.random.default_rng(0).normal(size=500) ** 2])
    lower = fit(z, -0.1, 12.0).lower
    assert (lower.shape, lower.mass) == (0.0, pytest.approx(0.5 / 1001))
    assert lower.scale < 0.1
