"""True laws: closed forms, and quantiles that agree with probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import gamma, norm, poisson

from benchmarks.experiments.simulations.laws import (
    Clipped,
    Continuous,
    Discrete,
    Inflated,
    Rounded,
)

LEVELS = np.linspace(0.0005, 0.9995, 1000)
NORMAL = Continuous(norm(np.array([[0.0], [1.0]]), np.array([[1.0], [0.5]])))
LAWS = {
    "normal": NORMAL,
    "counts": Discrete(poisson(np.array([[0.5], [6.0]]))),
    "inflated": Inflated(Continuous(gamma(2.0)), np.array([[0.0], [0.7]])),
    "rounded": Rounded(NORMAL, 0.01),
    "capped": Clipped(NORMAL, high=0.5),
    "grades": Clipped(Rounded(NORMAL, 0.5), -1.0, 1.0),
}


@pytest.mark.parametrize("name", LAWS)
def test_a_quantile_is_the_first_point_that_reaches_its_level(name):
    law = LAWS[name]
    quantiles = law.ppf(LEVELS)
    below, upto = law.cdf(quantiles) - law.pmf(quantiles), law.cdf(quantiles)
    assert np.all(below <= LEVELS + 1e-12)
    assert np.all(upto >= LEVELS - 1e-12)


@pytest.mark.parametrize("name", ["counts", "rounded", "grades"])
def test_the_masses_of_separate_values_sum_to_one(name):
    values = np.round(np.arange(-1000, 4000) * (0.01 if name == "rounded" else 0.5), 10)
    assert LAWS[name].pmf(values).sum(axis=1) == pytest.approx(np.ones(2), abs=1e-12)


def test_point_masses_have_their_closed_forms():
    mass = np.array([[0.2], [0.3]])
    law = Inflated(Continuous(norm(0.5, 0.01)), mass, 0.1, high=1.0)
    assert law.pmf([0.0, 1.0, 0.5]) == pytest.approx(np.array([[0.2, 0.1, 0], [0.3, 0.1, 0]]))
    assert law.cdf([-1.0, 0.0, 0.5, 1.0])[0] == pytest.approx([0, 0.2, 0.2 + 0.7 / 2, 1])
    capped = LAWS["capped"].pmf(0.5)[:, 0]
    assert capped == pytest.approx([norm.sf(0.5), norm.sf(-1.0)])
    highest = LAWS["grades"].pmf(1.0)[:, 0]  # everything that rounds to 1 or more
    assert highest == pytest.approx([norm.sf(0.75), norm.sf(-0.5)])


def test_the_crps_of_a_normal_law_is_its_closed_form():
    y = np.array([0.3, -1.0])
    z = np.array([0.3, -4.0])
    closed = z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi)
    assert NORMAL.crps(y) == pytest.approx(closed * [1.0, 0.5], rel=1e-3)


def test_the_crps_of_a_point_mass_is_the_distance():
    law = Clipped(NORMAL, low=50.0)
    assert law.crps(np.array([53.0, 50.0])) == pytest.approx([3.0, 0.0])
