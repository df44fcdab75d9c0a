"""Categories that the model does not know: matched by value where possible, else counted."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nkcme.errors import UnknownCategoryWarning
from nkcme.tables.column_encoding import MAX_CATEGORIES
from nkcme.tables.encoding import TableEncoder
from support.frames import frames


def fitted_on(*values: Any) -> TableEncoder:
    """An encoder of one column of categories."""
    return TableEncoder.fit(frame_of(*values), types={"code": "category"})


def frame_of(*values: Any) -> pd.DataFrame:
    return pd.DataFrame({"code": np.array(values, dtype=object)})


def codes(encoder: TableEncoder, table: Any) -> list[str | None]:
    """The category that each row is encoded as, None for none."""
    (column,) = encoder.columns
    outputs = encoder.transform(table)
    return [column.categories[row.argmax()] if row.any() else None for row in outputs]


@pytest.mark.parametrize(
    ("trained_on", "new", "matched"),
    [
        (("TRUE", "maybe"), (True, "True", "true"), ["TRUE"] * 3),
        (("True", "False", "no"), ("TRUE", "false", "no"), ["True", "False", "no"]),
        (("1", "2", "x"), (1, 1.0, "1.0", "2."), ["1", "1", "1", "2"]),
        (("1.0", "2.0", "x"), (1, 2.0, np.int8(1)), ["1.0", "2.0", "1.0"]),
        (("1", "1.0", "x"), ("1", "1.0", 1.0), ["1", "1.0", "1"]),
    ],
)
def test_equal_values_of_another_type_or_spelling_match(trained_on, new, matched):
    assert codes(fitted_on(*trained_on), frame_of(*new)) == matched


def test_an_ambiguous_spelling_matches_nothing():
    assert codes(fitted_on("TRUE", "True", "no"), frame_of("true", "no", "no")) == [
        None,
        "no",
        "no",
    ]


def test_leading_zeros_are_part_of_a_code():
    encoder = fitted_on("01", "02", "A4")
    assert codes(encoder, frame_of("A4", "01", "02", "1")) == ["A4", "01", "02", None]
    with pytest.warns(UnknownCategoryWarning, match="2 of 2 rows of 'code'"):
        assert codes(encoder, frame_of(1, 2)) == [None, None]


@frames
def test_unknown_categories_are_counted_by_column(frame: Any) -> None:
    encoder = TableEncoder.fit(frame({"n": [1.0, 2.0], "a": ["x", "y"], "b": ["u", "v"]}))
    table = frame({"n": [1.0] * 5, "a": ["x", "z", None, "w", "y"], "b": ["u", "v", "u", "v", "u"]})
    (unknown,) = encoder.unknown_categories(table)
    assert str(unknown) == (
        "2 of 4 rows of 'a' hold categories unknown to the model, such as 'z': they count as none "
        "of the known ones"
    )


def test_a_column_without_a_name_is_counted_by_its_position():
    (unknown,) = TableEncoder.fit([["x"], ["y"]]).unknown_categories([["z"]])
    assert "1 of 1 rows of column 0 of X" in str(unknown)


@pytest.mark.parametrize(
    ("values", "warns"),
    [
        (["z"], False),  # a single row of an unseen category is normal
        (["z", "x", "y"], False),
        (["z", "z", "x", "y"], False),
        (["z", "w", "x"], True),
        (["z", "z", None, None, None], True),
        ([None, None], False),
    ],
)
def test_a_warning_is_given_when_more_than_half_of_a_column_is_unknown(values, warns):
    encoder, table = fitted_on("x", "y", None), frame_of(*values)
    if warns:
        with pytest.warns(UnknownCategoryWarning, match="such as 'z'"):
            encoder.transform(table)
    else:
        encoder.transform(table)  # a warning would be an error


def test_no_warning_where_most_training_rows_had_rare_categories():
    """Such as names of customers: a table of rare ones is what training looked like."""
    names = [f"name {i}" for i in range(4 * MAX_CATEGORIES)]
    encoder = fitted_on(*names)
    assert encoder.columns[0].rare_share == 0.75
    encoder.transform(frame_of("nobody", "neither"))
    assert len(list(encoder.unknown_categories(frame_of("nobody", "neither")))) == 1


@pytest.mark.parametrize("n_categories", [MAX_CATEGORIES - 1, MAX_CATEGORIES, MAX_CATEGORIES + 1])
def test_the_share_of_rare_categories_is_saved(n_categories):
    encoder = fitted_on(*(f"c{i}" for i in range(n_categories)))
    config = json.loads(json.dumps(encoder.to_config()))
    assert TableEncoder.from_config(config) == encoder
    # Without rare ones the description is that of earlier versions, which can read it.
    assert ("rare_share" in config["columns"][0]) == (n_categories >= MAX_CATEGORIES)


@pytest.mark.parametrize("n_categories", [2, MAX_CATEGORIES])
def test_files_of_earlier_versions_load_without_the_share_of_rare_categories(n_categories):
    encoder = fitted_on(*(f"c{i:02d}" for i in range(n_categories)))
    config = encoder.to_config()
    config["columns"][0].pop("rare_share", None)
    loaded = TableEncoder.from_config(config)
    table = frame_of("c00", "c01", "other")
    np.testing.assert_array_equal(loaded.transform(table), encoder.transform(table))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded.transform(frame_of("other", "others"))
    # With all places taken the training table may have had any number of rare ones.
    assert len(caught) == (n_categories < MAX_CATEGORIES)


@pytest.mark.parametrize("share", [-0.1, 1.1, None, "0", True, float("nan")])
def test_a_damaged_share_of_rare_categories_is_refused(share):
    config = fitted_on(*(f"c{i}" for i in range(MAX_CATEGORIES + 1))).to_config()
    config["columns"][0]["rare_share"] = share
    with pytest.raises(ValueError, match="'rare_share' of column 0"):
        TableEncoder.from_config(config)
