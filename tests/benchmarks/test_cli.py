"""The command line: help of every command, exit statuses, and one line for bad input."""

from __future__ import annotations

import pytest

from benchmarks.cli.app import run
from benchmarks.experiments import specs
from benchmarks.experiments.rows import Rows
from nkcme.estimators import ESTIMATORS
from support import fake_bench

COMMANDS = [
    "toy", "uci", "tables", "simulations", "outputs", "scaling", "rl", "page", "speed",
    "step-speed", "rl-speed",
    "runtime-speed", "explorer-speed", "start-speed", "fit-speed", "busy-speed", "scale-predict",
    "scale", "table-sizes", "small-tables", "log-transform", "constants",
    "commits", "messy-table",
    "dependent-rows", "risk", "figures", "pictures",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, capsys):
    assert run([command, "--help"]) == 0
    printed = capsys.readouterr().out
    assert f"Example: python -m benchmarks {command}" in printed


def test_the_commands_are_listed_with_whole_summaries(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["--help"]) == 0
    listed = capsys.readouterr().out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in listed] == COMMANDS
    assert all(line.endswith(".") and not line.endswith("...") for line in listed)


@pytest.fixture
def tiny_cells(monkeypatch):
    """The toy benchmark with a method that takes no time, and one that fails."""
    monkeypatch.setitem(ESTIMATORS, "Fake", fake_bench.Fake)
    cells = [
        fake_bench.cell("ring"),
        fake_bench.cell("ring", method="nsf", parameters={"broken": "fit"}),
    ]
    monkeypatch.setattr(specs, "toy_cells", lambda quick: cells)


def test_the_exit_status_is_one_when_a_run_failed(tiny_cells, tmp_path, capsys):
    rows = ["--rows", str(tmp_path)]
    assert run(["toy", "--methods", "mdn", *rows]) == 0
    assert run(["toy", *rows]) == 1
    captured = capsys.readouterr()
    assert "3 of 3 runs failed" in captured.err
    assert "1 of 2 cells were already finished" in captured.err
    assert "failed (0 of 3)" in captured.out


def test_seeds_limits_the_runs(tiny_cells, tmp_path):
    assert run(["toy", "--methods", "mdn", "--seeds", "2", "--rows", str(tmp_path)]) == 0
    assert Rows(tmp_path).missing(fake_bench.cell("ring")) == [2]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["toy", "--methods", "nothing"], "'nothing'"),
        (["toy", "--sets", "nothing"], "'nothing'"),
        (["uci", "--methods", "ngboost"], "there is no method 'ngboost'"),  # without --peers
        (["tables"], "set NKCME_TABLES"),
        (["tables", "nowhere"], "nowhere is no CSV file"),
        (["simulations", "--designs", "moon"], "zero-inflated, counts"),
        (["simulations", "--methods", "ngboost"], "there is no method 'ngboost'"),
        (["outputs", "--sets", "moon"], "ring, banana, mixture"),
        (["rl", "--agents", "nothing"], "nothing"),
        (["rl", "--envs", "nothing"], "nothing"),
        (["rl", "--preset", "nothing"], "nothing"),
        (["rl", "--steps", "150"], "150"),
        (["table-sizes", "--sizes", "300,many"], "300,many"),
        (["table-sizes", "--sizes", "0"], "'0'"),
        (["rl-speed", "--our-steps", "20", "10"], "increasing"),
    ],
)
def test_bad_input_is_one_line(words, expected, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NKCME_TABLES", raising=False)
    assert run(words) == 2
    error = capsys.readouterr().err.strip()
    assert expected in error
    assert len(error.splitlines()) == 1
