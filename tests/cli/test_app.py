"""Help, usage errors, exit statuses and the one line for every error."""

import os
import subprocess
import sys

import pytest

import nkcme
from nkcme.cli import app as cli
from nkcme.cli.app import run
from support.houses import make_table

COMMANDS = ("fit", "predict", "serve", "evaluate", "report", "info", "demo", "warm-up")
GROUPS = {"data": ("list", "fetch", "path"), "rl": ("train", "eval", "watch", "report")}
ALL = [
    *([command] for command in COMMANDS),
    *([group, command] for group, commands in GROUPS.items() for command in commands),
]


def test_help_imports_nothing_heavy():
    """Help must be shown immediately."""
    code = f"""
import sys
from nkcme.cli.app import run
for command in {[[], ["data"], ["rl"], *ALL]}:
    assert run([*command, "--help"]) == 0
heavy = {{"jax", "numpy", "pandas", "sklearn", "scipy", "plotly", "matplotlib", "gymnax", "pooch"}}
print(sorted(heavy & set(sys.modules)))
"""
    printed = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert printed.splitlines()[-1] == "[]"
    for command in ALL:
        assert f"Example: nkcme {' '.join(command)}" in printed


def test_without_a_command_help_is_printed(call):
    out, _ = call()
    assert all(command in out for command in (*COMMANDS, *GROUPS))


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_without_a_command_is_refused(group, refuse):
    assert f"nkcme {group} --help" in refuse(group)


def test_the_version_is_printed(call):
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
        (["fit", "t.csv", "--target", "y", "--out", "m", "--epochs", str(10**20)], "--epochs"),
        (["fit", "t.csv", "--target", "y", "--out", "m", "--epochs", "1e20"], "--epochs"),
        (["predict", "m", "t.csv", "--samples", "-1"], "--samples"),
        (["predict", "m", "t.csv", "--samples", str(10**20)], "--samples"),
        (["predict", "m", "t.csv", "--samples", "1e20"], "--samples"),
        (["rl", "train", "CartPole-v1", "--steps", str(10**20)], "--steps"),
        (["rl", "train", "CartPole-v1", "--seeds", str(10**20)], "--seeds"),
    ],
)
def test_usage_errors_name_the_argument(arguments, why, refuse):
    assert why in refuse(*arguments)


@pytest.mark.parametrize(
    ("error", "status", "why"),
    [
        (KeyboardInterrupt(), 130, "stopped by Ctrl-C"),
        (PermissionError(13, "Permission denied", "m"), 2, "m: Permission denied"),
        (MemoryError(), 2, "memory"),
        (nkcme.NkcmeError("two\nlines"), 2, "two lines"),
    ],
)
def test_every_error_is_one_line(error, status, why, monkeypatch, capsys):
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


def test_a_pipe_closed_by_its_reader_is_no_error(model, tmp_path):
    rows = make_table(10_000).drop(columns="price")  # more than a pipe holds
    rows.to_csv(tmp_path / "t.csv", index=False)
    program = [sys.executable, "-c", "from nkcme.cli.app import main; main()"]
    command = [*program, "predict", str(model), str(tmp_path / "t.csv")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stdout.readline().startswith("mean")
        process.stdout.close()
        assert process.stderr.read() == ""
        process.wait(timeout=300)
