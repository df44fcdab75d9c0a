"""What dependent rows are worth: closed forms for groups and for autoregressive series."""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import norm, t

from nkcme.calibration.calibration_map import CalibrationMap
from nkcme.calibration.effective_rows import effective_rows
from nkcme.tables.row_groups import RowGroups


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_rows_of_groups_are_worth_n_by_the_design_effect(share):
    """Kish: n / (1 + (m - 1) share) for groups of m rows that share so much of the variance."""
    rng = np.random.default_rng(0)
    n_groups, m = 4000, 5
    common, own = rng.normal(size=(n_groups, 1)), rng.normal(size=(n_groups, m))
    values = (np.sqrt(share) * common + np.sqrt(1 - share) * own).ravel()
    groups = RowGroups(np.repeat(np.arange(n_groups), m))
    found = effective_rows(values, groups, np.ones(len(values)))
    assert found == pytest.approx(n_groups * m / (1 + (m - 1) * share), rel=0.08)


def test_groups_that_differ_in_spread_alone_are_worth_less_too():
    rng = np.random.default_rng(0)
    spread = np.repeat([0.2, 2.0], 2000)[:, None]
    values = (spread * rng.normal(size=(4000, 10))).ravel()
    found = effective_rows(values, RowGroups(np.repeat(np.arange(4000), 10)), np.ones(40_000))
    assert found < 20_000


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("rows_per_moment", [1, 4])
def test_a_series_is_worth_what_it_forgets(memory, rows_per_moment):
    """n (1 - memory) / (1 + memory) moments, in which all rows are the same."""
    rng = np.random.default_rng(0)
    n = 20_000
    moments = lfilter([1.0], [1.0, -memory], rng.normal(size=n))
    order = rng.permutation(n * rows_per_moment)  # rows come in any order
    values = np.repeat(moments, rows_per_moment)[order]
    groups = RowGroups(np.repeat(np.arange(n), rows_per_moment)[order], by_time=True)
    found = effective_rows(values, groups, np.ones(len(values)))
    assert found == pytest.approx(n * (1 - memory) / (1 + memory), rel=0.12)


def test_weights_are_repetitions_and_the_result_is_between_three_and_all_rows():
    rng = np.random.default_rng(0)
    values, codes = rng.normal(size=60), np.repeat(np.arange(20), 3)
    twice = effective_rows(np.repeat(values, 2), RowGroups(np.repeat(codes, 2)), np.ones(120))
    weighted = effective_rows(values, RowGroups(codes), np.full(60, 2.0))
    assert weighted == pytest.approx(twice)
    assert effective_rows(np.zeros(60), RowGroups(codes), np.ones(60)) == 60
    of_two = np.repeat([-1.0, 1.0], 30) + 1e-3 * values
    assert effective_rows(of_two, RowGroups(np.repeat([0, 1], 30)), np.ones(60)) == 3


def test_a_map_of_few_rows_has_students_quantiles():
    even = CalibrationMap(np.linspace(0.0, 1.0, 101))
    for n in (3.0, 10.0, 1e9):
        widened = even.widened(n)
        # What a normal law calls 5 % has the share that Student's law has there.
        expected = t(n - 1).cdf(norm.ppf([0.05, 0.5, 0.95]))
        np.testing.assert_allclose(widened(np.array([0.05, 0.5, 0.95])), expected, atol=1e-9)
    np.testing.assert_allclose(even.widened(1e9).values, even.values, atol=1e-6)


def test_intervals_of_few_groups_hold_what_they_should():
    """The known case: normal groups, whose mean is known and whose spread is estimated."""
    rng = np.random.default_rng(0)
    even = CalibrationMap(np.linspace(0.0, 1.0, 1001))
    plain, widened = [], []
    for _ in range(400):
        values = np.repeat(rng.normal(size=8), 5) + 0.1 * rng.normal(size=40)
        spread = np.sqrt(np.mean(values**2))
        n = effective_rows(values / spread, RowGroups(np.repeat(np.arange(8), 5)), np.ones(40))
        level = np.interp(0.95, even.widened(n).values, np.linspace(0, 1, 1001))
        for found, p in ((plain, 0.95), (widened, level)):
            found.append(2 * norm.cdf(norm.ppf(p) * spread / np.sqrt(1.01)) - 1)
    assert np.mean(plain) < 0.87
    assert np.mean(widened) == pytest.approx(0.9, abs=0.015)
