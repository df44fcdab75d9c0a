"""`nkcme explain`: importance of all inputs, and SHAP values of one row."""

import json
import socket

import pandas as pd
import pytest

from nkcme.datasets import load_apartments


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


def test_unused_columns_are_left_out(call, tmp_path):
    frame = load_apartments(120).messy[["id", "area", "age", "price"]]
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";")
    quick = ("--estimator", "KernelCME", "--target", "price", "--out", tmp_path / "m")
    call("fit", tmp_path / "t.csv", *quick)
    for more in (("--repeats", 1), ("--row", 2)):
        out, _ = call("explain", tmp_path / "m", tmp_path / "t.csv", *more)
        assert "area" in out
        assert "id" not in [line.split()[0] for line in out.splitlines() if line.strip()]


@pytest.fixture
def odd_table(table, tmp_path):
    """The same rows in another encoding, one without its target."""
    frame = pd.read_csv(table)
    frame["Straße"] = "grün"
    frame.loc[4, "price"] = None
    path = tmp_path / "odd.csv"
    frame.to_csv(path, index=False, encoding="cp1252")
    return path


def test_tables_are_read_with_the_options_of_other_commands(
    call, refuse, model, odd_table, monkeypatch
):
    pytest.importorskip("uvicorn", reason="uvicorn is an extra: pip install 'nkcme[serve]'")
    options = ("--encoding", "cp1252", "--na", "-999")
    assert "--encoding cp1252" in refuse("explain", model, odd_table)
    assert "--drop-missing-target" in refuse("explain", model, odd_table, *options)
    out, _ = call("explain", model, odd_table, *options, "--drop-missing-target", "--json")
    assert json.loads(out)["rows"] == 59
    monkeypatch.setattr("uvicorn.run", lambda app, **settings: None)
    command = ("explore", model, odd_table, "--no-open")
    assert "--encoding cp1252" in refuse(*command)
    assert "--drop-missing-target" in refuse(*command, *options)
    _, err = call(*command, *options, "--drop-missing-target", "--port", free_port())
    assert "Ctrl-C" in err


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


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
