"""Tables as people have them on the command line: options, standard input, groups and time."""

import io
import json
import sys

import numpy as np
import pandas as pd
import pytest

import nkcme
from nkcme.cli.training_rows import TableColumns, TrainingRows, read_training_rows
from nkcme.datasets import load_apartments
from nkcme.tables.table_options import UNKNOWN

QUICK = ("--estimator", "KernelCME")


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    """A semicolon-separated file with decimal commas, and a row without a price."""
    path = tmp_path_factory.mktemp("messy") / "apartments.csv"
    frame = load_apartments(120).messy
    frame.loc[3, "price"] = "-"
    frame["share"] = 1
    frame["block"] = frame["district"]
    frame.to_csv(path, index=False, sep=";", encoding="cp1252")
    return path


COMMAND = ("--target", "price", "--encoding", "cp1252", "--drop-missing-target", *QUICK)


def test_fit_shows_how_each_column_is_read_and_its_doubts(messy, tmp_path, call):
    options = ("--types", "age=category,rooms=number", "--drop", "heating", "--weights", "share")
    out, err = call("fit", messy, *COMMAND, *options, "--out", tmp_path / "m", "--json")
    assert "as separated by ';' and with decimal commas" in err
    assert "left out 1 of 120 rows without 'price'" in err
    assert "How each column is read" in err
    assert "doubt: 'id' has a different text" in err
    result = json.loads(out)
    kinds = {column["name"]: column["kind"] for column in result["read"]}
    assert "share" not in kinds
    expected = {"sold": "date", "land": "number", "age": "category", "heating": "unused"}
    assert {name: kinds[name] for name in expected} == expected
    model = nkcme.load(tmp_path / "m")
    assert model.columns == {"age": "category", "rooms": "number", "heating": "drop"}
    assert model.columns_["sold"].kind == "date"
    # New rows need neither what is unused nor the weights.
    new = load_apartments(5, seed=1).X.drop(columns="heating").assign(block="Ost")
    new.to_parquet(tmp_path / "new.parquet")
    answer = json.loads(call("predict", tmp_path / "m", tmp_path / "new.parquet", "--json")[0])
    means = [row["mean"] for row in answer["predictions"]]
    np.testing.assert_allclose(means, model.predict(new), rtol=1e-6)


def test_standard_input_is_a_table(messy, tmp_path, monkeypatch, call):
    def stdin(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    stdin(messy.read_bytes())
    call("fit", "-", *COMMAND, "--out", tmp_path / "m")
    frame = load_apartments(4, seed=1).messy.assign(share=1.0, block="Ost")
    stdin(frame.to_csv(index=False).encode())
    from_text = call("predict", tmp_path / "m", "-")[0]
    buffer = io.BytesIO()
    frame.to_excel(buffer, index=False)
    stdin(buffer.getvalue())
    assert call("predict", tmp_path / "m", "-")[0] == from_text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--sep", ";;"), "--sep must be one character"),
        (("--decimal", "x"), "--decimal must be . or ,"),
        (("--encoding", "no-such"), "--encoding must be"),
        (("--types", "age"), "--types must be types by column"),
        (("--types", "age=colour"), "must be one of number, boolean"),
        (("--group", "a", "--time", "b"), "give one of them"),
    ],
)
def test_bad_options_are_refused(messy, tmp_path, refuse, options, words):
    assert words in refuse("fit", messy, *COMMAND, *options, "--out", tmp_path / "m")


def test_another_encoding_is_asked_for(messy, tmp_path, refuse):
    message = refuse("fit", messy, "--target", "price", "--out", tmp_path / "m")
    assert "--encoding cp1252" in message


def test_marks_of_missing_values_can_be_added(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,town,price\n1,Ulm,1\n-999,n/k,2\n3,Bern,3\n")
    from nkcme.tables.files import read_table
    from nkcme.tables.table_options import TableOptions

    frame = read_table(path, options=TableOptions.of_text(None, None, None, "-999,n/k"))
    assert frame["x"].isna().tolist() == [False, True, False]
    assert frame["town"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("content", "separator", "column"),
    [
        ("x;price\n1,5;2\n2,25;3\n", ";", [1.5, 2.25]),
        ("x|price\n1.5|2\n2.25|3\n", "|", [1.5, 2.25]),
        ("x\tprice\n1.5\t2\n2.25\t3\n", "\t", [1.5, 2.25]),
        ('x,price\n"1,5",2\n"2,25",3\n', ",", [1.5, 2.25]),
        ("x;price\n1.200;2,5\n2;3\n", ";", [1200, 2]),
        ("x;price\n0.5;2\n1.200;3\n", ";", [0.5, 1.2]),
    ],
)
def test_separators_and_decimal_marks_are_found(content, separator, column, tmp_path):
    from nkcme.tables.encoding import TableEncoder

    path = tmp_path / "t.csv"
    path.write_text(content)
    notes = []
    rows = read_training_rows(path, TableColumns("price"), UNKNOWN, notes.append)
    encoder = TableEncoder.fit(rows.X, standardize=False)
    np.testing.assert_allclose(encoder.transform(rows.X)[:, 0], column)
    assert (separator == ",") or repr(separator) in notes[0]


# --- groups and time


def test_whole_groups_and_the_last_times_are_held_out():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 30, 300)
    X = pd.DataFrame({"row": np.arange(300)})
    rows = TrainingRows(X, rng.normal(size=300), groups=group)
    train, test = rows.split(0.2, seed=0)
    assert not set(train.groups) & set(test.groups)
    assert 40 <= len(test.y) <= 80
    times = rng.permutation(300).astype(float)
    train, test = TrainingRows(X, rows.y, times=times).split(0.2, seed=0)
    assert len(test.y) == 60
    assert train.times.max() < test.times.min()
    np.testing.assert_array_equal(times[test.X["row"]], test.times)


def test_columns_of_groups_and_weights_are_no_features_and_that_of_time_is(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("who,at,w,x,y\na,2020-01-01,1,1,1\nb,2020-01-02,2,2,2\na,2020-01-03,1,3,3\n")
    by_group = read_training_rows(path, TableColumns("y", "w", "who"), UNKNOWN, print)
    assert list(by_group.X.columns) == ["at", "x"]
    assert by_group.groups.tolist() == ["a", "b", "a"]
    assert by_group.weight.tolist() == [1, 2, 1]
    by_time = read_training_rows(path, TableColumns("y", time="at"), UNKNOWN, print)
    assert list(by_time.X.columns) == ["who", "at", "w", "x"]
    assert np.diff(by_time.times).tolist() == [86400, 86400]


@pytest.mark.parametrize("option", ["--group", "--time"])
def test_the_default_is_fitted_with_folds_of_groups_or_time(option, tmp_path, monkeypatch, call):
    from nkcme.estimators.nkcme import folds

    seen = []
    monkeypatch.setattr(folds.Folds, "of", lambda data, *_: seen.append(data.groups) or 1 / 0)
    frame = pd.DataFrame({"g": np.arange(80) // 8, "x": np.linspace(0, 1, 80)}).assign(y=1.5)
    frame["y"] += np.sin(np.arange(80))
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ZeroDivisionError):
        call("fit", tmp_path / "t.csv", "--target", "y", option, "g", "--out", tmp_path / "m")
    (groups,) = seen
    assert len(groups.codes) == 72
    assert (len(np.unique(groups.codes)), groups.by_time) == (9, option == "--time")
