"""The command line as a user meets it: what it prints where, and its exit status."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import nkcme
from nkcme.cli import app as cli
from nkcme.cli import display
from nkcme.cli.app import run
from nkcme.cli.info import describe_model

COMMANDS = ("fit", "predict", "evaluate", "report", "info", "demo")
# The command line in a process of its own, of whatever nkcme this test imports.
PROGRAM = [sys.executable, "-c", "from nkcme.cli.app import main; main()"]


def make_table(n: int = 60) -> pd.DataFrame:
    """Numbers, text and a hole in X; fewer rows than a batch."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    table = pd.DataFrame(
        {
            "x": x,
            "colour": rng.choice(["red", "green"], size=n),
            "sold": rng.random(n) < 0.5,
            "price": 3 * x + rng.normal(size=n),
        }
    )
    table.loc[4, "x"] = np.nan
    return table


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "houses.csv"
    make_table().to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def model(table):
    """A model that `nkcme fit` wrote."""
    path = table.parent / "price-model"
    assert run(["fit", str(table), "--target", "price", "--out", str(path), "--epochs", "2"]) == 0
    return path


@pytest.fixture
def call(capsys):
    """Runs a command line that must succeed; gives what it printed to stdout and stderr."""

    def call(*arguments):
        status = run([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert status == 0, err
        return out, err

    return call


@pytest.fixture
def refuse(capsys):
    """Runs a command line that must be refused; gives the one line that says why."""

    def refuse(*arguments):
        status = run([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert status == 2
        assert out == ""
        assert err.startswith("nkcme: ")
        assert err.count("\n") == 1
        assert err.endswith("\n")
        return err

    return refuse


def start(*arguments, **options):
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    return subprocess.Popen([*PROGRAM, *map(str, arguments)], **options)


# --- help and usage -------------------------------------------------------------------------------


def test_help_does_not_wait_for_jax():
    """Help must come at once, so nothing heavy may be imported for it."""
    code = f"""
import sys
from nkcme.cli.app import run
for command in {[[], *([c] for c in COMMANDS)]}:
    assert run([*command, "--help"]) == 0
print(sorted({{"jax", "pandas", "sklearn", "plotly", "scipy"}} & set(sys.modules)))
"""
    printed = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert printed.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example(command, call):
    assert f"Example: nkcme {command}" in call(command, "--help")[0]


def test_no_command_is_a_call_for_help(call):
    out, _ = call()
    assert all(command in out for command in COMMANDS)


def test_version(call):
    assert call("--version")[0] == f"nkcme {nkcme.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["fti"], "fti"),
        (["fit"], "TABLE"),
        (["fit", "t.csv", "--out", "m"], "--target"),
        (["fit", "t.csv", "--target", "y"], "--out"),
        (["fit", "t.csv", "--target", "y", "--out", "m", "--seed", "x"], "--seed"),
        (["fit", "t.csv", "--target", "y", "--out", "m", "--seed", "-1"], "--seed"),
        (["fit", "t.csv", "--target", "y", "--out", "m", "--nonsense"], "--nonsense"),
        (["predict", "m", "t.csv", "--samples", "-1"], "--samples"),
    ],
)
def test_usage_errors(arguments, why, refuse):
    assert why in refuse(*arguments)


# --- fit ------------------------------------------------------------------------------------------


def test_fit_says_what_it_did(table, tmp_path, call):
    out, _ = call("fit", table, "--target", "price", "--out", tmp_path / "m", "--epochs", 2)
    assert "on 54 rows" in out
    assert "On 6 rows held out" in out
    assert "CRPS" in out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m"]  # no checkpoint stays


def test_fit_as_json(table, tmp_path, call):
    command = ("fit", table, "--target", "price", "--out", tmp_path / "m")
    result = json.loads(call(*command, "--epochs", 2, "--json")[0])
    assert (result["target"], result["rows"], result["columns"]) == ("price", 54, 3)
    assert result["model"] == str(tmp_path / "m")
    assert result["metrics"]["rows"] == 6
    assert result["metrics"]["rmse"] > 0


def test_fit_takes_presets_and_parameters(table, tmp_path, monkeypatch, refuse):
    asked = {}

    def make(estimator, parameters, checkpoint):
        asked.update(parameters)
        raise nkcme.NkcmeError("enough is known")

    monkeypatch.setattr("nkcme.cli.fit._make", make)
    options = ("--preset", "paper-toy", "--kernel", "laplace", "--validation-fraction", 0.2)
    refuse("fit", table, "--target", "price", "--out", tmp_path / "m", *options, "--seed", 4)
    expected = nkcme.presets.PAPER_TOY | {
        "kernel": "laplace",
        "validation_fraction": 0.2,
        "random_state": 4,
    }
    assert asked == expected


@pytest.mark.parametrize("estimator", ["MDN", "KernelCME"])
def test_every_command_goes_for_the_rivals_too(estimator, table, tmp_path, call):
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
    assert ("How did training go?" in page) == (estimator == "MDN")
    assert "bandwidth is" not in page


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--estimator", "Oracle"], "there are NKCME, KernelCME"),
        (["--estimator", "MDN", "--preset", "paper-toy"], "is for NKCME, not for MDN"),
        (["--estimator", "MDN", "--kernel", "laplace"], "MDN has no parameter kernel"),
    ],
)
def test_what_an_estimator_cannot_do_is_refused_before_anything_is_done(
    options, words, table, tmp_path, refuse
):
    assert words in refuse("fit", table, "--target", "price", "--out", tmp_path / "m", *options)
    assert not list(tmp_path.iterdir())


def test_fit_replaces_a_model(table, tmp_path, call):
    command = ("fit", table, "--target", "price", "--out", tmp_path / "m", "--epochs", 2)
    predicted = []
    for seed in (0, 1):
        call(*command, "--seed", seed)
        predicted.append(call("predict", tmp_path / "m", table)[0])
    assert predicted[0] != predicted[1]


def test_a_constant_target_is_learned_also_from_all_rows(tmp_path, call):
    make_table().assign(price=7.0).to_csv(tmp_path / "t.csv", index=False)
    command = ("fit", tmp_path / "t.csv", "--target", "price", "--out", tmp_path / "m")
    command += ("--epochs", 2, "--test-size", 0)
    result = json.loads(call(*command, "--json")[0])
    assert result["rows"] == 60
    assert result["metrics"] is None
    assert "No rows were held out" in call(*command)[0]


BAD_TABLES = {
    "empty": (b"", "empty"),
    "header only": (b"x,price\n", "0 rows"),
    "not UTF-8": ("x,price\nü,1\n".encode("latin-1"), "UTF-8"),
    "half-written": (b"x,price\n1,2\n3", "line 3"),
    "open quote": (b'x,price\n1,2\n"3,4\n', "not closed"),
    "duplicate columns": (b"x,x,price\n1,2,3\n", "several columns named 'x'"),
    "no target": (b"x,prize\n1,2\n", "'prize'"),
    "target alone": (b"price\n1\n2\n", "only column"),
    "text as target": (b"x,price\n1,cheap\n2,dear\n", "text"),
    "hole in target": (b"x,price\n1,2\n2,\n", "missing"),
    "infinite target": (b"x,price\n1,2\n2,inf\n", "'price'"),
    "one row": (b"x,price\n1,2\n", "at least 2 rows"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables(case, tmp_path, refuse):
    content, why = BAD_TABLES[case]
    (tmp_path / "t.csv").write_bytes(content)
    out = tmp_path / "m"
    assert why in refuse("fit", tmp_path / "t.csv", "--target", "price", "--out", out)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv"]


@pytest.mark.parametrize(
    ("name", "why"),
    [("absent.csv", "does not exist"), ("t.xlsx", "extension"), ("", "is a directory")],
)
def test_bad_table_paths(name, why, tmp_path, refuse):
    line = refuse("fit", tmp_path / name, "--target", "price", "--out", tmp_path / "m")
    assert why in line


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--epochs", "-1"), "epochs"),
        (("--epochs", "0"), "epochs"),
        (("--kernel", "cubic"), "gaussian"),
        (("--preset", "best"), "paper-toy"),
        (("--validation-fraction", "1.5"), "validation_fraction"),
        (("--test-size", "1"), "test size"),
        (("--test-size", "nan"), "test size"),
        (("--resume",), "nothing to resume"),
    ],
)
def test_bad_parameters(options, why, table, tmp_path, refuse):
    line = refuse("fit", table, "--target", "price", "--out", tmp_path / "m", *options)
    assert why in line
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_hold_the_model_is_refused_before_training(table, tmp_path, refuse):
    (tmp_path / "file").write_text("precious")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("precious")
    command = ("fit", table, "--target", "price", "--epochs", 10**9, "--out")
    assert "found a file" in refuse(*command, tmp_path / "file")
    assert "Not a directory" in refuse(*command, tmp_path / "file" / "m")
    assert "other files" in refuse(*command, tmp_path / "full")
    assert (tmp_path / "full" / "thesis.txt").read_text() == "precious"


def test_ctrl_c_keeps_the_work_and_resume_finishes_it(table, tmp_path, call, refuse):
    out = tmp_path / "stopped model"  # with a blank, so that the command to resume needs quotes
    options = ("--target", "price", "--preset", "quick", "--epochs", 2000, "--seed", 3)
    process = start("fit", table, "--out", out, *options)
    checkpoint = tmp_path / "stopped model.checkpoint"
    deadline = time.monotonic() + 120
    while not checkpoint.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    printed, line = process.communicate(timeout=120)
    assert process.returncode == 130, line
    assert printed == ""
    assert line.count("\n") == 1
    assert line.startswith("nkcme: stopped by Ctrl-C at step ")
    given = "--target price --preset quick --epochs 2000 --seed 3"
    resume = f"nkcme fit {table} --out '{out}' {given} --resume"
    assert line.endswith(f"; to go on: {resume}\n")
    assert not out.exists()

    assert "--resume" in refuse("fit", table, "--out", out, *options)
    assert "another run" in refuse("fit", table, "--out", out, *options[:-1], 4, "--resume")
    assert checkpoint.exists()

    call("fit", table, "--out", out, *options, "--resume")
    assert not checkpoint.exists()
    call("fit", table, "--out", tmp_path / "undisturbed", *options)
    predictions = [
        call("predict", path, table, "--quantiles", "0.1,0.9")[0]
        for path in (out, tmp_path / "undisturbed")
    ]
    assert predictions[0] == predictions[1]


# --- predict --------------------------------------------------------------------------------------


def test_predict_gives_what_was_asked_for(model, table, tmp_path, call):
    command = ("predict", model, table, "--quantiles", ".05,0.5,0.95", "--interval", 0.9)
    out, err = call(*command, "--samples", 2)
    assert err == "nkcme: ignored what the model does not know: column 'price'\n"
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


def test_draws_follow_the_seed(model, table, call):
    draws = [call("predict", model, table, "--samples", 3, "--seed", seed)[0] for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_columns_go_by_name(model, table, tmp_path, call, refuse):
    """In any order, with others among them; a category nobody has seen is no obstacle."""
    frame = make_table().drop(columns="price")
    mixed = frame[["sold", "colour", "x"]].assign(id=range(60), note="-")
    mixed.to_parquet(tmp_path / "mixed.parquet")
    out, err = call("predict", model, tmp_path / "mixed.parquet")
    assert err == "nkcme: ignored what the model does not know: columns 'id', 'note'\n"
    assert out == call("predict", model, table)[0]

    frame.assign(colour="mauve").to_csv(tmp_path / "mauve.csv", index=False)
    assert len(call("predict", model, tmp_path / "mauve.csv")[0].splitlines()) == 61

    frame.drop(columns=["x", "sold"]).to_csv(tmp_path / "poor.csv", index=False)
    line = refuse("predict", model, tmp_path / "poor.csv")
    assert "lacks columns 'x', 'sold'" in line

    frame.assign(x="tall").to_csv(tmp_path / "text.csv", index=False)
    assert "'tall'" in refuse("predict", model, tmp_path / "text.csv")


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
    ],
)
def test_bad_questions(options, why, model, tmp_path, refuse):
    # Without the target, which would be worth a note beside the error.
    make_table().drop(columns="price").to_csv(tmp_path / "t.csv", index=False)
    assert why in refuse("predict", model, tmp_path / "t.csv", *options)


def test_a_reader_that_had_enough_is_no_error(model, tmp_path):
    rows = make_table(40_000).drop(columns="price")  # more than a pipe holds
    rows.to_csv(tmp_path / "t.csv", index=False)
    process = start("predict", model, tmp_path / "t.csv", "--quantiles", "0.1,0.5,0.9")
    assert process.stdout.readline().startswith("mean,")
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    process.wait(timeout=60)


# --- bad models -----------------------------------------------------------------------------------


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


def test_models_of_several_outputs_are_for_python(table, monkeypatch, refuse):
    monkeypatch.setattr("nkcme.cli.opening.load", lambda path: SimpleNamespace(n_outputs_=2))
    assert "2 outputs" in refuse("predict", "two", table)


# --- evaluate, report, info -----------------------------------------------------------------------


def test_evaluate_knows_its_target_and_says_what_scores_mean(model, table, call):
    out, err = call("evaluate", model, table)
    assert err == ""
    assert "On 60 rows" in out
    for name in ("RMSE", "CRPS", "NLL", "QICE", "90% coverage", "90% width"):
        assert name in out
    assert "root mean squared error" in out


def test_evaluate_as_json(model, table, call):
    result = json.loads(call("evaluate", model, table, "--json")[0])
    assert result["target"] == "price"
    scores = result["metrics"]
    assert scores["rows"] == 60
    frame = make_table()
    error = frame["price"] - nkcme.load(model).predict(frame.drop(columns="price"))
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))
    assert json.loads(call("evaluate", model, table, "--target", "price", "--json")[0]) == result


def test_evaluate_needs_the_target(model, table, tmp_path, refuse):
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


def test_report(model, table, tmp_path, call, refuse):
    page = tmp_path / "report.html"
    assert call("report", model, table, "-o", page) == (f"Wrote {page}\n", "")
    assert "price" in page.read_text()
    (tmp_path / "file").write_text("")
    assert "report" in refuse("report", model, table, "-o", tmp_path / "file" / "report.html")
    assert "report" in refuse("report", model, table, "-o", tmp_path)


def test_info(model, call):
    out, _ = call("info", model)
    for fact in ("NKCME", f"nkcme {nkcme.__version__}", "price", "colour (category of 2)"):
        assert fact in out
    described = json.loads(call("info", model, "--json")[0])
    assert described["target"] == "price"
    assert [c["name"] for c in described["columns"]] == ["x", "colour", "sold"]
    assert [c["kind"] for c in described["columns"]] == ["numeric", "category", "boolean"]
    assert described["steps"] == 2
    assert described["parameters"]["epochs"] == 2


def test_names_are_printed_as_they_are(model, capsys):
    """Brackets in a name are no markup, and a long list of columns is cut."""
    described = describe_model(model)
    described["columns"] = [
        {"name": f"[bold]{i}", "kind": "numeric", "categories": []} for i in range(30)
    ]
    display.show_model(described)
    printed = capsys.readouterr().out
    assert "[bold]0 (numeric)" in printed
    assert "and 10 more" in printed


def test_json_has_null_for_what_is_not_finite(capsys):
    display.show_json({"nll": float("inf"), "rows": [float("nan"), 1.5]})
    assert json.loads(capsys.readouterr().out) == {"nll": None, "rows": [None, 1.5]}


# --- what else can happen -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status", "why"),
    [
        (KeyboardInterrupt(), 130, "stopped by Ctrl-C"),
        (PermissionError(13, "Permission denied", "m"), 2, "m: Permission denied"),
        (MemoryError(), 2, "memory"),
        (nkcme.NkcmeError("two\nlines"), 2, "two lines"),
    ],
)
def test_what_goes_wrong_is_one_line(error, status, why, monkeypatch, capsys):
    def fail(_):
        raise error

    monkeypatch.setattr("nkcme.cli.info.describe_model", fail)
    assert run(["info", "m"]) == status
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert why in err


def test_main_exits_with_the_status(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["nkcme", "info", os.devnull])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == 2
    assert capsys.readouterr().err.startswith("nkcme: ")
