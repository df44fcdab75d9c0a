"""`nkcme predict`: the columns it writes, how it reads new tables, and bad input."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import nkcme
from support.houses import make_table


def test_predict_writes_the_requested_columns(model, table, tmp_path, call):
    command = ("predict", model, table, "--quantiles", ".05,0.5,0.95", "--interval", 0.9)
    out, err = call(*command, "--samples", 2)
    assert err == "nkcme: ignored column 'price', which the model was not fitted on\n"
    (tmp_path / "out.csv").write_text(out)
    predicted = pd.read_csv(tmp_path / "out.csv")
    assert list(predicted) == (
        ["mean", "q0.05", "q0.5", "q0.95", "lower_0.9", "upper_0.9", "sample_1", "sample_2"]
    )
    assert len(predicted) == 60
    assert predicted.notna().all(axis=None)
    assert (predicted["q0.05"] <= predicted["q0.5"]).all()
    np.testing.assert_allclose(predicted["lower_0.9"], predicted["q0.05"])
    X = make_table().drop(columns="price")
    np.testing.assert_allclose(predicted["mean"], nkcme.load(model).predict(X))


@pytest.mark.parametrize(("name", "read"), [("o.csv", pd.read_csv), ("o.parquet", pd.read_parquet)])
def test_predict_writes_files(name, read, model, table, tmp_path, call):
    assert call("predict", model, table, "-o", tmp_path / name)[0] == ""
    assert list(read(tmp_path / name)) == ["mean"]


def test_samples_follow_the_seed(model, table, call):
    drawn = [call("predict", model, table, "--samples", 3, "--seed", seed)[0] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_columns_are_matched_by_name(model, table, tmp_path, call, refuse):
    frame = make_table().drop(columns="price")
    mixed = frame[["sold", "colour", "x"]].assign(id=range(60), note="-")
    mixed.to_parquet(tmp_path / "mixed.parquet")
    out, err = call("predict", model, tmp_path / "mixed.parquet")
    assert err == "nkcme: ignored columns 'id', 'note', which the model was not fitted on\n"
    assert out == call("predict", model, table)[0]

    frame.drop(columns=["x", "sold"]).to_csv(tmp_path / "poor.csv", index=False)
    line = refuse("predict", model, tmp_path / "poor.csv")
    assert "lacks columns 'x', 'sold'" in line


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_unknown_categories_are_counted_in_a_note(name, model, tmp_path, call):
    frame = make_table().drop(columns="price")
    frame.loc[:19, "colour"] = "mauve"
    write = frame.to_csv if name == "t.csv" else frame.to_parquet
    write(tmp_path / name, index=False)
    out, err = call("predict", model, tmp_path / name)
    assert err == (
        "nkcme: 20 of 60 rows of 'colour' hold categories unknown to the model, such as 'mauve': "
        "they count as none of the known ones\n"
    )
    assert len(out.splitlines()) == 61
    write = frame.assign(colour="mauve").to_csv  # where Python code would get a warning
    write(tmp_path / "t.csv", index=False)
    _, err = call("predict", model, tmp_path / "t.csv")
    assert "60 of 60 rows of 'colour'" in err
    assert err.count("\n") == 1


def test_a_stray_text_in_a_numeric_column_is_refused_with_its_place(model, tmp_path, refuse):
    frame = make_table().drop(columns="price")
    frame["x"] = frame["x"].astype(object)
    frame.loc[7, "x"] = "tall"
    frame.to_csv(tmp_path / "t.csv", index=False)
    line = refuse("predict", model, tmp_path / "t.csv")
    assert "column 'x' of X held numbers in training but has 'tall' in row 7" in line


@pytest.fixture(scope="module")
def coded(tmp_path_factory):
    """A table of codes and flags that pandas would read as numbers and booleans, were it not for
    a few other values; the y of each row follows from them."""
    rng = np.random.default_rng(0)
    code, flag = rng.choice(["01", "02", "A4"], 120), rng.choice(["TRUE", "FALSE", "maybe"], 120)
    y = 100.0 * (code == "01") + 10.0 * (flag == "TRUE") + rng.normal(size=120)
    path = tmp_path_factory.mktemp("coded") / "all.csv"
    pd.DataFrame({"code": code, "flag": flag, "y": y}).to_csv(path, index=False)
    return path


def means(printed):
    return np.array(printed.splitlines()[1:], dtype=np.float64)


def test_a_new_file_is_parsed_as_the_training_file_was(coded, tmp_path, call):
    """A file of plain codes and flags gives the predictions of the same rows among the others."""
    call("fit", coded, "--target", "y", "--out", tmp_path / "m", "--estimator", "KernelCME")
    header, *rows = coded.read_text().splitlines()
    plain = [i for i, row in enumerate(rows) if "A4" not in row and "maybe" not in row]
    (tmp_path / "plain.csv").write_text("\n".join([header, *(rows[i] for i in plain)]) + "\n")
    together = means(call("predict", tmp_path / "m", coded)[0])
    alone, notes = call("predict", tmp_path / "m", tmp_path / "plain.csv")
    # Not to the last bit: a matrix product may sum in another order for another number of rows.
    np.testing.assert_allclose(means(alone), together[plain], rtol=1e-6, atol=1e-6)
    assert notes == "nkcme: ignored column 'y', which the model was not fitted on\n"
    out, notes = call("evaluate", tmp_path / "m", tmp_path / "plain.csv", "--json")
    assert notes == ""
    assert json.loads(out)["metrics"]["rmse"] < 3


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--quantiles", "0.5,1.5"), "1.5"),
        (("--quantiles", "nan"), "between 0 and 1"),
        (("--quantiles", "0.5;0.9"), "commas"),
        (("--interval", "90"), "90"),
        (("--interval", "1"), "between 0 and 1"),
        (("-o", "no/such/directory/out.csv"), "no directory"),
        (("-o", "out.xlsx"), "extension"),
        (("-o", "/"), "extension"),
    ],
)
def test_bad_options_are_refused_before_the_model_is_loaded(options, why, tmp_path, refuse):
    assert why in refuse("predict", tmp_path / "no-model", tmp_path / "no-table.csv", *options)


@pytest.fixture(params=["absent", "a file", "empty", "truncated", "newer"])
def bad_model(request, model, tmp_path):
    path = tmp_path / "bad"
    if request.param == "a file":
        path.write_text("model")
    elif request.param == "empty":
        path.mkdir()
    elif request.param != "absent":
        path.mkdir()
        files = {file.name: file.read_bytes() for file in model.iterdir()}
        if request.param == "truncated":
            files["model.safetensors"] = files["model.safetensors"][:-100]
        else:
            config = json.loads(files["config.json"])
            files["config.json"] = json.dumps(config | {"format_version": 99}).encode()
        for name, content in files.items():
            (path / name).write_bytes(content)
    return path


@pytest.mark.parametrize("command", ["predict", "evaluate", "report", "info"])
def test_bad_models_are_refused_by_every_command(command, bad_model, table, tmp_path, refuse):
    arguments = {
        "predict": [table],
        "evaluate": [table],
        "report": [table, "-o", tmp_path / "r.html"],
        "info": [],
    }
    assert str(bad_model) in refuse(command, bad_model, *arguments[command])


def test_models_of_several_outputs_are_refused(table, monkeypatch, refuse):
    saved = SimpleNamespace(n_outputs=2)
    monkeypatch.setattr("nkcme.cli.loading.SavedModel.read", lambda path: saved)
    assert "2 outputs" in refuse("predict", "two", table)
