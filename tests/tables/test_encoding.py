"""The encoder of a whole table: columns matched, weights, and laws that hold for any table."""

from __future__ import annotations

import json
import math
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nkcme.tables.encoding import TableEncoder
from nkcme.tables.sample_weights import checked_weight, repetitions
from nkcme.tables.target import TargetScaler
from support.frames import FRAMES, MIXED, frames
from support.refusals import refusal

# --- matching columns


@frames
def test_columns_are_matched_by_name(frame: Any) -> None:
    encoder = TableEncoder.fit(frame(MIXED))
    assert encoder.feature_names == tuple(MIXED)
    reordered = frame({name: MIXED[name] for name in reversed(MIXED)})
    np.testing.assert_array_equal(encoder.transform(reordered), encoder.transform(frame(MIXED)))


def test_all_kinds_of_frames_give_the_same_encoding() -> None:
    encoders = [TableEncoder.fit(frame(MIXED)) for frame in FRAMES.values()]
    assert encoders[0] == encoders[1] == encoders[2]
    outputs = [encoders[0].transform(frame(MIXED)) for frame in FRAMES.values()]
    np.testing.assert_array_equal(outputs[0], outputs[1])
    np.testing.assert_array_equal(outputs[0], outputs[2])
    assert outputs[0].shape == (4, encoders[0].n_outputs)


@frames
def test_missing_and_unknown_columns_are_refused_by_name(frame: Any) -> None:
    encoder = TableEncoder.fit(frame({"a": [1, 2], "b": [3, 4]}))
    assert "lacks column 'b'" in refusal(encoder.transform, frame({"a": [1]}))
    extra = refusal(encoder.transform, frame({"a": [1], "b": [1], "c": [1]}))
    assert "unknown column 'c'" in extra
    both = refusal(encoder.transform, frame({"a": [1], "B": [1]}))
    assert "'b'" in both
    assert "'B'" in both


def test_only_the_first_of_many_missing_columns_are_listed() -> None:
    encoder = TableEncoder.fit(pd.DataFrame({f"c{i}": [1, 2] for i in range(9)}))
    message = refusal(encoder.transform, pd.DataFrame({"c8": [1]}))
    assert "'c0', 'c1', 'c2', 'c3', 'c4' and 3 more" in message


@frames
def test_arrays_and_frames_are_matched_by_position(frame: Any) -> None:
    array = np.array([[1.0, 2.0], [3.0, 5.0]])
    table = frame({"a": array[:, 0], "b": array[:, 1]})
    named, unnamed = TableEncoder.fit(table), TableEncoder.fit(array)
    assert unnamed.feature_names is None
    np.testing.assert_array_equal(named.transform(array), named.transform(table))
    np.testing.assert_array_equal(unnamed.transform(table), unnamed.transform(array))
    assert "3 columns" in refusal(named.transform, np.zeros((2, 3)))
    assert "1 columns" in refusal(unnamed.transform, frame({"a": [1.0]}))


def test_frames_with_numbered_columns_are_unnamed() -> None:
    encoder = TableEncoder.fit(pd.DataFrame([[1.0, 2.0], [3.0, 5.0]]))
    assert encoder.feature_names is None
    assert "column 1 of X" in refusal(encoder.transform, pd.DataFrame([[1.0, np.inf]]))


@frames
def test_text_in_a_numeric_column_is_refused_with_column_row_and_value(frame: Any) -> None:
    encoder = TableEncoder.fit(frame({"a": [1.0, 2.0]}))
    message = refusal(encoder.transform, frame({"a": [None, "n/k"]}))
    assert "'a'" in message
    assert "'n/k'" in message
    assert "row 1" in message


def test_numbers_in_text_are_read_in_a_numeric_column() -> None:
    encoder = TableEncoder.fit(pd.DataFrame({"a": [1.0, 3.0]}))
    encoded = encoder.transform(pd.DataFrame({"a": ["3.0", "1", "-"]}))
    np.testing.assert_array_equal(encoded, [[1.0], [-1.0], [0.0]])


def test_the_value_that_made_a_numeric_column_text_is_the_one_reported() -> None:
    """A file with one stray text gives a column in which the numbers are text too."""
    encoder = TableEncoder.fit(pd.DataFrame({"a": [1.0, 2.0], "flag": [True, False]}))
    table = pd.DataFrame({"a": ["1.5", "2", "n/k"], "flag": True})
    message = refusal(encoder.transform, table)
    assert "column 'a' of X held numbers in training but has 'n/k' in row 2" in message
    table = pd.DataFrame({"a": [1.0, 2.0], "flag": ["yes", "perhaps"]})
    message = refusal(encoder.transform, table)
    assert "held booleans in training but has 'perhaps' in row 1" in message


def test_dates_match_categories_by_their_text() -> None:
    encoder = TableEncoder.fit(pd.DataFrame({"a": ["2020-01-01", "y"]}))
    encoded = encoder.transform(pd.DataFrame({"a": [date(2020, 1, 1)]}))
    np.testing.assert_array_equal(encoded, [[1.0, 0.0]])


def test_a_category_column_may_be_all_missing_in_a_new_table() -> None:
    encoder = TableEncoder.fit(pd.DataFrame({"a": ["x", "y", None]}))
    np.testing.assert_array_equal(encoder.transform([[np.nan]]), [[0, 0, 1]])


# --- weights


@pytest.mark.parametrize(
    "weight", [[1.0], [1.0, -1.0], [1.0, np.nan], [1.0, np.inf], [0.0, 0.0], [[1.0], [1.0]]]
)
def test_bad_weights_are_refused(weight: Any) -> None:
    assert "sample_weight" in refusal(TableEncoder.fit, [[1.0], [2.0]], sample_weight=weight)
    y = np.array([[1.0], [2.0]])
    assert "sample_weight" in refusal(TargetScaler.fit, y, sample_weight=weight)


def test_rows_of_weight_zero_are_absent() -> None:
    table = pd.DataFrame({"n": [1.0, 3.0, None], "c": ["a", "b", "z"], "m": [1, 2, "text"]})
    weighted = TableEncoder.fit(table, sample_weight=np.array([1.0, 1.0, 0.0]))
    assert weighted == TableEncoder.fit(table[:2])


numbers = st.floats(-1e6, 1e6) | st.just(math.nan)
words = st.sampled_from(["a", "b", "c"]) | st.none()


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(numbers, words, st.integers(0, 4)), min_size=1, max_size=12))
def test_whole_weights_are_repetition(rows: list[tuple[float, str | None, int]]) -> None:
    weight = np.array([row[2] for row in rows])
    if not weight.any():
        return
    table = pd.DataFrame({"n": [r[0] for r in rows], "c": np.array([r[1] for r in rows], object)})
    weighted = TableEncoder.fit(table, sample_weight=weight)
    repeated = table.loc[table.index.repeat(weight)]
    assert weighted == TableEncoder.fit(repeated)
    assert weighted == TableEncoder.fit(repeated.sample(frac=1.0, random_state=0))


def test_fractional_weights_only_compare_rows() -> None:
    table = np.array([[0.0], [1.0], [5.0]])
    (column,) = TableEncoder.fit(table, sample_weight=np.array([1.5, 3.0, 0.0])).columns
    assert column.mean == pytest.approx(2 / 3)
    assert column.scale == pytest.approx(np.sqrt(2) / 3)
    for size in (1e-300, 1e300):
        weight = np.array([1.0, 2.0, 0.0]) * size
        assert TableEncoder.fit(table, sample_weight=weight).columns[0].mean == pytest.approx(2 / 3)
    assert repetitions(checked_weight([1.5, 3.0, 0.0], 3)) == 2
    assert repetitions(checked_weight([1.0, 3.0, 0.0], 3)) == 4
    assert repetitions(checked_weight([0.5, 0.5, 0.5], 3)) == 3


# --- any table

any_float = st.floats(allow_infinity=False, width=64)
matrices = hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2), elements=any_float)
columns = st.dictionaries(
    st.text(max_size=3),
    st.one_of(
        st.lists(any_float | st.none(), min_size=3, max_size=3),
        st.lists(st.booleans() | st.none(), min_size=3, max_size=3),
        st.lists(st.text(max_size=3) | st.none(), min_size=3, max_size=3),
    ),
    min_size=1,
    max_size=4,
)


@settings(deadline=None, max_examples=100)
@given(matrices, st.data(), st.booleans())
def test_outputs_are_always_finite(X: np.ndarray, data: st.DataObject, standardize: bool) -> None:
    encoder = TableEncoder.fit(X, standardize=standardize)
    later = data.draw(hnp.arrays(np.float64, X.shape, elements=any_float))
    for table in (X, later):
        encoded = encoder.transform(table)
        assert encoded.shape == (len(X), encoder.n_outputs)
        assert np.isfinite(encoded).all()


def object_frame(table: dict[str, list[Any]]) -> pd.DataFrame:
    return pd.DataFrame({name: np.array(values, object) for name, values in table.items()})


@settings(deadline=None, max_examples=50)
@given(columns, st.randoms())
def test_columns_may_come_in_any_order(table: dict[str, list[Any]], random: Any) -> None:
    encoder = TableEncoder.fit(object_frame(table))
    expected = encoder.transform(object_frame(table))
    names = [*table]
    random.shuffle(names)
    shuffled = {name: table[name] for name in names}
    np.testing.assert_array_equal(encoder.transform(object_frame(shuffled)), expected)
    np.testing.assert_array_equal(encoder.transform(pl.DataFrame(shuffled)), expected)


@settings(deadline=None, max_examples=50)
@given(columns, st.booleans())
def test_config_round_trip(table: dict[str, list[Any]], standardize: bool) -> None:
    encoder = TableEncoder.fit(object_frame(table), standardize=standardize)
    text = json.dumps(encoder.to_config(), allow_nan=False)
    assert TableEncoder.from_config(json.loads(text)) == encoder
