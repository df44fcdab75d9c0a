"""Every rule of preprocessing.py, on pandas and polars where frames are concerned."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nkcme.errors import ModelFileError, TableError
from nkcme.tables.encoding import (
    MAX_CATEGORIES,
    MAX_STANDARDISED,
    Column,
    TableEncoder,
    TargetScaler,
    as_target,
    checked_weight,
    repetitions,
)

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
frames = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())

MIXED = {
    "size": [1.0, None, 3.0, 8.0],
    "count": [1, 2, 3, 4],
    "flag": [True, False, None, True],
    "town": ["Ulm", None, "Bern", "Ulm"],
    "none": [None, None, None, None],
}


def encode(X: Any, **options: Any) -> np.ndarray:
    return TableEncoder.fit(X, **options).transform(X)


def refusal(action: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(TableError) as caught:
        action(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


# ------------------------------------------------------------------------------------ numbers


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
def test_missing_numbers_stand_at_the_mean_and_are_marked(frame: Any) -> None:
    encoded = encode(frame({"size": MIXED["size"]}))
    assert encoded.shape == (4, 2)
    np.testing.assert_allclose(encoded[1], [0.0, 1.0])
    np.testing.assert_allclose(encoded[[0, 2, 3], 0].mean(), 0.0, atol=1e-6)
    np.testing.assert_allclose(encoded[[0, 2, 3], 0].std(), 1.0, atol=1e-6)
    assert not encoded[[0, 2, 3], 1].any()


def test_missing_only_at_predict_time_stands_at_the_mean() -> None:
    encoder = TableEncoder.fit([[1.0], [3.0]])
    np.testing.assert_array_equal(encoder.transform([[np.nan], [3.0]]), [[0.0], [1.0]])


def test_a_constant_column_contributes_nothing_whatever_comes_later() -> None:
    encoder = TableEncoder.fit([[5.0, 1.0], [5.0, 2.0]])
    np.testing.assert_array_equal(encoder.transform([[1e6, 1.0]]), [[0.0, -1.0]])


def test_a_constant_column_still_tells_what_is_missing() -> None:
    np.testing.assert_array_equal(encode([[5.0], [np.nan]]), [[0.0, 0.0], [0.0, 1.0]])


@frames
def test_an_all_missing_column_contributes_nothing_whatever_comes_later(frame: Any) -> None:
    encoder = TableEncoder.fit(frame({"none": [None, None], "a": [1.0, 3.0]}))
    assert encoder.columns[0].kind == "empty"
    for later in ([None, None], [3.0, 4.0], ["x", "y"]):
        encoded = encoder.transform(frame({"none": later, "a": [1.0, 3.0]}))
        np.testing.assert_array_equal(encoded, [[0.0, -1.0], [0.0, 1.0]])


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
@frames
def test_infinities_are_refused_by_column_and_row(frame: Any, bad: float) -> None:
    table = frame({"fine": [1.0, 2.0], "wrong": [1.0, bad]})
    message = refusal(TableEncoder.fit, table)
    assert "'wrong'" in message
    assert "row 1" in message
    fitted = TableEncoder.fit(frame({"fine": [1.0, 2.0], "wrong": [1.0, 2.0]}))
    assert "'wrong'" in refusal(fitted.transform, table)


def test_integers_beyond_float64_are_refused_as_infinite() -> None:
    assert "infinite" in refusal(TableEncoder.fit, [[10**400], [1]])


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1e-38, 1e38, 1e300, 8e307])
def test_any_magnitude_is_standardised_alike(size: float) -> None:
    values = np.array([[-2.0], [-1.0], [0.5], [2.0]])
    np.testing.assert_allclose(encode(values * size), encode(values), rtol=2e-3)


def test_the_whole_range_of_float64_is_standardised() -> None:
    values = np.array([[1.0], [-1.0], [-1.0], [-1.0]])
    np.testing.assert_allclose(encode(values * 1.7e308), encode(values), rtol=1e-6)
    y = values * 1.7e308
    np.testing.assert_allclose(TargetScaler.fit(y).transform(y), encode(values), rtol=1e-6)


def test_a_spread_tiny_beside_the_mean_survives() -> None:
    values = np.array([[0.0], [1.0], [2.0], [5.0]])
    np.testing.assert_allclose(encode(1e9 + values * 2.0**-20), encode(values), atol=1e-6)


def test_values_far_outside_training_are_clipped() -> None:
    encoder = TableEncoder.fit([[1e-300], [3e-300]])
    limits = [[MAX_STANDARDISED], [-MAX_STANDARDISED]]
    np.testing.assert_array_equal(encoder.transform([[1e300], [-1e300]]), limits)
    raw = TableEncoder.fit([[1.0], [3.0]], standardize=False)
    assert np.isfinite(raw.transform([[1e300]])).all()


# ------------------------------------------------------------------------ booleans, categories


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


def test_a_category_called_missing_or_nan_is_a_category_like_others() -> None:
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
def test_numbers_where_categories_were_compare_by_text(dtype: str) -> None:
    encoder = TableEncoder.fit(pd.DataFrame({"code": ["1", "2", "x"]}))
    encoded = encoder.transform(pd.DataFrame({"code": np.array([1, 2, 3], dtype=dtype)}))
    np.testing.assert_array_equal(encoded, [[1, 0, 0], [0, 1, 0], [0, 0, 0]])


def test_only_the_most_frequent_categories_are_kept_ties_by_name() -> None:
    names = [f"c{i:02d}" for i in range(MAX_CATEGORIES + 5)]
    encoder = TableEncoder.fit(pd.DataFrame({"c": ["c54", "c54", "c53", *reversed(names)]}))
    assert encoder.columns[0].categories == (*names[: MAX_CATEGORIES - 2], "c53", "c54")
    dropped = encoder.transform(pd.DataFrame({"c": ["c49"]}))
    np.testing.assert_array_equal(dropped, np.zeros((1, MAX_CATEGORIES)))


def test_frequency_counts_weights() -> None:
    names = [f"c{i:02d}" for i in range(MAX_CATEGORIES + 1)]
    weight = np.ones(MAX_CATEGORIES + 1)
    weight[0] = 0.5
    encoder = TableEncoder.fit(pd.DataFrame({"c": names}), sample_weight=weight)
    assert encoder.columns[0].categories == tuple(names[1:])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2.5, None], "numeric"),
        ([Decimal("1.5"), 2, np.float32(1)], "numeric"),
        ([True, None, False], "boolean"),
        ([True, 2, 0], "numeric"),
        (["1", "2", "3"], "category"),
        ([1, "a", 2.0], "category"),
        ([True, "a", None], "category"),
        ([None, np.nan, pd.NA], "empty"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda v: pd.DataFrame({"o": v}), lambda v: v.reshape(-1, 1)])
def test_object_columns_are_what_their_values_are(values: list[Any], kind: str, wrap: Any) -> None:
    table = wrap(np.array(values, dtype=object))
    encoder = TableEncoder.fit(table)
    assert encoder.columns[0].kind == kind
    assert np.isfinite(encoder.transform(table)).all()


def test_mixtures_are_categories_by_text() -> None:
    encoder = TableEncoder.fit(np.array([[1], ["a"], [2.0], [True]], dtype=object))
    assert encoder.columns[0].categories == ("1", "2", "True", "a")


@pytest.mark.parametrize("make", [np.array, lambda rows: np.array(rows, np.dtypes.StringDType())])
def test_arrays_of_text(make: Any) -> None:
    encoder = TableEncoder.fit(make([["a", "1"], ["b", "2"]]))
    assert [column.categories for column in encoder.columns] == [("a", "b"), ("1", "2")]


def test_lists_of_rows_keep_numbers_beside_text() -> None:
    encoder = TableEncoder.fit([[1, "a"], [2, "b"]])
    assert [column.kind for column in encoder.columns] == ["numeric", "category"]


# --------------------------------------------------------------------------- refused columns

DAY = datetime.date(2020, 1, 1)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])}),
        pd.DataFrame({"when": pd.to_datetime(["2020-01-01"], utc=True)}),
        pd.DataFrame({"when": pd.to_timedelta([1], unit="s")}),
        pd.DataFrame({"when": [DAY]}),
        pd.DataFrame({"when": np.array([np.timedelta64(1, "s")], dtype=object)}, dtype=object),
        pl.DataFrame({"when": [DAY]}),
        pl.DataFrame({"when": [datetime.datetime(2020, 1, 1)]}),
        pl.DataFrame({"when": [datetime.time(12)]}),
    ],
)
def test_dates_are_refused_with_advice(table: Any) -> None:
    message = refusal(TableEncoder.fit, table)
    assert "'when'" in message
    assert "convert it to numbers" in message


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
def test_what_is_no_column_of_a_table_is_refused(table: Any) -> None:
    message = refusal(TableEncoder.fit, table)
    assert "'odd'" in message
    assert "expected numbers, booleans or text" in message


@pytest.mark.parametrize("kind", ["complex128", "datetime64[s]", "S3"])
def test_arrays_of_other_types_are_refused(kind: str) -> None:
    assert "column 0 of X" in refusal(TableEncoder.fit, np.zeros((2, 1), dtype=kind))


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
def test_what_is_no_table_is_refused(table: Any) -> None:
    assert refusal(TableEncoder.fit, table).startswith("X ")
    assert refusal(TableEncoder.fit([[1.0], [2.0]]).transform, table).startswith("X ")


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]),
        pa.table([pa.array([1])] * 3, names=["a", "b", "a"]),
    ],
)
def test_duplicate_names_are_refused_by_name(table: Any) -> None:
    message = refusal(TableEncoder.fit, table)
    assert "'a'" in message
    assert "'b'" not in message


def test_names_of_several_types_are_refused() -> None:
    assert "astype(str)" in refusal(TableEncoder.fit, pd.DataFrame([[1, 2]], columns=["a", 1]))


def test_names_with_line_breaks_make_one_line_messages() -> None:
    assert "'a\\nb'" in refusal(TableEncoder.fit, pd.DataFrame({"a\nb": [np.inf]}))


# ------------------------------------------------------------------------------ predict time


@frames
def test_columns_are_matched_by_name(frame: Any) -> None:
    encoder = TableEncoder.fit(frame(MIXED))
    assert encoder.feature_names == tuple(MIXED)
    reordered = frame({name: MIXED[name] for name in reversed(MIXED)})
    np.testing.assert_array_equal(encoder.transform(reordered), encoder.transform(frame(MIXED)))


def test_the_kind_of_frame_does_not_matter() -> None:
    encoders = [TableEncoder.fit(frame(MIXED)) for frame in FRAMES.values()]
    assert encoders[0] == encoders[1] == encoders[2]
    outputs = [encoders[0].transform(frame(MIXED)) for frame in FRAMES.values()]
    np.testing.assert_array_equal(outputs[0], outputs[1])
    np.testing.assert_array_equal(outputs[0], outputs[2])
    assert outputs[0].shape == (4, encoders[0].n_outputs)


@frames
def test_missing_and_extra_columns_are_refused_by_name(frame: Any) -> None:
    encoder = TableEncoder.fit(frame({"a": [1, 2], "b": [3, 4]}))
    assert "lacks column 'b'" in refusal(encoder.transform, frame({"a": [1]}))
    extra = refusal(encoder.transform, frame({"a": [1], "b": [1], "c": [1]}))
    assert "unknown column 'c'" in extra
    both = refusal(encoder.transform, frame({"a": [1], "B": [1]}))
    assert "'b'" in both
    assert "'B'" in both


def test_many_missing_columns_are_listed_in_short() -> None:
    encoder = TableEncoder.fit(pd.DataFrame({f"c{i}": [1, 2] for i in range(9)}))
    message = refusal(encoder.transform, pd.DataFrame({"c8": [1]}))
    assert "'c0', 'c1', 'c2', 'c3', 'c4' and 3 more" in message


@frames
def test_arrays_and_named_tables_meet_by_position(frame: Any) -> None:
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
def test_text_where_numbers_were_is_refused_by_name_with_an_example(frame: Any) -> None:
    encoder = TableEncoder.fit(frame({"a": [1.0, 2.0]}))
    message = refusal(encoder.transform, frame({"a": [None, "n/k"]}))
    assert "'a'" in message
    assert "'n/k'" in message
    assert "row 1" in message


def test_numeric_looking_text_is_still_text() -> None:
    encoder = TableEncoder.fit(pd.DataFrame({"a": [1.0, 2.0]}))
    assert "'1.5'" in refusal(encoder.transform, pd.DataFrame({"a": ["1.5"]}))


def test_dates_where_categories_were_are_refused() -> None:
    encoder = TableEncoder.fit(pd.DataFrame({"a": ["x", "y"]}))
    assert "dates" in refusal(encoder.transform, pd.DataFrame({"a": [DAY]}))


def test_an_all_missing_category_at_predict_time() -> None:
    encoder = TableEncoder.fit(pd.DataFrame({"a": ["x", "y", None]}))
    np.testing.assert_array_equal(encoder.transform([[np.nan]]), [[0, 0, 1]])


# ---------------------------------------------------------------------------------- weights


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


cells = st.floats(-1e6, 1e6) | st.just(math.nan)
words = st.sampled_from(["a", "b", "c"]) | st.none()


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(cells, words, st.integers(0, 4)), min_size=1, max_size=12))
def test_integer_weights_are_repetition(rows: list[tuple[float, str | None, int]]) -> None:
    weight = np.array([row[2] for row in rows])
    if not weight.any():
        return
    table = pd.DataFrame({"n": [r[0] for r in rows], "c": np.array([r[1] for r in rows], object)})
    weighted = TableEncoder.fit(table, sample_weight=weight)
    repeated = table.loc[table.index.repeat(weight)]
    assert weighted == TableEncoder.fit(repeated)
    assert weighted == TableEncoder.fit(repeated.sample(frac=1.0, random_state=0))


def test_other_weights_only_compare_rows() -> None:
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


# ------------------------------------------------------------------------------- properties

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
def test_the_order_of_columns_does_not_matter(table: dict[str, list[Any]], random: Any) -> None:
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


# ---------------------------------------------------------------------------- hostile configs

GOOD: dict[str, Any] = TableEncoder.fit(pd.DataFrame(MIXED)).to_config()
NUMBER, CATEGORY = GOOD["columns"][0], GOOD["columns"][3]


@pytest.mark.parametrize(
    "change",
    [
        {"name": 3},
        {"name": None},
        {"kind": "code"},
        {"kind": ["numeric"]},
        {"kind": "category"},
        {"mean": "1"},
        {"mean": True},
        {"mean": math.nan},
        {"mean": 10**400},
        {"mean": None},
        {"mean": 1e300, "scale": 1e-300},
        {"scale": math.inf},
        {"scale": -1.0},
        {"categories": ["a"]},
        {"categories": "a"},
        {"categories": {"a": 1}},
        {"has_missing": 1},
        {"surprise": 1},
    ],
)
def test_damaged_columns_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ModelFileError, match=r"damaged: .*; save"):
        TableEncoder.from_config({**GOOD, "columns": [{**NUMBER, **change}, CATEGORY]})


@pytest.mark.parametrize(
    "categories",
    [[], [1], ["b", "a"], ["a", "a"], [f"{i:03d}" for i in range(MAX_CATEGORIES + 1)]],
)
def test_damaged_categories_are_refused(categories: list[Any]) -> None:
    with pytest.raises(ModelFileError, match="categories of column 0"):
        TableEncoder.from_config({**GOOD, "columns": [{**CATEGORY, "categories": categories}]})


@pytest.mark.parametrize(
    "config",
    [
        None,
        [],
        {},
        {**GOOD, "more": 1},
        {**GOOD, "standardize": 1},
        {**GOOD, "columns": []},
        {**GOOD, "columns": {}},
        {**GOOD, "columns": [None]},
        {**GOOD, "columns": [{}]},
        {**GOOD, "columns": [NUMBER, NUMBER]},
        {**GOOD, "columns": [NUMBER] * 100_001},
    ],
)
def test_damaged_encoders_are_refused(config: Any) -> None:
    with pytest.raises(ModelFileError, match="damaged"):
        TableEncoder.from_config(config)


@pytest.mark.parametrize(
    "config",
    [
        None,
        {"location": [0.0]},
        {"location": [], "scale": []},
        {"location": 0.0, "scale": 1.0},
        {"location": [0.0], "scale": [1.0, 1.0]},
        {"location": [math.nan], "scale": [1.0]},
        {"location": [0.0], "scale": [0.0]},
        {"location": [0.0], "scale": [-1.0]},
        {"location": [0.0], "scale": ["1"]},
        {"location": [[0.0]], "scale": [1.0]},
        {"location": [1e300], "scale": [1e-300]},
        {"location": [0.0] * 100_001, "scale": [1.0] * 100_001},
    ],
)
def test_damaged_scalers_are_refused(config: Any) -> None:
    with pytest.raises(ModelFileError, match="damaged"):
        TargetScaler.from_config(config)


def test_columns_say_their_width() -> None:
    assert Column("a", "numeric").n_outputs == 1
    assert Column("a", "category", categories=("x", "y"), has_missing=True).n_outputs == 3


# ------------------------------------------------------------------------------------ target


@settings(deadline=None, max_examples=100)
@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2),
        elements=st.floats(-1e300, 1e300, allow_subnormal=False),
    )
)
def test_the_scaler_undoes_itself(y: np.ndarray) -> None:
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


def test_a_constant_target_has_next_to_no_scale_in_any_units() -> None:
    scaler = TargetScaler.fit(np.array([[7e9, 1.0, 0.0, -7e-9], [7e9, 3.0, 0.0, -7e-9]]))
    np.testing.assert_array_equal(scaler.location, [7e9, 2.0, 0.0, -7e-9])
    np.testing.assert_allclose(scaler.scale, [7e3, 1.0, 1e-50, 7e-15], rtol=1e-12)
    again = TargetScaler.from_config(scaler.to_config())
    np.testing.assert_array_equal(again.scale, scaler.scale)


def test_one_row_is_a_constant_target() -> None:
    np.testing.assert_allclose(TargetScaler.fit(np.array([[4.0]])).scale, [4e-6])


def test_the_scaler_can_leave_targets_alone() -> None:
    scaler = TargetScaler.fit(np.array([[1.0], [9.0]]), standardize=False)
    np.testing.assert_array_equal(scaler.transform(np.array([[5.0]])), [[5.0]])
    np.testing.assert_array_equal(scaler.inverse(np.array([[5.0]])), [[5.0]])


def test_the_scaler_takes_draws_first_and_far_values() -> None:
    scaler = TargetScaler.fit(np.array([[1.0, 10.0], [3.0, 30.0]]))
    z = np.zeros((5, 4, 2), dtype=np.float32)
    np.testing.assert_array_equal(scaler.inverse(z), np.broadcast_to([2.0, 20.0], (5, 4, 2)))
    assert np.isfinite(scaler.transform(np.array([[1e300, -1e300]]))).all()


def test_target_weights_are_repetition() -> None:
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
        (["1", "b"], ["y is text", "'1'", "row 0", "convert"]),
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
