"""Tables and columns that are refused, with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from nkcme.tables.column_encoding import Column
from nkcme.tables.encoding import TableEncoder
from support.refusals import refusal


@pytest.mark.parametrize(
    "texts",
    [
        ["2020-01-01", "2020-01-02", "in spring"],
        ["2020-13-01", "2020-01-02"],  # a month that does not exist: not dates
        ["2020-01", "2020-02"],  # months may be meant as categories
        ["1234-56-7890", "2020-01-01"],
    ],
)
def test_text_with_other_values_than_dates_is_a_category_column(texts: list[str]) -> None:
    (column,) = TableEncoder.fit(pd.DataFrame({"code": texts})).columns
    assert column.categories == tuple(sorted(texts))


def test_dates_declared_as_categories_are_categories() -> None:
    table = pd.DataFrame({"day": pd.Categorical(["2020-01-01", "2020-01-02"])})
    assert TableEncoder.fit(table).columns[0].kind == "category"


def test_a_model_fitted_on_text_dates_by_an_earlier_version_still_encodes_them() -> None:
    days = ("2020-01-01", "2020-01-02")
    encoder = TableEncoder((Column("day", "category", categories=days),))
    np.testing.assert_array_equal(encoder.transform(pd.DataFrame({"day": days})), np.eye(2))


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.coo_array])
def test_sparse_tables_are_refused(make: Any) -> None:
    assert "X is a sparse matrix" in refusal(TableEncoder.fit, make(np.eye(3)))
    assert "pass X.toarray()" in refusal(TableEncoder.fit(np.eye(3)).transform, make(np.eye(3)))


@pytest.mark.parametrize("table", [np.ones((2, 2)) * 1j, [[1j, 2.0], [3.0, 4.0]]])
def test_complex_tables_are_refused(table: Any) -> None:
    message = refusal(TableEncoder.fit, table)
    assert message.startswith("X holds complex numbers")
    assert "Complex data not supported" in message  # which scikit-learn's checks expect


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"odd": [[1], [2]]}),
        pd.DataFrame({"odd": [1j, 2j]}),
        pd.DataFrame({"odd": np.array([1j, 2], dtype=object)}),
        pd.DataFrame({"odd": [b"a", b"b"]}),
        pl.DataFrame({"odd": [[1], [2]]}),
        pl.DataFrame({"odd": [{"a": 1}, {"a": 2}]}),
        pl.DataFrame({"odd": [b"a", b"b"]}),
    ],
)
def test_columns_of_other_types_are_refused(table: Any) -> None:
    message = refusal(TableEncoder.fit, table)
    assert "'odd'" in message
    assert "expected numbers, booleans, text, dates or times" in message


def test_arrays_of_bytes_are_refused() -> None:
    assert "column 0 of X" in refusal(TableEncoder.fit, np.zeros((2, 1), dtype="S3"))


@pytest.mark.parametrize(
    "table",
    [
        np.zeros((0, 3)),
        np.zeros((3, 0)),
        pd.DataFrame(),
        pd.DataFrame({"a": []}),
        pl.DataFrame({"a": []}),
        [],
        [[]],
        np.zeros(3),
        np.zeros((2, 2, 2)),
        pd.Series([1.0, 2.0]),
        pl.Series([1.0, 2.0]),
        [[1.0], [1.0, 2.0]],
        {"a": [1.0]},
        "a,b",
        3.0,
        pl.LazyFrame({"a": [1.0]}),
        np.ma.masked_array([[1.0]], mask=[[True]]),
    ],
    ids=lambda table: f"{type(table).__module__}.{type(table).__name__}",
)
def test_objects_that_are_no_table_are_refused(table: Any) -> None:
    assert refusal(TableEncoder.fit, table).startswith("X ")
    assert refusal(TableEncoder.fit([[1.0], [2.0]]).transform, table).startswith("X ")


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]),
        pa.table([pa.array([1])] * 3, names=["a", "b", "a"]),
    ],
)
def test_repeated_column_names_are_refused(table: Any) -> None:
    message = refusal(TableEncoder.fit, table)
    assert "'a'" in message
    assert "'b'" not in message


def test_column_names_of_several_types_are_refused() -> None:
    assert "astype(str)" in refusal(TableEncoder.fit, pd.DataFrame([[1, 2]], columns=["a", 1]))


def test_a_column_name_with_a_line_break_gives_a_message_of_one_line() -> None:
    assert "'a\\nb'" in refusal(TableEncoder.fit, pd.DataFrame({"a\nb": [np.inf]}))
