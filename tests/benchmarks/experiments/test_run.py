"""Running: every run becomes a row, finished ones are not run again, and failures are rows too."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from benchmarks.app import run
from benchmarks.experiments import specs
from benchmarks.experiments.cells import draw
from benchmarks.experiments.rows import Rows
from benchmarks.experiments.run import run_cells
from nkcme import presets
from nkcme.datasets.toy import TOYS, evaluate_was1
from nkcme.estimators import ESTIMATORS, NKCME
from support import fake_bench


@pytest.fixture(autouse=True)
def _fake_estimator(monkeypatch):
    monkeypatch.setitem(ESTIMATORS, "Fake", fake_bench.Fake)


@pytest.fixture
def said():
    return []


def test_a_row_says_what_was_run_and_what_came_out(tmp_path, said):
    rows, cell = Rows(tmp_path), fake_bench.cell()
    tally = run_cells([cell], rows, said.append)
    assert (tally.run, tally.failed, tally.already_there) == (3, 0, 0)
    found = rows.of(cell)
    assert [row["run"] for row in found] == [0, 1, 2]
    row = found[2]
    assert (row["experiment"], row["dataset"], row["method"]) == ("toy", "ring", "mdn")
    assert row["protocol"] == cell.protocol
    assert row["seconds"]["fitted_together"] == 3
    assert sum(row["bins"]) == 30
    for name in ("when", "commit", "device", "versions", "python"):
        assert row[name]
    noise = np.random.default_rng(2).normal(size=(50, 200))
    assert row["metrics"]["was1_x100"] == 100 * evaluate_was1(TOYS["ring"], lambda _: noise, 2)
    assert "(paper 26.66 +- 0.8)" in said[0]


def test_samples_are_kept_of_the_first_seed_alone(tmp_path, said):
    rows, cell = Rows(tmp_path), fake_bench.cell()
    run_cells([cell], rows, said.append)
    first, *others = rows.of(cell)
    assert np.shape(first["samples"]["x"]) == (40,)
    assert np.shape(first["samples"]["y"]) == (50, 40)
    noise = np.random.default_rng(0).normal(size=(50, 200))
    assert np.array_equal(first["samples"]["y"], noise[:, ::5].round(4))
    assert not any("samples" in row for row in others)


def test_finished_rows_are_not_run_again(tmp_path, said):
    rows, cell = Rows(tmp_path), fake_bench.cell()
    run_cells([dataclasses.replace(cell, n_runs=2)], rows, said.append)
    before = rows.path(cell).read_bytes().splitlines()
    tally = run_cells([cell], rows, said.append)
    assert (tally.run, tally.already_there) == (1, 0)
    after = rows.path(cell).read_bytes().splitlines()
    assert after[:2] == before
    # A seed's result does not depend on which others were trained with it.
    alone = Rows(tmp_path / "alone")
    run_cells([cell], alone, said.append)
    assert alone.of(cell)[2]["metrics"] == rows.of(cell)[2]["metrics"]
    assert run_cells([cell], rows, said.append).already_there == 1
    assert rows.path(cell).read_bytes().splitlines() == after


def test_rows_of_another_recipe_count_as_not_there(tmp_path, said):
    rows, cell = Rows(tmp_path), fake_bench.cell()
    run_cells([cell], rows, said.append)
    changed = dataclasses.replace(cell, parameters={"random_state": 5})
    assert rows.missing(changed) == [0, 1, 2]
    assert rows.of(changed) == []
    run_cells([changed], rows, said.append)
    assert rows.missing(changed) == []
    assert len(rows.path(cell).read_bytes().splitlines()) == 3


def test_a_fit_that_fails_is_a_row_for_each_run_and_the_next_cell_is_tried(tmp_path, said):
    rows = Rows(tmp_path)
    bad = fake_bench.cell("bimodal", parameters={"broken": "fit"})
    good = fake_bench.cell("ring")
    tally = run_cells([bad, good], rows, said.append)
    assert (tally.run, tally.failed) == (6, 3)
    assert [row["error"] for row in rows.of(bad)] == ["RuntimeError: this one never fits"] * 3
    assert any("fit_many" in line for line in rows.of(bad)[0]["traceback"])
    assert rows.missing(bad) == [0, 1, 2]
    assert rows.missing(good) == []
    assert "3 FAILED: RuntimeError: this one never fits" in said[0]


def test_a_failed_run_is_run_again_and_the_others_of_its_cell_are_not(tmp_path, said, monkeypatch):
    rows, cell = Rows(tmp_path), fake_bench.cell(parameters={"broken": "sample"})
    assert run_cells([cell], rows, said.append).failed == 1
    assert rows.missing(cell) == [1]
    before = {row["run"]: row for row in rows.finished(cell)}
    monkeypatch.setattr(fake_bench.Fake, "sample", lambda self, X, n, **_: np.zeros((n, len(X))))
    assert run_cells([cell], rows, said.append).run == 1
    after = {row["run"]: row for row in rows.finished(cell)}
    assert sorted(after) == [0, 1, 2]
    assert {k: after[k] for k in before} == before


def test_an_infinite_nll_is_null_and_said(tmp_path, said, monkeypatch):
    monkeypatch.setattr(
        fake_bench.FakeDistribution,
        "logpdf",
        lambda self, y: np.where(np.arange(self.n) < 4, -np.inf, 0.0),
    )
    rows, cell = Rows(tmp_path), fake_bench.cell()
    run_cells([cell], rows, said.append)
    row = rows.of(cell)[0]
    assert row["metrics"]["nll"] is None
    assert row["notes"] == ["nll is infinite: density 0 at 4 of 30 rows"]


def test_ctrl_c_keeps_the_cells_that_are_finished(tmp_path, said, monkeypatch):
    rows, cells = Rows(tmp_path), [fake_bench.cell("bimodal"), fake_bench.cell("ring")]

    def stop(self, datasets, random_states):
        if rows.missing(cells[0]):
            return [fake_bench.Fake() for _ in datasets]
        raise KeyboardInterrupt

    monkeypatch.setattr(fake_bench.Fake, "fit_many", stop)
    with pytest.raises(KeyboardInterrupt):
        run_cells(cells, rows, said.append)
    assert rows.missing(cells[0]) == []
    assert rows.of(cells[1]) == []


def test_a_killed_benchmark_goes_on_where_it_was(tmp_path):
    """SIGKILL after the first cell; what was finished is there, byte for byte, after the second."""
    script = [sys.executable, fake_bench.__file__, str(tmp_path)]
    first = tmp_path / "toy" / "bimodal--mdn.jsonl"
    last = tmp_path / "toy" / "ring--mdn.jsonl"
    with subprocess.Popen([*script, "1.0"], stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while not (first.exists() and len(first.read_bytes().splitlines()) == 3):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not last.exists()
    before = first.read_bytes()
    subprocess.run([*script, "0"], check=True, stdout=subprocess.DEVNULL)
    assert first.read_bytes() == before
    assert [json.loads(line)["run"] for line in last.read_bytes().splitlines()] == [0, 1, 2]
    assert not list(tmp_path.rglob("*.partial"))


def test_uci_is_scored_by_its_samples(tmp_path, said, monkeypatch):
    """On kin8nm, whose RMSE the paper multiplies by 100: y is 3 everywhere, the samples N(0, 1)."""

    class Table:
        X, y = np.zeros((40, 2)), np.full(40, 3.0)

        def fold(self, k):
            return np.arange(30), np.arange(30, 40)

    monkeypatch.setattr("nkcme.datasets.uci.load_uci", lambda name: Table())
    cell = fake_bench.cell(
        "kin8nm", experiment="uci", protocol={"draws": "independent", "n_draws": 1000}
    )
    rows = Rows(tmp_path)
    run_cells([cell], rows, said.append)
    row = rows.of(cell)[1]
    assert row["bins"] == [0] * 9 + [10]
    assert row["metrics"]["qice_percent"] == pytest.approx(100 * (0.9 + 9 * 0.1) / 10)
    means = np.random.default_rng(1).normal(size=(1000, 10)).mean(axis=0)
    assert row["metrics"]["rmse"] == pytest.approx(100 * np.sqrt(np.mean((3 - means) ** 2)))
    assert row["metrics"]["coverage"] == 0


def test_draws_by_quantiles_are_the_mid_quantiles():
    X, y = TOYS["skewed"].make(200, 0)
    model = NKCME(**presets.QUICK, hidden=(4,), n_atoms=5, epochs=1, random_state=0).fit(X, y)
    found = draw(model, X[:3], "quantiles", 4, seed=0)
    assert np.array_equal(found, model.predict_quantiles(X[:3], [0.125, 0.375, 0.625, 0.875]).T)


# --------------------------------------------------------------------------------- the command line


@pytest.fixture
def tiny_cells(monkeypatch):
    """The toy benchmark with one method that is in no time fitted, and one that fails."""
    cells = [
        fake_bench.cell("ring"),
        fake_bench.cell("ring", method="nsf", parameters={"broken": "fit"}),
    ]
    monkeypatch.setattr(specs, "toy_cells", lambda quick: cells)


def test_the_command_exits_with_one_when_a_run_failed(tiny_cells, tmp_path, capsys):
    rows = ["--rows", str(tmp_path)]
    assert run(["toy", "--methods", "mdn", *rows]) == 0
    assert run(["toy", *rows]) == 1
    captured = capsys.readouterr()
    assert "3 of 3 runs failed" in captured.err
    assert "1 of 2 cells were finished before" in captured.err
    assert "failed (0 of 3)" in captured.out


def test_fewer_seeds_can_be_asked_for(tiny_cells, tmp_path):
    assert run(["toy", "--methods", "mdn", "--seeds", "2", "--rows", str(tmp_path)]) == 0
    assert Rows(tmp_path).missing(fake_bench.cell("ring")) == [2]


@pytest.mark.parametrize("option", ["--methods", "--sets"])
def test_an_unknown_name_is_one_line(option, tmp_path, capsys):
    assert run(["toy", option, "nothing", "--rows", str(tmp_path)]) == 2
    told = capsys.readouterr().err.strip()
    assert "nothing" in told
    assert len(told.splitlines()) == 1


def test_an_estimator_that_is_not_there_is_said(tmp_path, said):
    rows, cell = Rows(tmp_path), fake_bench.cell(estimator="Nobody")
    assert run_cells([cell], rows, said.append).failed == 3
    assert "needs the estimator Nobody" in rows.of(cell)[0]["error"]


def test_scaling_splits_a_fit_into_steps_and_the_rest(tmp_path, said, monkeypatch):
    """An estimator of 2 s plus 10 ms a step, by a clock that only it moves."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    class Clockwork:
        def __init__(self, **parameters):
            self.parameters = parameters

        def set_params(self, **changes):
            self.parameters |= changes
            return self

        def fit(self, X, y):
            self.n_steps_ = len(X) // 256 * self.parameters["epochs"]
            now[0] += 2.0 + 0.01 * self.n_steps_

        def predict_interval(self, X):
            now[0] += 0.5

    monkeypatch.setitem(ESTIMATORS, "Clockwork", Clockwork)
    cell = fake_bench.cell(
        "1000", experiment="scaling", estimator="Clockwork", parameters={"epochs": 7},
        protocol={"n_inputs": 3, "n_predicted": 10}, n_runs=1,
    )  # fmt: skip
    rows = Rows(tmp_path)
    run_cells([cell], rows, said.append)
    (row,) = rows.finished(cell)
    assert row["metrics"]["seconds_a_step"] == pytest.approx(0.01)
    assert row["metrics"]["seconds_without_steps"] == pytest.approx(2.0)
    assert row["metrics"]["fit_seconds"] == pytest.approx(2.0 + 0.01 * specs.SCALING_STEPS)
    assert row["metrics"]["predict_seconds"] == pytest.approx(0.5 * specs.SCALING_PREDICTED / 10)


def test_year_is_exercised_on_a_generated_table(tmp_path, said):
    cell = dataclasses.replace(
        specs.year_cells()[0],
        parameters={"hidden": (4,), "n_atoms": 5, "epochs": 1, "batch_size": 50},
        protocol={"n_rows": 300, "n_inputs": 4, "n_test": 100},
    )
    rows = Rows(tmp_path)
    run_cells([cell], rows, said.append)
    (row,) = rows.finished(cell)
    assert row["metrics"]["steps"] == 4
    assert row["metrics"]["seconds_a_step"] == row["metrics"]["fit_seconds"] / 4
    assert 0.01 < row["metrics"]["host_gib_peak"] < 64
