"""Curves in rows: exact means over equal spans, and what is packed comes back."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.experiments.curves import pack, unpack
from nkcme.rl.curve import thin


def test_thinning_is_exact():
    values = np.random.default_rng(0).integers(0, 501, size=5000).astype(np.float32)
    thinned, span = thin(values)
    assert span == 10
    assert np.array_equal(thinned, values.reshape(500, 10).mean(axis=1, dtype=np.float64))
    assert thinned.mean() == pytest.approx(values.mean(dtype=np.float64), rel=1e-12)


def test_a_short_curve_stays_as_it_is():
    thinned, span = thin(np.arange(500.0))
    assert span == 1
    assert np.array_equal(thinned, np.arange(500.0))


def test_the_last_span_is_the_mean_of_what_is_left():
    thinned, span = thin(np.array([1.0, 3.0, 5.0, 7.0, 20.0]), 3)
    assert span == 2
    assert thinned.tolist() == [2.0, 6.0, 20.0]


def test_packed_curves_come_back_to_hundredths():
    rng = np.random.default_rng(1)
    tenths = rng.integers(-5000, 5001, size=500) / 10
    assert np.abs(unpack(pack(tenths)) - tenths).max() < 1e-9
    others = rng.normal(scale=300, size=500)
    assert np.abs(unpack(pack(others)) - others).max() <= 0.005 + 1e-9


def test_a_packed_curve_is_short():
    returns = np.random.default_rng(2).integers(4000, 5001, size=500) / 10
    assert len(pack(returns)) < 1800
