"""Tables of dicts, and what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nkcme import runtime
from nkcme.errors import ModelFileError, NkcmeError, TableError
from support.refusals import refusal

MODELS = Path(__file__).parents[1] / "data" / "saved_models"
X = pd.read_csv(MODELS / "X.csv")


@pytest.fixture(scope="module")
def model():
    return runtime.load(MODELS / "nkcme-auto")


@pytest.mark.parametrize(
    "rows",
    [
        X.to_dict("records"),
        X.to_dict("list"),
        {name: X[name].to_numpy() for name in X},
        {name: X[name] for name in X},
        X[["flag", "c", "b", "a"]],
        X.to_numpy(),
        X.to_numpy().tolist(),
    ],
    ids=["records", "lists", "arrays", "series", "frame", "array", "rows"],
)
def test_tables_of_any_kind_give_the_same_predictions(rows, model):
    np.testing.assert_array_equal(model.predict(rows), model.predict(X))


def test_one_row_and_absent_values(model):
    row = X.iloc[0].to_dict()
    np.testing.assert_array_equal(model.predict(row), model.predict(X[:1]))
    without = [row, {k: v for k, v in row.items() if k != "a"}]
    with_none = [row, row | {"a": None}]
    np.testing.assert_array_equal(model.predict(without), model.predict(with_none))


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({}, "empty dict"),
        ({"a": []}, "empty"),
        ({"a": [1.0], "b": ["x", "y"]}, "different lengths"),
        ({"a": [1.0], "b": "x"}, "one value"),
        ({"a": np.ones((2, 2))}, "2 dimensions"),
        ([{"a": 1.0}, 3], "a dict for each row"),
        ({1: [2.0]}, "not text"),
        ({"a": 1.0}, "lacks columns 'b', 'c', 'flag'"),
        (X.iloc[0].to_dict() | {"z": 1}, "has the unknown column 'z'"),
    ],
    ids=str,
)
def test_bad_tables_are_refused_in_one_line(table, why, model):
    assert why in refusal(model.predict, table, error=TableError)


def test_herding_needs_the_full_library(model):
    assert "nkcme.load" in refusal(lambda: model.sample(X, 2, method="herd"), error=NkcmeError)
    assert "method must be" in refusal(lambda: model.sample(X, 2, method="x"), error=NkcmeError)


def test_it_describes_itself(model):
    assert repr(model) == "RuntimeModel(NKCME, 4 columns)"


def test_no_model_there(tmp_path):
    assert "expected a model directory" in refusal(
        runtime.load, tmp_path / "none", error=ModelFileError
    )
