"""How each column was read, as a table; and the doubts."""

import numpy as np
import pandas as pd
import pytest

from nkcme.tables.encoding import TableEncoder
from nkcme.tables.table_summary import TableSummary

N = 60
RNG = np.random.default_rng(0)
Y = RNG.normal(size=N)


def summary_of(types=None, y=Y, **columns):
    X = pd.DataFrame(columns)
    return TableSummary.of(X, TableEncoder.fit(X, types=types), y[:, None], types)


DAYS = pd.date_range("2024-01-05", periods=N, freq="3D")

#: A column, and words of the doubt about it; None for a column without doubts.
DOUBTS = {
    "key text": ([f"K{i}" for i in range(N)], "a different text in each of 60 rows"),
    "row numbers": (np.arange(N) + 7, "a different whole number in every row"),
    "constant number": (np.ones(N), "is constant"),
    "constant text": (["a"] * N, "is constant"),
    "empty": ([None] * N, "has no value"),
    "long text": ([f"{i} {i % 7} of many" for i in range(N)], "60 levels in 60 rows"),
    "German dates": (DAYS.strftime("%d.%m.%Y"), "looks like dates"),
    "compact dates": (np.resize(DAYS[:30].strftime("%Y%m%d").astype(int), N), "looks like dates"),
    "a stray": ([*(f"{i % 9}" for i in range(N - 1)), "n/k"], "numbers but for 'n/k'"),
    "either mark": (["1,200", "3,400"] * (N // 2), "read as 1200"),
    "the target": (Y, "gives the target away"),
    "its order": (np.exp(-Y), "gives the target away"),
    "numbers": (RNG.normal(size=N), None),
    "counts": (RNG.integers(0, 9, N), None),
    "dates": (DAYS, None),
    "towns": (["Ulm", "Bern", "Rome"] * (N // 3), None),
    "yes and no": (["yes", "no"] * (N // 2), None),
    "codes": (["01", "02", "03"] * (N // 3), None),
}


@pytest.mark.parametrize("name", DOUBTS)
def test_doubts_are_voiced(name):
    values, words = DOUBTS[name]
    doubts = summary_of(other=RNG.normal(size=N), c=values).doubts
    if words is None:
        assert doubts == ()
    else:
        (doubt,) = doubts
        assert doubt.startswith("'c' ")
        assert words in doubt
        assert "\n" not in doubt


def test_levels_that_determine_the_target_are_doubted():
    town = np.resize(["Ulm", "Bern", "Rome"], N)
    prices = pd.Series(town).map({"Ulm": 1e6, "Bern": 2e6, "Rome": 5e6}).to_numpy()
    (doubt,) = summary_of(town=town, y=prices).doubts
    assert "levels determine the target" in doubt


def test_a_chosen_type_is_not_doubted():
    values = [f"K{i}" for i in range(N)]
    n = RNG.normal(size=N)
    assert summary_of({"c": "drop"}, n=n, c=values).doubts == ()
    assert summary_of({"c": "date"}, n=n, c=DAYS.strftime("%d.%m.%Y")).doubts == ()


def test_the_summary_is_a_table():
    text = str(
        summary_of(
            sold=[*DAYS.strftime("%Y-%m-%d")[1:], None],
            rent=["1.200,5 EUR", "-", "900 EUR"] * (N // 3),
            town=["Ulm", "Bern"] * (N // 2),
        )
    )
    assert text.splitlines() == [
        "column  kind      levels  missing  becomes",
        "sold    date              1        elapsed days, day of month, weekday, weekend (from "
        "text, iso), missing marked",
        "rent    number            20       number (from text with decimal comma, eur), missing "
        "marked",
        "town    category  2       0        2 levels",
    ]


def test_columns_are_found_by_name_and_position_and_loaded_ones_have_no_counts():
    summary = summary_of(a=RNG.normal(size=N), b=["x", "y"] * (N // 2))
    assert summary["b"] == summary[1]
    assert len(summary) == 2
    encoder = TableEncoder.fit(pd.DataFrame({"b": ["x", "y"]}))
    (loaded,) = TableSummary.of_encoder(encoder)
    assert (loaded.kind, loaded.missing, loaded.becomes) == ("category", None, "2 levels")
