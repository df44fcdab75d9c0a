"""Rows as dicts, and arrays of numbers, are encoded as the same rows in a frame."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkcme.tables.encoding import TableEncoder


def training_table(n=40):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "x": rng.normal(3.0, 2.0, n),
            "count": rng.integers(0, 9, n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "sold": rng.random(n) < 0.5,
            "constant": 7.0,
            "empty": None,
        }
    )
    table.loc[3, "x"] = np.nan
    return table


numbers = st.none() | st.floats(allow_infinity=False) | st.integers(-(2**60), 2**60)
records = st.fixed_dictionaries(
    {
        "x": numbers,
        "count": numbers,
        "colour": st.sampled_from(["red", "green", "blue"]),
        "sold": st.booleans(),
        "constant": numbers,
        "empty": st.just(None),
    }
)


@pytest.mark.parametrize("standardize", [True, False, "robust"])
@given(rows=st.lists(records, min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_plain_rows_are_encoded_as_in_a_frame(standardize, rows):
    encoder = TableEncoder.fit(training_table(), standardize=standardize)
    frame = pd.DataFrame(
        {name: pd.Series([r[name] for r in rows], dtype=object) for name in rows[0]}
    )
    np.testing.assert_array_equal(encoder.transform_records(rows), encoder.transform(frame))


@pytest.mark.parametrize(
    "change",
    [
        {"x": "tall"},
        {"x": float("inf")},
        {"x": 10**400},
        {"x": [1.0]},
        {"colour": "mauve"},
        {"colour": None},
        {"colour": 1},
        {"colour": ["red"]},
        {"more": 1},
    ],
    ids=str,
)
def test_other_rows_are_left_to_transform(change):
    encoder, row = TableEncoder.fit(training_table()), training_table().iloc[0].to_dict()
    row = {k: v.item() if isinstance(v, np.generic) else v for k, v in row.items()}
    assert encoder.transform_records([row]) is not None
    assert encoder.transform_records([row | change]) is None
    assert encoder.transform_records([{"x": 1.0}]) is None


@pytest.mark.parametrize("standardize", [True, False])
def test_an_array_is_encoded_as_a_list_of_rows(standardize):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 3)) * [1.0, 1e3, 0.0]
    x[2, 0] = np.nan
    encoder = TableEncoder.fit(x, standardize=standardize)
    new = x[::-1] * 2.0
    np.testing.assert_array_equal(encoder.transform(new), encoder.transform(new.astype(object)))
