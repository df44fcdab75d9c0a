"""What a command imports before it can answer: JAX and scikit-learn take seconds.

Each program runs in a new process, because this one has imported everything.
"""

import json
import subprocess
import sys

import pytest

from support.bad_table_files import BAD_TABLES
from support.houses import make_table

HEAVY = {
    *("jax", "jaxlib", "equinox", "optax", "sklearn", "joblib"),
    *("scipy.stats", "pandas", "plotly", "matplotlib"),
}

_PROGRAM = """
import json, sys
heavy = set(json.loads(sys.argv[1]))
def report(name):
    print(json.dumps([name, sorted(heavy & set(sys.modules))]), file=sys.stderr)
"""

_COMMANDS = """
from nkcme.cli.app import run
for name, status, arguments in json.loads(sys.argv[2]):
    assert run(arguments) == status, (name, arguments)
    report(name)
"""


def imported(code, *arguments):
    """The heavy modules that are imported after each step that a program reports."""
    command = [sys.executable, "-c", _PROGRAM + code, json.dumps(sorted(HEAVY)), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("[")]
    return {name: set(modules) for name, modules in map(json.loads, lines)}


def after_commands(commands):
    """The heavy modules after each command, one after the other in one process."""
    steps = [[name, status, [str(a) for a in given]] for name, status, *given in commands]
    found = imported(_COMMANDS, json.dumps(steps))
    assert list(found) == [name for name, *_ in commands]
    return found


def test_the_counter_sees_an_import():
    found = imported("report('before')\nimport sklearn\nreport('after')")
    assert found["before"] == set()
    assert "sklearn" in found["after"]


def test_load_is_imported_without_any_heavy_module():
    assert imported("from nkcme import load\nreport('load')") == {"load": set()}


def test_a_missing_model_is_refused_by_load_without_any_heavy_module():
    code = """
from nkcme import ModelFileError, load
try:
    load("no-such-model")
except ModelFileError:
    report("refused")
"""
    assert imported(code) == {"refused": set()}


@pytest.fixture
def damaged(model, tmp_path):
    """A model whose arrays were cut short."""
    path = tmp_path / "damaged"
    path.mkdir()
    for file in model.iterdir():
        content = file.read_bytes()
        (path / file.name).write_bytes(content[:-100] if file.suffix != ".json" else content)
    return path


def test_help_info_and_refused_arguments_need_no_heavy_module(model, damaged, table, tmp_path):
    fit = ("fit", table, "--target", "price", "--out", tmp_path / "m")
    absent = tmp_path / "absent.csv"
    commands = [
        ("help", 0, "--help"),
        ("help of fit", 0, "fit", "--help"),
        ("info", 0, "info", model),
        ("info as JSON", 0, "info", model, "--json"),
        ("info of nothing", 2, "info", tmp_path / "absent"),
        ("info of a damaged model", 2, "info", damaged),
        ("predict by a damaged model", 2, "predict", damaged, table),
        ("evaluate a damaged model", 2, "evaluate", damaged, table),
        ("report of a damaged model", 2, "report", damaged, table, "-o", tmp_path / "r.html"),
        ("no such command", 2, "guess"),
        ("no such option", 2, *fit, "--nonsense"),
        ("no such estimator", 2, *fit, "--estimator", "Oracle"),
        ("no such preset", 2, *fit, "--preset", "best"),
        ("no such kernel", 2, *fit, "--kernel", "cubic"),
        ("an option of others", 2, *fit, "--estimator", "MDN", "--kernel", "laplace"),
        ("a bad share", 2, *fit, "--validation-fraction", "1.5"),
        ("a bad test size", 2, *fit, "--test-size", "1"),
        ("bad bounds", 2, *fit, "--bounds", "1,0"),
        ("nothing to resume", 2, *fit, "--resume"),
        ("no table to fit", 2, "fit", absent, *fit[2:]),
        ("no table to predict", 2, "predict", model, absent),
        ("no table to evaluate", 2, "evaluate", model, absent),
        ("bad levels", 2, "predict", model, table, "--quantiles", "2"),
        ("bad output", 2, "predict", model, table, "-o", tmp_path / "t.xlsx"),
    ]
    assert after_commands(commands) == {name: set() for name, *_ in commands}


def test_a_refused_table_needs_no_heavy_module(model, table, tmp_path):
    """Neither JAX nor scikit-learn, nor pandas for tables as small as these."""
    commands = []
    for number, (name, (content, _)) in enumerate(BAD_TABLES.items()):
        path = tmp_path / f"{number}.csv"
        path.write_bytes(content)
        commands.append((name, 2, "fit", path, "--target", "price", "--out", tmp_path / "m"))
    good = make_table()
    frames = {
        "a column is missing": good.drop(columns="x"),
        "text instead of numbers": good.assign(x="n/k"),
        "infinite numbers": good.assign(x=float("inf")),
    }
    for number, (name, frame) in enumerate(frames.items()):
        path = tmp_path / f"new-{number}.csv"
        frame.to_csv(path, index=False)
        commands.append((f"predict: {name}", 2, "predict", model, path))
        commands.append((f"evaluate: {name}", 2, "evaluate", model, path))
        commands.append((f"report: {name}", 2, "report", model, path, "-o", tmp_path / "r.html"))
    fit = ("fit", table, "--target", "price", "--out", tmp_path / "m")
    commands += [
        ("no such target", 2, *fit[:2], "--target", "prize", *fit[4:]),
        ("no such weights", 2, *fit, "--weights", "heavy"),
        ("too few rows to hold out", 2, *fit, "--test-size", "0.98"),
        ("y outside the bounds", 2, *fit, "--bounds", "1000,"),
        ("y not whole", 2, *fit, "--integer"),
    ]
    assert after_commands(commands) == {name: set() for name, *_ in commands}


def test_a_refused_table_that_is_not_plain_needs_pandas_at_most(model, table, tmp_path):
    spaced = tmp_path / "spaced.csv"
    spaced.write_text("x,colour,sold,price\n 1,red,True,cheap\n 2,red,True,dear\n")
    fit = ("fit", table, "--target", "price", "--out", tmp_path / "m")
    commands = [
        ("text as target", 2, "fit", spaced, *fit[2:]),
        ("marks of missing values", 2, *fit, "--missing", "red", "--bounds", "1000,"),
    ]
    assert after_commands(commands) == {name: {"pandas"} for name, *_ in commands}


def test_names_of_estimators_need_no_class():
    code = """
from nkcme.estimators import ESTIMATORS
assert "NKCME" in ESTIMATORS and len(list(ESTIMATORS)) == 6
report("names")
ESTIMATORS["KernelCME"]
report("class")
"""
    found = imported(code)
    assert found["names"] == set()
    assert "sklearn" in found["class"]
