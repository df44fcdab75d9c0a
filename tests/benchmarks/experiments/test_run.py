"""Running a benchmark: every run becomes a row, finished runs are kept, failures are rows too."""

from __future__ import annotations

import dataclasses
import signal
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.experiments.rows import Rows
from benchmarks.experiments.run import run_cells, run_cells_on_cluster
from nkcme.estimators import ESTIMATORS
from support import fake_bench


@pytest.fixture(autouse=True)
def _fake_estimator(monkeypatch):
    monkeypatch.setitem(ESTIMATORS, "Fake", fake_bench.Fake)


@pytest.fixture
def notes():
    return []


def test_a_row_has_configuration_provenance_and_result(tmp_path, notes):
    rows, cell = Rows(tmp_path), fake_bench.cell()
    tally = run_cells([cell], rows, notes.append)
    assert (tally.run, tally.failed, tally.already_there) == (3, 0, 0)
    found = rows.of(cell)
    assert [row["run"] for row in found] == [0, 1, 2]
    row = found[2]
    assert (row["experiment"], row["dataset"], row["method"]) == ("toy", "ring", "mdn")
    assert (row["parameters"], row["protocol"]) == (cell.parameters, cell.protocol)
    assert row["seconds"]["fitted_together"] == 3
    for name in ("when", "commit", "device", "versions", "python"):
        assert row[name]
    assert "(paper 26.66 +- 0.8)" in notes[0]


def test_finished_runs_are_not_run_again(tmp_path, notes):
    rows, cell = Rows(tmp_path), fake_bench.cell()
    run_cells([dataclasses.replace(cell, n_runs=2)], rows, notes.append)
    before = rows.path(cell).read_bytes().splitlines()
    tally = run_cells([cell], rows, notes.append)
    assert (tally.run, tally.already_there) == (1, 0)
    after = rows.path(cell).read_bytes().splitlines()
    assert after[:2] == before
    assert run_cells([cell], rows, notes.append).already_there == 1
    assert rows.path(cell).read_bytes().splitlines() == after


def test_the_result_of_a_seed_does_not_depend_on_the_others(tmp_path, notes):
    cell = fake_bench.cell()
    together, apart = Rows(tmp_path / "together"), Rows(tmp_path / "apart")
    run_cells([cell], together, notes.append)
    for n_runs in (1, 2, 3):
        run_cells([dataclasses.replace(cell, n_runs=n_runs)], apart, notes.append)
    for one, other in zip(together.of(cell), apart.of(cell), strict=True):
        assert one["metrics"] == other["metrics"]


def test_rows_of_another_recipe_are_replaced(tmp_path, notes):
    rows, cell = Rows(tmp_path), fake_bench.cell()
    run_cells([cell], rows, notes.append)
    changed = dataclasses.replace(cell, parameters={"random_state": 5})
    assert rows.missing(changed) == [0, 1, 2]
    assert rows.of(changed) == []
    run_cells([changed], rows, notes.append)
    assert rows.missing(changed) == []
    assert len(rows.path(cell).read_bytes().splitlines()) == 3


def test_a_failed_fit_is_a_row_for_every_run_and_the_next_cell_follows(tmp_path, notes):
    rows = Rows(tmp_path)
    bad = fake_bench.cell("bimodal", parameters={"broken": "fit"})
    good = fake_bench.cell("ring")
    tally = run_cells([bad, good], rows, notes.append)
    assert (tally.run, tally.failed) == (6, 3)
    assert [row["error"] for row in rows.of(bad)] == ["RuntimeError: the fit failed"] * 3
    assert any("fit_many" in line for line in rows.of(bad)[0]["traceback"])
    assert rows.missing(bad) == [0, 1, 2]
    assert rows.missing(good) == []
    assert "3 FAILED: RuntimeError: the fit failed" in notes[0]


def test_only_the_failed_runs_of_a_cell_are_run_again(tmp_path, notes, monkeypatch):
    rows, cell = Rows(tmp_path), fake_bench.cell(parameters={"broken": "sample"})
    assert run_cells([cell], rows, notes.append).failed == 1
    assert rows.missing(cell) == [1]
    before = {row["run"]: row for row in rows.finished(cell)}
    monkeypatch.setattr(fake_bench.Fake, "sample", lambda self, X, n, **_: np.zeros((n, len(X))))
    assert run_cells([cell], rows, notes.append).run == 1
    after = {row["run"]: row for row in rows.finished(cell)}
    assert sorted(after) == [0, 1, 2]
    assert {k: after[k] for k in before} == before


def test_an_unknown_estimator_is_an_error_row(tmp_path, notes):
    rows, cell = Rows(tmp_path), fake_bench.cell(estimator="Nothing")
    assert run_cells([cell], rows, notes.append).failed == 3
    assert "needs the estimator Nothing" in rows.of(cell)[0]["error"]


def test_ctrl_c_keeps_finished_cells(tmp_path, notes, monkeypatch):
    rows, cells = Rows(tmp_path), [fake_bench.cell("bimodal"), fake_bench.cell("ring")]

    def fit_many(self, datasets, random_states):
        if rows.missing(cells[0]):
            return [fake_bench.Fake() for _ in datasets]
        raise KeyboardInterrupt

    monkeypatch.setattr(fake_bench.Fake, "fit_many", fit_many)
    with pytest.raises(KeyboardInterrupt):
        run_cells(cells, rows, notes.append)
    assert rows.missing(cells[0]) == []
    assert rows.of(cells[1]) == []


def test_a_killed_benchmark_continues_where_it_was(tmp_path, notes):
    """SIGKILL in the second cell; the first one is unchanged when the benchmark is run again."""
    command = [sys.executable, fake_bench.__file__, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    rows = Rows(tmp_path)
    first, second, third = cells = fake_bench.three_cells()
    before = rows.path(first).read_bytes()
    assert [len(rows.finished(cell)) for cell in cells] == [3, 0, 0]
    tally = run_cells(cells, rows, notes.append)
    assert (tally.already_there, tally.run, tally.failed) == (1, 6, 0)
    assert rows.path(first).read_bytes() == before
    assert rows.missing(second) == rows.missing(third) == []
    assert not list(tmp_path.rglob("*.partial"))


def test_runs_on_a_cluster_become_the_same_rows(tmp_path, notes, monkeypatch):
    """The tasks run here; tests/test_ray.py runs trials on a cluster."""
    monkeypatch.setattr(
        "benchmarks.experiments.trials.run_on_ray", lambda work, items, address: map(work, items)
    )
    cells = [fake_bench.cell(), fake_bench.cell(broken := "skewed", parameters={"broken": "fit"})]
    plain, cluster = Rows(tmp_path / "plain"), Rows(tmp_path / "cluster")
    run_cells(cells, plain, notes.append)
    run_cells_on_cluster([dataclasses.replace(cells[0], n_runs=1)], cluster, notes.append, "auto")
    notes.clear()
    tally = run_cells_on_cluster(cells, cluster, notes.append, "auto")
    assert (tally.cells, tally.already_there, tally.run, tally.failed) == (2, 0, 5, 3)
    assert notes[0] == "[1/5] ring mdn: run 1 finished"
    assert notes[-1] == f"[5/5] {broken} mdn: run 2 FAILED: RuntimeError: the fit failed"
    for cell in cells:
        found, wanted = cluster.of(cell), plain.of(cell)
        assert [row.get("metrics") for row in found] == [row.get("metrics") for row in wanted]
    assert not list(cluster.trials.iterdir())


def test_a_trial_that_has_a_file_is_not_run_again(tmp_path, notes, monkeypatch):
    """As after this process was stopped before it had stored the row."""
    monkeypatch.setattr(
        "benchmarks.experiments.trials.run_on_ray", lambda work, items, address: map(work, items)
    )
    rows, cell = Rows(tmp_path), fake_bench.cell(n_runs=1)
    monkeypatch.setattr("benchmarks.experiments.run.remove_trial", lambda folder, name: None)
    run_cells_on_cluster([cell], rows, notes.append, "auto")
    stored = rows.path(cell).read_bytes()
    rows.path(cell).unlink()
    monkeypatch.setattr("benchmarks.experiments.run._run_trial", None)
    run_cells_on_cluster([cell], rows, notes.append, "auto")
    assert rows.path(cell).read_bytes() == stored
