"""Packages of others: run in separate environments, and scored like our methods."""

from __future__ import annotations

import subprocess
import tempfile

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.cli.app import run
from benchmarks.experiments import peers, specs
from benchmarks.experiments.cell import choose
from benchmarks.experiments.rows import Rows
from benchmarks.experiments.run import run_cells
from support import fake_peers


class Table:
    """y ~ N(x_1, 1), which is what the fake peers predict."""

    n_test = 2000

    def __init__(self, shift=0.0):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(self.n_test + 10, 2))
        self.z = rng.normal(size=len(self.X))
        self.y = self.X[:, 0] + self.z + shift

    def fold(self, k):
        return np.arange(10), np.arange(10, len(self.X))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A directory of environments with fake peers."""
    place = tmp_path_factory.mktemp("peers")
    fake_peers.make(place)
    return place


@pytest.fixture
def table(monkeypatch):
    made = Table()
    monkeypatch.setattr("nkcme.datasets.uci.load_uci", lambda name: made)
    return made


@pytest.fixture
def notes():
    return []


def cells(n_runs=1, dataset="boston", **which):
    return choose(specs.peer_cells(), sets=[dataset], n_runs=n_runs, **which)


# --- predictions and scores -------------------------------------------------------------------


def test_scores_agree_with_the_closed_forms_of_the_predictions(
    home, table, tmp_path, notes, monkeypatch
):
    monkeypatch.setenv(peers.HOME_VARIABLE, str(home))
    rows = Rows(tmp_path)
    assert run_cells(cells(), rows, notes.append).failed == 0
    z = table.z[10:]
    crps = z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi)
    counts = np.bincount((10 * norm.cdf(z)).astype(int), minlength=10)
    for cell in cells():
        (row,) = rows.finished(cell)
        scores = row["metrics"]
        # The mean of 50 draws has an additional variance of 1 / 50, and their interval is wider (by
        # 5 %) so that it still covers 90 %.
        few = cell.method == "treeffuser"
        assert scores["rmse"] == pytest.approx(np.sqrt(np.mean(z**2)), rel=0.03 if few else 1e-12)
        assert scores["crps"] == pytest.approx(crps.mean(), abs=0.01 if few else 2e-6)
        assert scores["width"] == pytest.approx(2 * norm.ppf(0.95), rel=0.07 if few else 1e-4)
        inside = np.mean(np.abs(z) <= norm.ppf(0.95))
        assert scores["coverage"] == pytest.approx(inside, abs=0.015 if few else 1e-3)
        assert sum(row["bins"]) == len(z)
        assert np.abs(np.array(row["bins"]) - counts).max() <= (40 if few else 3)
        assert row["seconds"]["fit_all"] >= 0
        assert row["seconds"]["fitted_together"] == 1
        assert row["peer"][cell.method] == "9.9"
        assert row["protocol"]["n_draws"] == (50 if few else 1000)


def test_few_draws_are_not_scored_as_a_narrow_prediction():
    """20 draws of the truth: their plain 5 and 95 % quantiles would cover 81 % instead of 90 %."""
    rng = np.random.default_rng(0)
    draws, y = rng.normal(size=(20, 10_000)), rng.normal(size=10_000)
    (cell,) = cells(dataset="protein", methods=["treeffuser"])
    assert cell.protocol["n_draws"] == 20
    found = peers.score(cell, peers.Prediction(draws, draws.mean(axis=0), 0.0, 0.0, {}), y)
    # Four standard errors of a share, and of a mean CRPS with a standard deviation near 0.5.
    assert found["metrics"]["coverage"] == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 10_000))
    assert found["metrics"]["crps"] == pytest.approx(1 / np.sqrt(np.pi), abs=4 * 0.5 / 100)
    assert found["metrics"]["qice_percent"] < 0.5
    assert found["metrics"]["rmse"] == pytest.approx(np.sqrt(1 + 1 / 20), abs=0.02)


def test_the_rmse_is_scaled_as_in_the_paper():
    cell = cells(dataset="kin8nm", methods=["ngboost"])[0]
    prediction = peers.Prediction(np.zeros((5, 4)), np.zeros(4), 0.0, 0.0, {})
    assert peers.score(cell, prediction, np.full(4, 0.25))["metrics"]["rmse"] == pytest.approx(25.0)


def test_a_failed_fold_is_one_line_and_the_others_follow(home, tmp_path, notes, monkeypatch):
    monkeypatch.setenv(peers.HOME_VARIABLE, str(home))
    monkeypatch.setattr("nkcme.datasets.uci.load_uci", lambda name: Table(shift=1e7))
    (cell,) = cells(3, methods=["ngboost"])
    rows = Rows(tmp_path)
    assert run_cells([cell], rows, notes.append).failed == 1
    assert [row["run"] for row in rows.finished(cell)] == [0, 2]
    assert rows.of(cell)[1]["error"] == "NkcmeError: ngboost failed: for seed 1"


# --- environments -----------------------------------------------------------------------------

#: What pip prints where it finds no package index.
NO_INDEX = """\
ERROR: Could not find a version that satisfies the requirement ngboost>=0.5 (from versions: none)
ERROR: No matching distribution found for ngboost>=0.5
WARNING: a warning after the error
"""


@pytest.fixture
def commands(monkeypatch):
    """Replaces programs by ones that only succeed; a list of the commands."""
    found = []

    def run(command, **_):
        found.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(peers.subprocess, "run", run)
    return found


def test_a_failed_installation_is_one_line_in_every_row_and_not_repeated(
    table, tmp_path, capsys, monkeypatch
):
    home, rows = tmp_path / "peers", tmp_path / "rows"
    monkeypatch.setenv(peers.HOME_VARIABLE, str(home))
    commands = []

    def run_program(command, **_):
        commands.append(command)
        if "venv" in command:
            (home / peers.folder("ngboost")).mkdir(parents=True)
            return subprocess.CompletedProcess(command, 0, "", "")
        return subprocess.CompletedProcess(command, 1, "", NO_INDEX)

    monkeypatch.setattr(peers.subprocess, "run", run_program)
    which = ["--methods", "ngboost", "--sets", "boston", "--folds", "2"]
    assert run(["uci", "--peers", *which, "--rows", str(rows)]) == 1
    error = capsys.readouterr().err
    expected = "ngboost>=0.5 cannot be installed: ERROR: No matching distribution found"
    assert f"2 FAILED: NkcmeError: {expected}" in error
    assert "; pip needs a package index" in error
    assert "Traceback" not in error
    assert [("venv" in c, "pip" in c) for c in commands] == [(True, False), (False, True)]
    (cell,) = cells(2, methods=["ngboost"])
    assert all(expected in row["error"] for row in Rows(rows).of(cell))
    assert not any(home.iterdir())


def test_a_complete_environment_is_not_made_again(home, commands, monkeypatch):
    monkeypatch.setenv(peers.HOME_VARIABLE, str(home))
    assert peers.environment("ngboost").exists()
    assert commands == []


@pytest.mark.parametrize("stamp", [None, "ngboost>=0.1"])
def test_an_incomplete_or_outdated_environment_is_made_again(
    stamp, commands, tmp_path, monkeypatch
):
    monkeypatch.setenv(peers.HOME_VARIABLE, str(tmp_path))
    place = tmp_path / peers.folder("ngboost")
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").touch()
    if stamp is not None:
        (place / peers.STAMP).write_text(stamp)
    peers.environment("ngboost")
    assert [("venv" in c, "pip" in c) for c in commands] == [(True, False), (False, True)]
    assert commands[1][-1] == "ngboost>=0.5"
    assert (place / peers.STAMP).read_text() == "ngboost>=0.5"


def test_ctrl_c_leaves_no_incomplete_files(home, table, tmp_path, notes, monkeypatch):
    """While a peer predicts, and while it is installed."""
    scratch, new_home = tmp_path / "scratch", tmp_path / "peers"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))

    def stop(command, **_):
        if "venv" in command:
            (new_home / peers.folder("ngboost")).mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(peers.subprocess, "run", stop)
    for place in (home, new_home):
        monkeypatch.setenv(peers.HOME_VARIABLE, str(place))
        rows = Rows(tmp_path / "rows")
        (cell,) = cells(methods=["ngboost"])
        with pytest.raises(KeyboardInterrupt):
            run_cells([cell], rows, notes.append)
        assert rows.of(cell) == []
        assert not list(scratch.iterdir())
    assert not list(new_home.iterdir())
