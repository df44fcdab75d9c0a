"""Learning curves and their summaries."""

from __future__ import annotations

import numpy as np

from nkcme.rl.curve import Curve, thin


def make_curve():
    step = np.arange(1, 11) * 10
    return Curve(step, np.stack([np.arange(10.0), np.zeros(10)], axis=1).astype(np.float32))


def test_summaries_are_means_over_the_last_fifth_and_over_all_steps():
    curve = make_curve()
    np.testing.assert_allclose(curve.last_fifth(), [8.5, 0.0])
    np.testing.assert_allclose(curve.area(), [4.5, 0.0])
    assert np.isnan(Curve.empty(2).last_fifth()).tolist() == [True, True]


def test_a_curve_is_extended_in_pieces_and_survives_a_file():
    curve, pieces = make_curve(), Curve.empty(2)
    for part in (slice(None, 4), slice(4, None)):
        pieces.extend(curve.step[part], curve.returns[part])
    back = Curve.from_arrays(pieces.as_arrays())
    np.testing.assert_array_equal(back.returns, curve.returns)
    np.testing.assert_array_equal(back.step, curve.step)
    assert back.step.dtype == np.int64


def test_thinned_values_are_means_over_equal_spans():
    means, span = thin(np.arange(10.0), 4)
    assert span == 3
    np.testing.assert_allclose(means, [1.0, 4.0, 7.0, 9.0])
    means, span = thin(np.arange(4.0), 4)
    assert span == 1
    np.testing.assert_allclose(means, np.arange(4.0))
