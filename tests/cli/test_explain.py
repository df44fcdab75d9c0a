"""`nkcme explain`: importance of all inputs, and SHAP values of one row."""

import json

import pytest


def test_importance_as_a_table_and_as_json(call, model, table):
    out, _ = call("explain", model, table, "--quantiles", "0.1,0.9", "--repeats", 2)
    for word in ("CRPS", "centre", "spread", "tails", "q0.1", "q0.9", "colour", "sold", "%"):
        assert word in out
    out, _ = call("explain", model, table, "--repeats", 2, "--json")
    found = json.loads(out)
    assert {one["name"] for one in found["features"]} == {"x", "colour", "sold"}
    assert set(found["scores"]) == {"crps", "centre", "spread", "tails"}
    assert found["rows"] == 60
    again, _ = call("explain", model, table, "--repeats", 2, "--json")
    assert again == out


def test_one_row_by_shap_values(call, model, table):
    pytest.importorskip("shap", reason="shap is an extra: pip install 'nkcme[shap]'")
    out, _ = call("explain", model, table, "--row", 3, "--quantiles", 0.9, "--json")
    found = json.loads(out)
    assert set(found["average"]) == {"mean", "spread", "q0.9"}
    for name, average in found["average"].items():
        moved = sum(one[name] for one in found["inputs"])
        assert average + moved == pytest.approx(found["predicted"][name])
    out, _ = call("explain", model, table, "--row", 3)
    assert "average prediction" in out
    assert "colour = " in out


def test_bad_input_is_refused(refuse, model, table):
    assert "0.05, 0.5, 0.95" in refuse("explain", model, table, "--quantiles", "1.5")
    assert "60 rows and no row 61" in refuse("explain", model, table, "--row", 61)
    assert "--repeats" in refuse("explain", model, table, "--repeats", 0)
