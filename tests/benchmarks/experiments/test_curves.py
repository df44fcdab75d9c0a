"""Packed learning curves."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.experiments.curves import pack, unpack
from nkcme.rl.curve import thin


def test_unpacking_restores_values_to_hundredths():
    rng = np.random.default_rng(1)
    tenths = rng.integers(-5000, 5001, size=500) / 10
    assert np.abs(unpack(pack(tenths)) - tenths).max() < 1e-9
    others = rng.normal(scale=300, size=500)
    assert np.abs(unpack(pack(others)) - others).max() <= 0.005 + 1e-9


def test_a_packed_curve_is_short():
    returns = np.random.default_rng(2).integers(4000, 5001, size=500) / 10
    assert len(pack(returns)) < 1800


def test_thinning_averages_equal_spans():
    values = np.random.default_rng(0).integers(0, 501, size=5000).astype(np.float32)
    thinned, span = thin(values)
    assert span == 10
    assert np.array_equal(thinned, values.reshape(500, 10).mean(axis=1, dtype=np.float64))
    assert thinned.mean() == pytest.approx(values.mean(dtype=np.float64), rel=1e-12)


@pytest.mark.parametrize(
    ("values", "n_points", "expected"),
    [
        ([1.0, 3.0, 5.0, 7.0, 20.0], 3, ([2.0, 6.0, 20.0], 2)),  # the last span is shorter
        ([1.0, 2.0, 3.0], 3, ([1.0, 2.0, 3.0], 1)),
    ],
)
def test_thinning_of_short_curves(values, n_points, expected):
    thinned, span = thin(np.array(values), n_points)
    assert (thinned.tolist(), span) == expected
