"""`nkcme evaluate`, `report` and `info`."""

import json
from dataclasses import replace

import numpy as np
import pytest

import nkcme
from nkcme.cli import display
from nkcme.cli.info import describe_model
from support.houses import make_table


def test_evaluate_prints_every_score_with_its_meaning(model, table, call):
    out, err = call("evaluate", model, table)
    assert err == ""
    assert "On 60 rows" in out
    for name in ("RMSE", "CRPS", "NLL", "QICE", "90% coverage", "90% width"):
        assert name in out
    assert "root mean squared error" in out


def test_evaluate_prints_json(model, table, call):
    result = json.loads(call("evaluate", model, table, "--json")[0])
    assert result["target"] == "price"
    scores = result["metrics"]
    assert scores["rows"] == 60
    frame = make_table()
    error = frame["price"] - nkcme.load(model).predict(frame.drop(columns="price"))
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))
    assert json.loads(call("evaluate", model, table, "--target", "price", "--json")[0]) == result


def test_evaluate_without_the_target_is_refused(model, table, tmp_path, refuse):
    make_table().drop(columns="price").to_csv(tmp_path / "t.csv", index=False)
    assert "'price'" in refuse("evaluate", model, tmp_path / "t.csv")
    nameless = nkcme.load(model)
    nameless.target_name_ = None
    nameless.save(tmp_path / "nameless")
    assert "--target" in refuse("evaluate", tmp_path / "nameless", table)


def test_models_fitted_on_arrays_take_columns_by_position(model, table, tmp_path, call):
    unnamed = nkcme.load(model)
    columns = tuple(replace(column, name=None) for column in unnamed.encoder_.columns)
    unnamed.encoder_ = replace(unnamed.encoder_, columns=columns)
    unnamed.save(tmp_path / "unnamed")
    assert call("evaluate", tmp_path / "unnamed", table) == call("evaluate", model, table)


def test_report_writes_a_page(model, table, tmp_path, call, refuse):
    page = tmp_path / "report.html"
    assert call("report", model, table, "-o", page) == (f"Wrote {page}\n", "")
    assert "price" in page.read_text()
    (tmp_path / "file").write_text("")
    assert "report" in refuse("report", model, table, "-o", tmp_path / "file" / "report.html")
    assert "report" in refuse("report", model, table, "-o", tmp_path)


def test_info_describes_the_model(model, call):
    out, _ = call("info", model)
    for fact in ("NKCME", f"nkcme {nkcme.__version__}", "price", "colour (category of 2)"):
        assert fact in out
    described = json.loads(call("info", model, "--json")[0])
    assert described["target"] == "price"
    assert [c["name"] for c in described["columns"]] == ["x", "colour", "sold"]
    assert [c["kind"] for c in described["columns"]] == ["numeric", "category", "boolean"]
    assert described["steps"] == 2
    assert described["parameters"]["epochs"] == 2


def test_brackets_in_names_are_no_markup_and_a_long_list_is_cut(model, capsys):
    described = describe_model(model)
    described["columns"] = [
        {"name": f"[bold]{i}", "kind": "numeric", "categories": []} for i in range(30)
    ]
    display.show_model(described)
    printed = capsys.readouterr().out
    assert "[bold]0 (numeric)" in printed
    assert "and 10 more" in printed


def test_info_shows_what_a_recipe_changes(tmp_path, call):
    recipe = replace(nkcme.Recipe(), n_folds=3)
    x = np.linspace(0.0, 1.0, 30)[:, None]
    model = nkcme.NKCME(**nkcme.presets.QUICK, recipe=recipe, epochs=1, random_state=0)
    model.fit(x, x[:, 0]).save(tmp_path / "m")
    assert f"recipe={recipe!r}" in " ".join(call("info", tmp_path / "m")[0].split())
    parameters = json.loads(call("info", tmp_path / "m", "--json")[0])["parameters"]
    assert parameters["recipe"]["n_folds"] == 3


def test_numbers_that_are_not_finite_are_null_in_json(capsys):
    display.show_json({"nll": float("inf"), "rows": [float("nan"), 1.5]})
    assert json.loads(capsys.readouterr().out) == {"nll": None, "rows": [None, 1.5]}
