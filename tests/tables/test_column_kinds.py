"""Thirty-odd kinds of columns as people have them, and what each becomes."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from nkcme.tables.column_encoding import Column
from nkcme.tables.encoding import TableEncoder
from nkcme.tables.hashed_words import N_HASHED
from support.frames import frames
from support.refusals import refusal

MANY = [f"{first} {second}" for first in ("new", "old", "red") for second in "abcdefghijklmnopqrst"]

#: The values of a column, the kind that it becomes, and the values that it is read as: numbers,
#: seconds of dates and times, or categories.
KINDS: dict[str, tuple[list[Any], str, Any]] = {
    "numbers": ([1.5, 2.5, None], "numeric", [1.5, 2.5, None]),
    "whole numbers": ([3, 1, 2], "numeric", [3, 1, 2]),
    "decimals": ([Decimal("1.5"), Decimal(2)], "numeric", [1.5, 2]),
    "booleans": ([True, False, None], "boolean", [1, 0, None]),
    "durations": ([datetime.timedelta(hours=1), datetime.timedelta(1)], "numeric", [3600, 86400]),
    "digits in text": (["1", " 20 ", "3"], "numeric", [1, 20, 3]),
    "decimal points in text": (["1.5", "-2", "+3.25"], "numeric", [1.5, -2, 3.25]),
    "decimal commas": (["1,5", "2", "-3,25"], "numeric", [1.5, 2, -3.25]),
    "thousands": (["1,200", "12,345", "7"], "numeric", [1200, 12345, 7]),
    "thousands and decimals": (["1,200.5", "12"], "numeric", [1200.5, 12]),
    "German thousands": (["1.200,5", "12", "1.000.000"], "numeric", [1200.5, 12, 1e6]),
    "spaces between thousands": (["1 200", "12 345,6"], "numeric", [1200, 12345.6]),
    "Swiss thousands": (["1'200.50", "12"], "numeric", [1200.5, 12]),
    "exponents": (["1e3", "2.5E-1"], "numeric", [1000, 0.25]),
    "currency before": (["EUR 7,958", "EUR 810"], "numeric", [7958, 810]),
    "currency sign": (["$1,200.50", "-$3"], "numeric", [1200.5, -3]),
    "currency behind": (["7.958,10 €", "12,00 €"], "numeric", [7958.1, 12]),
    "percent": (["12 %", "7.5%"], "numeric", [12, 7.5]),
    "unit": (["54,5 m²", "120 m²"], "numeric", [54.5, 120]),
    "dash for missing": (["1.5", "-", "3"], "numeric", [1.5, None, 3]),
    "words for missing": (["5", "n/a", "unknown", "NA", "?"], "numeric", [5] + [None] * 4),
    "numbers and a dash": ([1.5, "-", 3], "numeric", [1.5, None, 3]),
    "yes and no": (["yes", "No", "YES", None], "boolean", [1, 0, 1, None]),
    "ja and nein": (["ja", "nein", "-"], "boolean", [1, 0, None]),
    "true and false in text": (["true", "FALSE"], "boolean", [1, 0]),
    "letters for yes and no": (["y", "n", "y"], "boolean", [1, 0, 1]),
    "dates": ([datetime.date(1970, 1, 3), None], "date", [172800, None]),
    "date-times": ([datetime.datetime(1970, 1, 1, 0, 1), None], "date", [60, None]),
    "ISO dates": (["1970-01-03", "1970-01-02"], "date", [172800, 86400]),
    "ISO date-times": (["1970-01-01T00:01", "1970-01-01 00:00:02.5"], "date", [60, 2.5]),
    "ISO dates with zones": (["1970-01-01T01:00:00+01:00", "1970-01-01T01:00Z"], "date", [0, 3600]),
    "ISO dates and marks": (["1970-01-03", "unknown", ""], "date", [172800, None, None]),
    "times of day": ([datetime.time(1, 30), datetime.time(0)], "time", [5400, 0]),
    "times in text": (["1:30", "23:59:59", "-"], "time", [5400, 86399, None]),
    "towns": (["Ulm", "Bern", None, "Ulm"], "category", ["Bern", "Ulm"]),
    "codes with zeros": (["01", "02", "10"], "category", ["01", "02", "10"]),
    "codes with letters": (["A4", "A5", "4"], "category", ["4", "A4", "A5"]),
    "several currencies": (["EUR 5", "USD 5"], "category", ["EUR 5", "USD 5"]),
    "numbers and one text": (["5", "6", "n/k"], "category", ["5", "6", "n/k"]),
    "percent beside shares": (["12 %", "0.12"], "category", ["0.12", "12 %"]),
    "dates that are not ISO": (["31.12.2024", "1.2.2024"], "category", ["1.2.2024", "31.12.2024"]),
    "months": (["2020-01", "2020-02"], "category", ["2020-01", "2020-02"]),
    "unknown in text": (["Ulm", "unknown", "-"], "category", ["-", "Ulm", "unknown"]),
    "sentences": ([*MANY, "new a"], "text", None),
    "keys": ([f"A-{i:04d}" for i in range(60)], "unused", None),
    "nothing": ([None, None], "empty", None),
}


def column_of(values: list[Any], **options: Any) -> Column:
    table = pd.DataFrame({"n": range(len(values)), "c": pd.Series(values, dtype=object)})
    return TableEncoder.fit(table, **options).columns[1]


def seconds_or_numbers(column: Column, values: list[Any]) -> np.ndarray:
    """What the values are read as: the numbers, or the first feature of dates and times."""
    table = pd.DataFrame({"c": pd.Series(values, dtype=object)})
    from nkcme.tables.columns import Table

    numbers = column.numbers(Table.read(table, "X").column(0))[:, 0]
    return numbers * {"date": 86_400.0, "time": 3600.0}.get(column.kind, 1.0)


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_of_column_is_read(name: str) -> None:
    values, kind, expected = KINDS[name]
    column = column_of(values)
    assert column.kind == kind
    if kind == "category":
        assert list(column.categories) == expected
    elif expected is not None:
        read = seconds_or_numbers(column, values)
        np.testing.assert_allclose(read, np.array(expected, float), rtol=1e-12, atol=1e-6)


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_of_column_is_saved_and_encodes_alike(name: str) -> None:
    values = KINDS[name][0]
    table = pd.DataFrame({"n": range(len(values)), "c": pd.Series(values, dtype=object)})
    encoder = TableEncoder.fit(table, standardize="robust")
    loaded = TableEncoder.from_config(json.loads(json.dumps(encoder.to_config())))
    assert loaded == encoder
    together = encoder.transform(table)
    assert np.isfinite(together).all()
    one_by_one = [loaded.transform(table[i : i + 1])[0] for i in range(len(values))]
    np.testing.assert_array_equal(np.array(one_by_one), together)


@frames
def test_dates_of_every_frame_are_encoded_as_their_text(frame: Any) -> None:
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(9 * i) for i in range(50)]
    typed = frame({"day": [*days, None]})
    text = frame({"day": [*map(str, days), None]})
    encoder = TableEncoder.fit(typed)
    np.testing.assert_allclose(encoder.transform(text), encoder.transform(typed), atol=1e-6)
    assert TableEncoder.fit(text).columns[0].features == encoder.columns[0].features


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"w": pd.to_datetime(["2020-01-01 01:00", "2020-06-01 01:00"], utc=True)}),
        pd.DataFrame(
            {"w": pd.to_datetime(["2020-01-01 02:00", "2020-06-01 02:00"]).tz_localize("Etc/GMT-1")}
        ),
        pl.DataFrame({"w": [datetime.datetime(2020, 1, 1, 1), datetime.datetime(2020, 6, 1, 1)]}),
        pa.table({"w": [datetime.datetime(2020, 1, 1, 1), datetime.datetime(2020, 6, 1, 1)]}),
    ],
    ids=["utc", "zone", "polars", "pyarrow"],
)
def test_times_are_those_of_utc(table: Any) -> None:
    column = TableEncoder.fit(table).columns[0]
    assert column.kind == "date"
    assert column.features[0].name == "elapsed days"


def test_calendar_features_are_those_of_known_days() -> None:
    """Saturday 29 February 2020 at 6:00: a quarter of the day, 5 of 7 days after Monday."""
    days = pd.date_range("2019-01-01 06:00", "2021-01-01", freq="7h")
    encoder = TableEncoder.fit(pd.DataFrame({"at": days}), standardize=False)
    names = [str(feature.name) for feature in encoder.columns[0].features]
    outputs = encoder.transform(pd.DataFrame({"at": ["2020-02-29 06:00"]}))[0]
    found = dict(zip(names, outputs.tolist(), strict=True))
    assert found["elapsed days"] == 18321.25
    assert found["day of month"] == 29
    assert found["weekend"] == 1
    assert found["day sine"] == pytest.approx(1)
    assert found["day cosine"] == pytest.approx(0, abs=1e-6)
    thursdays = (18321 % 7) / 7  # 1970 began on a Thursday
    assert found["weekday sine"] == pytest.approx(np.sin(2 * np.pi * thursdays), abs=1e-6)
    year = 2 * np.pi * (18321.25 / 365.2425 % 1)
    assert found["year cosine"] == pytest.approx(np.cos(year), abs=1e-5)


@pytest.mark.parametrize(
    ("n_days", "expected"),
    [
        (5, ["elapsed days"]),
        (20, ["elapsed days", "weekday sine", "weekday cosine", "weekend"]),
        (400, ["elapsed days", "year sine", "year cosine", "day of month"]),
    ],
)
def test_a_cycle_is_used_where_the_dates_span_it(n_days: int, expected: list[str]) -> None:
    days = pd.date_range("2020-01-01", periods=n_days)
    (column,) = TableEncoder.fit(pd.DataFrame({"day": days})).columns
    assert [feature.name for feature in column.features][: len(expected)] == expected
    assert all(feature.name != "day sine" for feature in column.features)  # all at midnight


def test_one_output_marks_missing_dates() -> None:
    encoder = TableEncoder.fit(pd.DataFrame({"day": ["2020-01-01", "2022-01-02", None]}))
    outputs = encoder.transform(pd.DataFrame({"day": [None]}))[0]
    assert outputs.tolist() == [0.0, 1.0] + [0.0] * (encoder.n_outputs - 2)


def test_text_of_many_levels_has_its_words_hashed() -> None:
    column = column_of([*MANY, "new a"])
    assert column.n_outputs == 50 + N_HASHED
    encoder = TableEncoder((column,))
    known, other, unseen = encoder.transform([["new a"], ["a NEW"], ["blue z"]])
    np.testing.assert_array_equal(known[50:], other[50:])  # the same words
    assert known[:50].sum() == 1
    assert not unseen[:50].any()
    assert unseen[50:].any()


def test_repeated_rows_and_weights_agree_on_what_is_a_key() -> None:
    keys = [f"k{i}" for i in range(60)]
    once, twice = pd.DataFrame({"k": keys, "n": 1.0}), pd.DataFrame({"k": keys * 2, "n": 1.0})
    assert TableEncoder.fit(once).columns[0].kind == "unused"
    doubled = TableEncoder.fit(once, sample_weight=np.full(60, 2.0))
    assert doubled == TableEncoder.fit(twice)
    assert doubled.columns[0].kind == "text"


def test_an_unused_column_may_be_absent_or_hold_anything() -> None:
    table = pd.DataFrame({"key": [f"k{i}" for i in range(60)], "n": np.arange(60.0)})
    encoder = TableEncoder.fit(table)
    expected = encoder.transform(table)
    assert expected.shape == (60, 1)
    np.testing.assert_array_equal(encoder.transform(table[["n"]]), expected)
    np.testing.assert_array_equal(encoder.transform(table.assign(key=1.0)), expected)


# --- chosen types


@pytest.mark.parametrize(
    ("values", "wanted", "kind", "notation"),
    [
        ([1, 2, 3], "category", "category", ""),
        (["a b", "c d"], "text", "text", ""),
        (["31.12.2024", "1.2.24"], "date", "date", "day-month-year"),
        (["12/31/2024", "1/2/2024"], "date", "date", "month-day-year"),
        (["31/12/2024 12:30", "1/2/2024 0:00"], "date", "date", "day-month-year"),
        (["2024/12/31", "2024/1/2"], "date", "date", "year-month-day"),
        ([20241231, 20240102], "date", "date", "yyyymmdd"),
        (["20241231", "20240102"], "date", "date", "yyyymmdd"),
        (["01", "02"], "number", "numeric", "."),
        ([0, 1], "boolean", "boolean", ""),
        (["2024-01-31", "2024-02-01"], "category", "category", ""),
        (["x", "y"], "drop", "unused", ""),
    ],
)
def test_types_can_be_chosen(values: list[Any], wanted: str, kind: str, notation: str) -> None:
    column = column_of(values, types={"c": wanted})
    assert (column.kind, column.notation) == (kind, notation)
    if kind == "date" and "30" not in str(values[0]):
        days = seconds_or_numbers(column, values) / 86400
        np.testing.assert_array_equal(days[:1], [np.datetime64("2024-12-31").astype(int)])


@pytest.mark.parametrize(
    ("values", "wanted", "words"),
    [
        (["5", "tall"], "number", ["'c'", "numbers", "'tall' in row 1"]),
        (["2024-01-31", "spring"], "date", ["dates", "'spring' in row 1"]),
        (["1/2/2024", "3/4/2024"], "date", ["day-month-year or month-day-year", "2024-01-31"]),
        (["yes", "perhaps"], "boolean", ["booleans", "'perhaps' in row 1"]),
        ([1.5, 2.5], "date", ["dates", "1.5 in row 0"]),
        (["25:00", "1:00"], "time", ["times of day", "'25:00' in row 0"]),
    ],
)
def test_a_type_that_does_not_fit_is_refused(
    values: list[Any], wanted: str, words: list[str]
) -> None:
    table = pd.DataFrame({"c": pd.Series(values, dtype=object)})
    message = refusal(TableEncoder.fit, table, types={"c": wanted})
    for word in words:
        assert word in message


def test_types_of_columns_that_are_not_there_and_no_columns_are_refused() -> None:
    table = pd.DataFrame({"a": [1.0, 2.0]})
    assert "'b'" in refusal(TableEncoder.fit, table, types={"b": "date"})
    assert "no column of X is used" in refusal(TableEncoder.fit, table, types={"a": "drop"})
    by_position = TableEncoder.fit([[1.0], [2.0]], types={0: "category"})
    assert by_position.columns[0].categories == ("1", "2")


def test_the_decimal_mark_of_training_is_kept_for_new_text() -> None:
    encoder = TableEncoder.fit(pd.DataFrame({"c": ["1.200,5", "3"]}), standardize=False)
    np.testing.assert_array_equal(encoder.transform(pd.DataFrame({"c": ["1.200"]})), [[1200.0]])
    message = refusal(encoder.transform, pd.DataFrame({"c": ["1.20"]}))
    assert "held numbers in training but has '1.20' in row 0" in message


def test_a_column_of_dates_refuses_other_values_and_takes_other_types_of_dates() -> None:
    encoder = TableEncoder.fit(pd.DataFrame({"day": ["2020-01-01", "2020-03-01"]}))
    expected = encoder.transform(pd.DataFrame({"day": ["2020-02-01"]}))
    for same in (datetime.date(2020, 2, 1), np.datetime64("2020-02-01"), "2020-02-01T00:00Z"):
        table = pd.DataFrame({"day": pd.Series([same], dtype=object)})
        np.testing.assert_array_equal(encoder.transform(table), expected)
    message = refusal(encoder.transform, pd.DataFrame({"day": ["2020-02-01", "later"]}))
    assert "held dates in training but has 'later' in row 1" in message
    assert "dates" in refusal(encoder.transform, pd.DataFrame({"day": [5.0]}))
