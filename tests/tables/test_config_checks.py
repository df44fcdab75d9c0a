"""What a model file holds about columns and target is checked."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from nkcme.errors import ModelFileError
from nkcme.tables.column_encoding import MAX_CATEGORIES, Column
from nkcme.tables.encoding import TableEncoder
from nkcme.tables.target import TargetScaler
from support.frames import MIXED

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


def test_the_number_of_outputs_of_a_column() -> None:
    assert Column("a", "numeric").n_outputs == 1
    assert Column("a", "category", categories=("x", "y"), has_missing=True).n_outputs == 3
