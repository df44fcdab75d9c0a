"""`nkcme fit`: what it prints and saves, bad input, and stopping and resuming."""

import json
import shutil

import numpy as np
import pytest

import nkcme
from nkcme.cli import display
from nkcme.cli.app import run
from nkcme.cli.fit import KERNEL_NAMES, OPTIONS
from nkcme.estimators import ESTIMATORS
from nkcme.kernels import KERNELS
from support.bad_table_files import BAD_TABLES
from support.ctrl_c import ctrl_c_after_first_checkpoint
from support.houses import make_table


def test_fit_prints_what_was_fitted_and_its_scores(fitted):
    assert "from 3 columns on 54 rows" in fitted.printed
    assert f"Saved the model to {fitted.path}" in fitted.printed
    assert "Values of price: numbers" in fitted.printed
    assert "On 6 rows held out" in fitted.printed
    assert "CRPS" in fitted.printed
    assert [path.name for path in fitted.path.parent.iterdir()] == ["price-model"]


def test_fit_with_the_default_preset_prints_json(table, tmp_path, call):
    command = ("fit", table, "--target", "price", "--out", tmp_path / "m")
    result = json.loads(call(*command, "--epochs", 2, "--json")[0])
    assert (result["target"], result["rows"], result["columns"]) == ("price", 54, 3)
    assert result["model"] == str(tmp_path / "m")
    assert result["metrics"]["rows"] == 6
    assert result["metrics"]["rmse"] > 0


@pytest.mark.parametrize(
    ("support", "parameters"),
    [
        (("--bounds", "0,", "--integer"), {"bounds": (0.0, None), "integer": True}),
        (("--values", "1,2.5"), {"values": [1.0, 2.5]}),
        (("--transform", "none"), {"transform": "none"}),
    ],
)
def test_fit_passes_preset_and_parameters_to_the_estimator(
    support, parameters, table, tmp_path, monkeypatch, refuse
):
    given = {}

    def make(estimator, parameters, checkpoint):
        given.update(parameters)
        raise nkcme.NkcmeError("not fitted in this test")

    monkeypatch.setattr("nkcme.cli.fit._make", make)
    monkeypatch.setattr("nkcme.cli.fit._check_training_rows", lambda *_: None)
    options = ("--preset", "paper-toy", "--kernel", "laplace", "--validation-fraction", 0.2)
    command = ("fit", table, "--target", "price", "--out", tmp_path / "m", *options, *support)
    refuse(*command, "--seed", 4)
    expected = nkcme.presets.PAPER_TOY | {
        "kernel": "laplace",
        "validation_fraction": 0.2,
        "random_state": 4,
    }
    assert given == expected | parameters


def test_the_options_are_those_that_the_estimators_have():
    assert set(KERNEL_NAMES) == set(KERNELS)
    options = OPTIONS["NKCME"]
    for name, of_estimator in OPTIONS.items():
        known = ESTIMATORS[name]._get_param_names()
        assert set(of_estimator) == {option for option in options if option in known}, name


def test_a_model_of_the_logarithm_is_named_wherever_it_is_described(tmp_path, call):
    houses = make_table()
    houses["price"] = np.exp(houses["price"])
    houses.to_csv(tmp_path / "t.csv", index=False)
    command = ("fit", tmp_path / "t.csv", "--target", "price", "--out", tmp_path / "m")
    quick = ("--preset", "quick", "--epochs", 2)
    out, _ = call(*command, *quick, "--transform", "log")
    assert "Modelled the log of price; predictions are in its own units." in out
    assert "log of y" in call("info", tmp_path / "m")[0]
    assert json.loads(call("info", tmp_path / "m", "--json")[0])["transform"] == "log"
    call("report", tmp_path / "m", tmp_path / "t.csv", "-o", tmp_path / "r.html")
    assert "models the log of price" in (tmp_path / "r.html").read_text()
    assert "log of" not in call(*command, *quick)[0]


@pytest.mark.parametrize("bounds", ["0", "0,1,2", "low,high"])
def test_bounds_are_two_numbers(bounds, table, tmp_path, refuse):
    command = ("fit", table, "--target", "price", "--out", tmp_path / "m", "--bounds", bounds)
    assert "--bounds must be two numbers" in refuse(*command)


@pytest.mark.parametrize("estimator", ["MDN", "KernelCME"])
def test_every_command_works_with_baselines(estimator, table, tmp_path, call):
    path = tmp_path / "m"
    given = ["--epochs", 2] if estimator == "MDN" else []
    out, _ = call(
        "fit", table, "--target", "price", "--out", path, "--estimator", estimator, *given
    )
    assert ("2 steps" in out) == (estimator == "MDN")
    assert type(nkcme.load(path)).__name__ == estimator
    assert estimator in call("info", path)[0]
    call("predict", path, table, "--interval", 0.9)
    call("report", path, table, "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert ("<h2>Training</h2>" in page) == (estimator == "MDN")
    assert "bandwidth is" not in page


def test_an_existing_model_is_replaced(model, table, tmp_path, call):
    shutil.copytree(model, tmp_path / "m")
    call("fit", table, "--target", "price", "--out", tmp_path / "m", "--estimator", "KernelCME")
    assert isinstance(nkcme.load(tmp_path / "m"), nkcme.KernelCME)


def test_a_constant_target_is_fitted_on_all_rows(tmp_path, call, capsys):
    make_table().assign(price=7.0).to_csv(tmp_path / "t.csv", index=False)
    command = ("fit", tmp_path / "t.csv", "--target", "price", "--out", tmp_path / "m")
    options = ("--preset", "quick", "--epochs", 2, "--test-size", 0)
    result = json.loads(call(*command, *options, "--json")[0])
    assert result["rows"] == 60
    assert result["metrics"] is None
    display.show_fit(result)
    assert "No rows were held out" in capsys.readouterr().out


# --- bad input


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables_are_refused_and_nothing_is_written(case, tmp_path, refuse):
    content, why = BAD_TABLES[case]
    (tmp_path / "t.csv").write_bytes(content)
    out = tmp_path / "m"
    assert why in refuse("fit", tmp_path / "t.csv", "--target", "price", "--out", out)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv"]


@pytest.mark.parametrize(
    ("name", "why"),
    [("absent.csv", "does not exist"), ("t.ods", "extension"), ("", "has no .parquet file")],
)
def test_bad_table_paths_are_refused(name, why, tmp_path, refuse):
    line = refuse("fit", tmp_path / name, "--target", "price", "--out", tmp_path / "m")
    assert why in line


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--epochs", "-1"), "--epochs"),
        (("--epochs", "0"), "--epochs"),
        (("--kernel", "cubic"), "gaussian"),
        (("--preset", "best"), "paper-toy"),
        (("--validation-fraction", "1.5"), "validation_fraction"),
        (("--test-size", "1"), "test size"),
        (("--test-size", "nan"), "test size"),
        (("--test-size", "0.9999"), "holds out 60 of 60 rows"),
        (("--test-size", "0.98"), "a fit needs at least 2; choose a smaller --test-size"),
        (("--resume",), "nothing to resume"),
        (("--estimator", "Oracle"), "there are NKCME, KernelCME"),
        (("--estimator", "MDN", "--preset", "paper-toy"), "is for NKCME, not for MDN"),
        (("--estimator", "MDN", "--kernel", "laplace"), "MDN has no parameter kernel"),
    ],
)
def test_bad_parameters_are_refused_and_nothing_is_written(options, why, table, tmp_path, refuse):
    line = refuse("fit", table, "--target", "price", "--out", tmp_path / "m", *options)
    assert why in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("file", "found a file"),
        ("file/m", "Not a directory"),
        ("full", "other files"),
        ("/", "found the root of the file system"),
        ("/proc/nkcme/m", "a path that can be written"),
    ],
)
def test_a_path_that_cannot_hold_the_model_is_refused_before_training(
    path, why, table, tmp_path, monkeypatch, refuse
):
    monkeypatch.setattr("nkcme.cli.fit._make", lambda *_: pytest.fail("refused too late"))
    (tmp_path / "file").write_text("precious")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("precious")
    assert why in refuse("fit", table, "--target", "price", "--out", tmp_path / path)
    assert (tmp_path / "full" / "thesis.txt").read_text() == "precious"


# --- stopping and resuming


def test_a_fit_stopped_by_ctrl_c_resumes_to_the_same_model(table, tmp_path, call, refuse, capsys):
    out = tmp_path / "stopped model"  # with a blank, so that the command to resume needs quotes
    checkpoint = tmp_path / "stopped model.checkpoint"
    options = ("--target", "price", "--preset", "quick", "--epochs", 300, "--seed", 3)
    with ctrl_c_after_first_checkpoint(), pytest.raises(SystemExit) as exit_:
        run([*map(str, ("fit", table, "--out", out, *options))])
    assert exit_.value.code == 130
    given = "--target price --preset quick --epochs 300 --seed 3"
    printed, notes = capsys.readouterr()
    assert printed == ""
    assert notes.endswith(
        "\nnkcme: stopped by Ctrl-C at step 100; to continue: "
        f"nkcme fit {table} --out '{out}' {given} --resume\n"
    )
    assert checkpoint.exists()
    assert not out.exists()

    assert "--resume" in refuse("fit", table, "--out", out, *options)
    assert "another run" in refuse("fit", table, "--out", out, *options[:-1], 4, "--resume")
    assert checkpoint.exists()

    call("fit", table, "--out", out, *options, "--resume")
    assert not checkpoint.exists()
    call("fit", table, "--out", tmp_path / "undisturbed", *options)
    one, other = ((p / "model.safetensors").read_bytes() for p in (out, tmp_path / "undisturbed"))
    assert one == other
