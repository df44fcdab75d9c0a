"""What each kind of column becomes, on pandas, polars and pyarrow."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from nkcme.tables.column_encoding import MAX_CATEGORIES
from nkcme.tables.encoding import TableEncoder
from nkcme.tables.number_encoding import MAX_STANDARDISED
from nkcme.tables.target import TargetScaler
from support.frames import MIXED, encode, frames
from support.refusals import refusal

# --- numbers


@frames
def test_numbers_are_standardised_as_float32(frame: Any) -> None:
    values = np.random.default_rng(0).normal(5.0, 3.0, size=(200, 2))
    encoded = encode(frame({"a": values[:, 0], "b": values[:, 1]}))
    assert encoded.dtype == np.float32
    expected = (values - values.mean(axis=0)) / values.std(axis=0)
    np.testing.assert_allclose(encoded, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint64", "longdouble"])
def test_arrays_of_any_number_type_agree(dtype: str) -> None:
    values = np.arange(12).reshape(6, 2)
    np.testing.assert_allclose(encode(values.astype(dtype)), encode(values), atol=1e-6)


def test_standardise_off_keeps_values_and_still_imputes() -> None:
    X = np.array([[1.0, 7.0], [np.nan, 7.0], [5.0, 7.0]])
    encoded = encode(X, standardize=False)
    np.testing.assert_array_equal(encoded, [[1.0, 0.0, 7.0], [3.0, 1.0, 7.0], [5.0, 0.0, 7.0]])


@frames
def test_missing_numbers_are_set_to_the_mean_and_marked(frame: Any) -> None:
    encoded = encode(frame({"size": MIXED["size"]}))
    assert encoded.shape == (4, 2)
    np.testing.assert_allclose(encoded[1], [0.0, 1.0])
    np.testing.assert_allclose(encoded[[0, 2, 3], 0].mean(), 0.0, atol=1e-6)
    np.testing.assert_allclose(encoded[[0, 2, 3], 0].std(), 1.0, atol=1e-6)
    assert not encoded[[0, 2, 3], 1].any()


def test_numbers_missing_only_in_a_new_table_are_set_to_the_mean() -> None:
    encoder = TableEncoder.fit([[1.0], [3.0]])
    np.testing.assert_array_equal(encoder.transform([[np.nan], [3.0]]), [[0.0], [1.0]])


def test_a_column_constant_in_training_is_always_zero() -> None:
    encoder = TableEncoder.fit([[5.0, 1.0], [5.0, 2.0]])
    np.testing.assert_array_equal(encoder.transform([[1e6, 1.0]]), [[0.0, -1.0]])


def test_a_constant_column_still_marks_missing_values() -> None:
    np.testing.assert_array_equal(encode([[5.0], [np.nan]]), [[0.0, 0.0], [0.0, 1.0]])


@frames
def test_a_column_without_values_in_training_is_always_zero(frame: Any) -> None:
    encoder = TableEncoder.fit(frame({"none": [None, None], "a": [1.0, 3.0]}))
    assert encoder.columns[0].kind == "empty"
    for later in ([None, None], [3.0, 4.0], ["x", "y"]):
        encoded = encoder.transform(frame({"none": later, "a": [1.0, 3.0]}))
        np.testing.assert_array_equal(encoded, [[0.0, -1.0], [0.0, 1.0]])


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
@frames
def test_infinities_are_refused_with_column_and_row(frame: Any, bad: float) -> None:
    table = frame({"fine": [1.0, 2.0], "wrong": [1.0, bad]})
    message = refusal(TableEncoder.fit, table)
    assert "'wrong'" in message
    assert "row 1" in message
    fitted = TableEncoder.fit(frame({"fine": [1.0, 2.0], "wrong": [1.0, 2.0]}))
    assert "'wrong'" in refusal(fitted.transform, table)


def test_integers_beyond_float64_are_refused_as_infinite() -> None:
    assert "infinite" in refusal(TableEncoder.fit, [[10**400], [1]])


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1e-38, 1e38, 1e300, 8e307])
def test_values_of_any_magnitude_are_standardised(size: float) -> None:
    values = np.array([[-2.0], [-1.0], [0.5], [2.0]])
    np.testing.assert_allclose(encode(values * size), encode(values), rtol=2e-3)


def test_the_whole_range_of_float64_is_standardised() -> None:
    values = np.array([[1.0], [-1.0], [-1.0], [-1.0]])
    np.testing.assert_allclose(encode(values * 1.7e308), encode(values), rtol=1e-6)
    y = values * 1.7e308
    np.testing.assert_allclose(TargetScaler.fit(y).transform(y), encode(values), rtol=1e-6)


def test_a_spread_tiny_beside_the_mean_keeps_its_digits() -> None:
    values = np.array([[0.0], [1.0], [2.0], [5.0]])
    np.testing.assert_allclose(encode(1e9 + values * 2.0**-20), encode(values), atol=1e-6)


def test_values_far_outside_training_are_clipped() -> None:
    encoder = TableEncoder.fit([[1e-300], [3e-300]])
    limits = [[MAX_STANDARDISED], [-MAX_STANDARDISED]]
    np.testing.assert_array_equal(encoder.transform([[1e300], [-1e300]]), limits)
    raw = TableEncoder.fit([[1.0], [3.0]], standardize=False)
    assert np.isfinite(raw.transform([[1e300]])).all()


# --- booleans and categories


@frames
def test_booleans_are_numbers_and_may_be_missing(frame: Any) -> None:
    encoder = TableEncoder.fit(frame({"flag": MIXED["flag"]}))
    assert encoder.columns[0].kind == "boolean"
    encoded = encoder.transform(frame({"flag": MIXED["flag"]}))
    numbers = encode([[1.0], [0.0], [np.nan], [1.0]])
    np.testing.assert_array_equal(encoded, numbers)


def test_pandas_nullable_types_are_read() -> None:
    table = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "real": pd.array([1.5, None, 3.0], dtype="Float64"),
            "flag": pd.array([True, None, False], dtype="boolean"),
            "text": pd.array(["a", None, "b"], dtype="string"),
        }
    )
    encoder = TableEncoder.fit(table)
    kinds = [column.kind for column in encoder.columns]
    assert kinds == ["numeric", "numeric", "boolean", "category"]
    assert all(column.has_missing for column in encoder.columns)
    np.testing.assert_array_equal(encoder.transform(table)[1], [0, 1, 0, 1, 0, 1, 0, 0, 1])


@frames
def test_text_is_one_hot_in_sorted_order_with_missing_last(frame: Any) -> None:
    encoder = TableEncoder.fit(frame({"town": MIXED["town"]}))
    assert encoder.columns[0].categories == ("Bern", "Ulm")
    encoded = encoder.transform(frame({"town": ["Ulm", "Bern", None, "Rome"]}))
    np.testing.assert_array_equal(encoded, [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]])


@frames
def test_text_is_compared_to_its_last_character(frame: Any) -> None:
    assert TableEncoder.fit(frame({"c": ["a", "a\0"]})).columns[0].categories == ("a", "a\0")


def test_categories_named_missing_or_nan_are_ordinary() -> None:
    encoded = encode(pd.DataFrame({"a": ["missing", "nan", None]}))
    np.testing.assert_array_equal(encoded, np.eye(3))


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"c": ["b", None, "a"]}, dtype="category"),
        pl.DataFrame({"c": ["b", None, "a"]}, schema={"c": pl.Categorical}),
        pl.DataFrame({"c": ["b", None, "a"]}, schema={"c": pl.Enum(["b", "a", "z"])}),
        pa.table({"c": pa.array(["b", None, "a"]).dictionary_encode()}),
    ],
    ids=["pandas", "polars", "enum", "pyarrow"],
)
def test_declared_categories(table: Any) -> None:
    np.testing.assert_array_equal(encode(table), [[0, 1, 0], [0, 0, 1], [1, 0, 0]])


def test_declared_categories_of_numbers_and_of_intervals_are_categories() -> None:
    table = pd.DataFrame({"n": pd.Categorical([10, 9, None]), "cut": pd.cut([1, 2, 9], 2)})
    encoder = TableEncoder.fit(table)
    assert encoder.columns[0].categories == ("10", "9")
    assert encoder.columns[1].categories == ("(0.992, 5.0]", "(5.0, 9.0]")
    plain = pd.DataFrame({"n": [9, 10, 11], "cut": table["cut"]})
    np.testing.assert_array_equal(encoder.transform(plain)[:, :3], [[0, 1, 0], [1, 0, 0], [0] * 3])


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_numbers_match_categories_by_text(dtype: str) -> None:
    encoder = TableEncoder.fit(pd.DataFrame({"code": ["1", "2", "x"]}))
    encoded = encoder.transform(pd.DataFrame({"code": np.array([1, 2, 3], dtype=dtype)}))
    np.testing.assert_array_equal(encoded, [[1, 0, 0], [0, 1, 0], [0, 0, 0]])


def test_the_most_frequent_categories_are_kept_with_ties_by_name() -> None:
    names = [f"c{i:02d}" for i in range(MAX_CATEGORIES + 5)]
    table = pd.DataFrame({"c": ["c54", "c54", "c53", *reversed(names)]})
    encoder = TableEncoder.fit(table, types={"c": "category"})
    assert encoder.columns[0].categories == (*names[: MAX_CATEGORIES - 2], "c53", "c54")
    dropped = encoder.transform(pd.DataFrame({"c": ["c49"]}))
    np.testing.assert_array_equal(dropped, np.zeros((1, MAX_CATEGORIES)))


def test_the_frequency_of_a_category_is_weighted() -> None:
    names = [f"c{i:02d}" for i in range(MAX_CATEGORIES + 1)]
    weight = np.ones(MAX_CATEGORIES + 1)
    weight[0] = 0.5
    encoder = TableEncoder.fit(
        pd.DataFrame({"c": names}), sample_weight=weight, types={"c": "category"}
    )
    assert encoder.columns[0].categories == tuple(names[1:])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2.5, None], "numeric"),
        ([Decimal("1.5"), 2, np.float32(1)], "numeric"),
        ([True, None, False], "boolean"),
        ([True, 2, 0], "numeric"),
        (["1", "2", "3"], "numeric"),
        (["01", "02", "03"], "category"),
        ([1, "a", 2.0], "category"),
        ([True, "a", None], "category"),
        ([None, np.nan, pd.NA], "empty"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda v: pd.DataFrame({"o": v}), lambda v: v.reshape(-1, 1)])
def test_object_columns_have_the_kind_of_their_values(
    values: list[Any], kind: str, wrap: Any
) -> None:
    table = wrap(np.array(values, dtype=object))
    encoder = TableEncoder.fit(table)
    assert encoder.columns[0].kind == kind
    assert np.isfinite(encoder.transform(table)).all()


def test_a_column_of_mixed_types_is_a_category_column() -> None:
    encoder = TableEncoder.fit(np.array([[1], ["a"], [2.0], [True]], dtype=object))
    assert encoder.columns[0].categories == ("1", "2", "True", "a")


@pytest.mark.parametrize("make", [np.array, lambda rows: np.array(rows, np.dtypes.StringDType())])
def test_arrays_of_text_are_category_columns(make: Any) -> None:
    encoder = TableEncoder.fit(make([["a", "01"], ["b", "02"]]))
    assert [column.categories for column in encoder.columns] == [("a", "b"), ("01", "02")]


def test_lists_of_rows_keep_numbers_beside_text() -> None:
    encoder = TableEncoder.fit([[1, "a"], [2, "b"]])
    assert [column.kind for column in encoder.columns] == ["numeric", "category"]
