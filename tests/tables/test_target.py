"""Reading and scaling y."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nkcme.tables.target import TargetScaler, as_target
from support.refusals import refusal


@settings(deadline=None, max_examples=100)
@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2),
        elements=st.floats(-1e300, 1e300, allow_subnormal=False),
    )
)
def test_inverse_undoes_transform(y: np.ndarray) -> None:
    scaler = TargetScaler.fit(y)
    z = scaler.transform(y)
    assert z.dtype == np.float32
    assert np.isfinite(z).all()
    back = scaler.inverse(z)
    assert back.dtype == np.float64
    spread = np.abs(y - scaler.location).max(axis=0)
    assert (np.abs(back - y) <= 1e-6 * spread + 1e-12 * np.abs(scaler.location)).all()
    again = TargetScaler.from_config(json.loads(json.dumps(scaler.to_config())))
    np.testing.assert_array_equal(again.location, scaler.location)
    np.testing.assert_array_equal(again.scale, scaler.scale)


@pytest.mark.parametrize("size", [1e-300, 1e-38, 1.0, 1e38, 1e300])
def test_targets_of_any_magnitude_have_unit_spread(size: float) -> None:
    y = np.random.default_rng(1).normal(3.0, 2.0, size=(500, 2)) * size
    z = TargetScaler.fit(y).transform(y)
    np.testing.assert_allclose(z.mean(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(z.std(axis=0), 1.0, rtol=1e-5)


def test_a_target_of_tiny_spread_keeps_its_digits() -> None:
    y = 1e9 + np.random.default_rng(2).normal(0.0, 1e-3, size=(300, 1))
    scaler = TargetScaler.fit(y)
    np.testing.assert_allclose(scaler.scale, y.std(axis=0), rtol=1e-6)
    np.testing.assert_allclose(scaler.inverse(scaler.transform(y)), y, rtol=0, atol=1e-6)


def test_a_constant_target_has_a_tiny_scale_in_any_units() -> None:
    scaler = TargetScaler.fit(np.array([[7e9, 1.0, 0.0, -7e-9], [7e9, 3.0, 0.0, -7e-9]]))
    np.testing.assert_array_equal(scaler.location, [7e9, 2.0, 0.0, -7e-9])
    np.testing.assert_allclose(scaler.scale, [7e3, 1.0, 1e-50, 7e-15], rtol=1e-12)
    again = TargetScaler.from_config(scaler.to_config())
    np.testing.assert_array_equal(again.scale, scaler.scale)


def test_one_row_is_a_constant_target() -> None:
    np.testing.assert_allclose(TargetScaler.fit(np.array([[4.0]])).scale, [4e-6])


def test_standardize_off_keeps_the_target() -> None:
    scaler = TargetScaler.fit(np.array([[1.0], [9.0]]), standardize=False)
    np.testing.assert_array_equal(scaler.transform(np.array([[5.0]])), [[5.0]])
    np.testing.assert_array_equal(scaler.inverse(np.array([[5.0]])), [[5.0]])


def test_the_scaler_takes_leading_axes_and_far_values() -> None:
    scaler = TargetScaler.fit(np.array([[1.0, 10.0], [3.0, 30.0]]))
    z = np.zeros((5, 4, 2), dtype=np.float32)
    np.testing.assert_array_equal(scaler.inverse(z), np.broadcast_to([2.0, 20.0], (5, 4, 2)))
    assert np.isfinite(scaler.transform(np.array([[1e300, -1e300]]))).all()


def test_whole_weights_of_the_target_are_repetition() -> None:
    y = np.array([[1.0], [5.0], [100.0], [2.0]])
    weighted = TargetScaler.fit(y, sample_weight=np.array([1, 3, 0, 2]))
    repeated = TargetScaler.fit(np.array([[1.0], [5.0], [5.0], [5.0], [2.0], [2.0]]))
    np.testing.assert_array_equal(weighted.location, repeated.location)
    np.testing.assert_array_equal(weighted.scale, repeated.scale)


@pytest.mark.parametrize(
    "y",
    [
        [1, 2],
        (1.0, 2.0),
        np.array([1, 2], dtype=np.float32),
        np.array([1, 2], dtype=object),
        pd.Series([1, 2], index=[7, 9]),
        pd.Series([1, 2], dtype="Int64"),
        pd.Series([1, 2], dtype="category"),
        pl.Series([1, 2]),
        pa.chunked_array([[1, 2]]),
        pd.Index([1, 2]),
    ],
    ids=lambda y: type(y).__name__,
)
def test_targets_of_one_dimension(y: Any) -> None:
    target = as_target(y)
    assert target.dtype == np.float64
    np.testing.assert_array_equal(target, [1.0, 2.0])


@pytest.mark.parametrize(
    "y",
    [
        [[1], [2]],
        np.array([[1.0], [2.0]]),
        pd.DataFrame({"y": [1, 2]}),
        pl.DataFrame({"y": [1, 2]}),
    ],
    ids=lambda y: type(y).__name__,
)
def test_a_target_of_one_column_keeps_its_two_dimensions(y: Any) -> None:
    np.testing.assert_array_equal(as_target(y), [[1.0], [2.0]])


def test_targets_of_several_columns_and_booleans() -> None:
    np.testing.assert_array_equal(as_target([[1, 2], [3, 4]]), [[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(as_target([True, False]), [1.0, 0.0])


def test_the_target_is_a_copy() -> None:
    y = np.array([1.0, 2.0])
    as_target(y)[0] = 9.0
    assert y[0] == 1.0


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, ["requires y to be passed, but the target y is None"]),
        (["1", "b"], ["y is text", "'b'", "row 1", "convert"]),
        (["1", "2"], ["y is text", "'1'", "row 0"]),
        (["2020-01-01", "2020-01-02"], ["y is text", "'2020-01-01'"]),
        ([1.0, "b"], ["y is text", "'b'", "row 1"]),
        (pl.Series(["a"]), ["y is text"]),
        (pd.Series(["a"], dtype="category"), ["y is text", "'a'"]),
        ([1.0, np.nan, np.nan], ["2 missing", "row 1"]),
        ([None, 1.0], ["1 missing", "row 0"]),
        ([None, None], ["2 missing"]),
        (pd.Series([1, None], dtype="Int64"), ["1 missing", "row 1"]),
        (pl.Series([1, None]), ["1 missing", "row 1"]),
        ([1.0, -np.inf], ["1 infinite", "row 1"]),
        ([1.0, 10**400], ["1 infinite", "row 1"]),
        (pd.DataFrame({"u": [1.0], "v": [np.nan]}), ["'v'", "1 missing"]),
        ([1j, 2j], ["complex"]),
        (np.array([1j], dtype=object), ["complex"]),
        ([], ["empty"]),
        (np.zeros((0, 2)), ["empty"]),
        (np.zeros((2, 0)), ["empty"]),
        (np.zeros((2, 2, 2)), ["2-D", "3 dimensions"]),
        (3.0, ["0 dimensions"]),
        (pd.to_datetime(["2020-01-01"]).to_series(), ["dates"]),
        ([[1.0], [1.0, 2.0]], ["equal length"]),
    ],
)
def test_bad_targets_are_refused(y: Any, words: list[str]) -> None:
    message = refusal(as_target, y)
    for word in words:
        assert word in message
