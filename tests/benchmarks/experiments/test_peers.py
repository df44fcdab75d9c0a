"""What people use instead: asked in environments of their own, scored as ours are."""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.app import run
from benchmarks.experiments import peer_program, peers, specs
from benchmarks.experiments.rows import Rows
from benchmarks.experiments.run import run_cells
from benchmarks.pages.page import page, result_text
from support import fake_peers


class Table:
    """y ~ N(x_1, 1): what the fake peers say, so that they are right."""

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
    place = tmp_path_factory.mktemp("peers")
    fake_peers.make(place)
    return place


@pytest.fixture
def table(monkeypatch):
    made = Table()
    monkeypatch.setattr("nkcme.datasets.uci.load_uci", lambda name: made)
    return made


@pytest.fixture
def said():
    return []


def cells(n_runs=1, dataset="boston", **which):
    return specs.choose(specs.peer_cells(), sets=[dataset], n_runs=n_runs, **which)


# ------------------------------------------------------------------------------------------- asking


def test_the_peers_are_scored_by_the_closed_forms_of_what_they_say(
    home, table, tmp_path, said, monkeypatch
):
    monkeypatch.setenv(peers.HOME_VARIABLE, str(home))
    rows = Rows(tmp_path)
    assert run_cells(cells(), rows, said.append).failed == 0
    z = table.z[10:]
    crps = z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi)
    counts = np.bincount((10 * norm.cdf(z)).astype(int), minlength=10)
    for cell in cells():
        (row,) = rows.finished(cell)
        scores = row["metrics"]
        # 50 draws miss the mean by a variance of 1 / 50 more, and their interval is wider (by 5 %)
        # so that it holds 90 % of the y all the same.
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


def test_few_draws_do_not_pass_for_a_narrow_prediction():
    """20 draws of the truth: read as they stand, their 90 % intervals would hold 81 % of the y."""
    rng = np.random.default_rng(0)
    draws, y = rng.normal(size=(20, 10_000)), rng.normal(size=10_000)
    (cell,) = cells(dataset="protein", methods=["treeffuser"])
    assert cell.protocol["n_draws"] == 20
    found = peers.score(cell, peers.Answer(draws, draws.mean(axis=0), 0.0, 0.0, {}), y)
    # Four standard errors of a share, and of a mean of CRPS, whose deviation is near 0.5.
    assert found["metrics"]["coverage"] == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 10_000))
    assert found["metrics"]["crps"] == pytest.approx(1 / np.sqrt(np.pi), abs=4 * 0.5 / 100)
    assert found["metrics"]["qice_percent"] < 0.5
    assert found["metrics"]["rmse"] == pytest.approx(np.sqrt(1 + 1 / 20), abs=0.02)


def test_the_rmse_is_scaled_as_the_papers(home):
    cell = cells(dataset="kin8nm", methods=["ngboost"])[0]
    answer = peers.Answer(np.zeros((5, 4)), np.zeros(4), 0.0, 0.0, {})
    assert peers.score(cell, answer, np.full(4, 0.25))["metrics"]["rmse"] == pytest.approx(25.0)


def test_a_fold_that_fails_is_one_line_and_the_others_go_on(home, tmp_path, said, monkeypatch):
    monkeypatch.setenv(peers.HOME_VARIABLE, str(home))
    monkeypatch.setattr("nkcme.datasets.uci.load_uci", lambda name: Table(shift=1e7))
    (cell,) = cells(3, methods=["ngboost"])
    rows = Rows(tmp_path)
    assert run_cells([cell], rows, said.append).failed == 1
    assert [row["run"] for row in rows.finished(cell)] == [0, 2]
    assert rows.of(cell)[1]["error"] == "NkcmeError: ngboost failed: for seed 1"


# ------------------------------------------------------------------------------------- environments


def test_what_cannot_be_installed_is_one_line_in_every_row_and_tried_once(
    table, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv(peers.HOME_VARIABLE, str(tmp_path / "peers"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    tried = []
    real = subprocess.run

    def counted(command, **options):
        tried.append(command)
        return real(command, **options)

    monkeypatch.setattr(peers.subprocess, "run", counted)
    which = ["--methods", "ngboost", "--sets", "boston", "--folds", "2"]
    assert run(["uci", "--peers", *which, "--rows", str(tmp_path)]) == 1
    told = capsys.readouterr()
    assert "2 FAILED: NkcmeError: ngboost>=0.5 cannot be installed: ERROR: No matching" in told.err
    assert "; pip must reach a package index" in told.err
    assert "Traceback" not in told.err
    assert len(tried) == 2  # venv and pip
    (cell,) = cells(2, methods=["ngboost"])
    errors = [row["error"] for row in Rows(tmp_path).of(cell)]
    assert len(errors) == 2
    assert all(len(error.splitlines()) == 1 for error in errors)
    assert not any((tmp_path / "peers").iterdir())


def test_an_environment_that_is_there_is_not_made_again(home, monkeypatch):
    monkeypatch.setenv(peers.HOME_VARIABLE, str(home))
    monkeypatch.setattr(peers.subprocess, "run", None)
    assert peers.environment("ngboost").exists()


@pytest.mark.parametrize("stamp", [None, "ngboost>=0.1"])
def test_one_that_was_not_finished_or_is_of_another_requirement_is(stamp, tmp_path, monkeypatch):
    monkeypatch.setenv(peers.HOME_VARIABLE, str(tmp_path))
    place = tmp_path / peers.folder("ngboost")
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").touch()
    if stamp is not None:
        (place / peers.STAMP).write_text(stamp)
    done = subprocess.CompletedProcess([], 0, "", "")
    commands = []
    monkeypatch.setattr(peers.subprocess, "run", lambda c, **_: (commands.append(c), done)[1])
    peers.environment("ngboost")
    assert [("venv" in c, "pip" in c) for c in commands] == [(True, False), (False, True)]
    assert commands[1][-1] == "ngboost>=0.5"
    assert (place / peers.STAMP).read_text() == "ngboost>=0.5"


def test_ctrl_c_leaves_nothing_half_written(home, table, tmp_path, said, monkeypatch):
    scratch, made = tmp_path / "scratch", tmp_path / "peers"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))

    def stop(command, **_):
        if "venv" in command:
            (made / peers.folder("ngboost")).mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(peers.subprocess, "run", stop)
    for place in (home, made):  # while a peer is asked, and while it is installed
        monkeypatch.setenv(peers.HOME_VARIABLE, str(place))
        rows = Rows(tmp_path / "rows")
        (cell,) = cells(methods=["ngboost"])
        with pytest.raises(KeyboardInterrupt):
            run_cells([cell], rows, said.append)
        assert rows.of(cell) == []
        assert not list(scratch.iterdir())
    assert not list(made.iterdir())


# ------------------------------------------------------------------------------- cells and the page


def test_every_peer_is_run_on_the_first_folds_of_every_set():
    ours = {cell.dataset: cell.n_runs for cell in specs.uci_cells()}
    found = specs.peer_cells()
    assert Counter(cell.method for cell in found) == dict.fromkeys(specs.PEERS, len(ours))
    assert all(1 <= cell.n_runs <= ours[cell.dataset] for cell in found)
    assert not {cell.name for cell in found} & {cell.name for cell in specs.uci_cells()}
    assert set(peer_program._PEERS) == set(specs.PEERS)


def test_peers_are_run_only_when_asked_for(tmp_path, capsys):
    assert run(["uci", "--methods", "ngboost", "--rows", str(tmp_path)]) == 2
    assert "there is no method 'ngboost'" in capsys.readouterr().err


def put(rows, cell, run, crps, **more):
    rows.put(
        cell,
        {
            "run": run, "fingerprint": cell.fingerprint, "bins": [10] * 10,
            "metrics": {
                "crps": crps, "rmse": 2.0, "qice_percent": 3.0, "coverage": 0.9, "width": 4.0,
            },
            "seconds": {"fit_all": 6.0, "fitted_together": 3, "sample": 0.5, "predict": 0.25},
            "device": "abacus", "commit": "c0ffee", "versions": {}, "when": "2026-01-02T03",
            **more,
        },
    )  # fmt: skip


def test_the_page_has_theirs_beside_ours_on_common_folds(tmp_path):
    rows = Rows(tmp_path)
    (ours,) = specs.choose(specs.uci_cells(), methods=["nkcme"], sets=["boston"])
    for fold, crps in enumerate([1.0, 2.0, 6.0]):
        put(rows, ours, fold, crps)
    (theirs,) = cells(20, methods=["treeffuser"])
    for fold in (0, 1):
        put(rows, theirs, fold, 2.0, peer={"treeffuser": "9.9", "scikit-learn": "1.5"})
    text = page(rows, {}, {}).partition("## What people use instead")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    found = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
    scores = ["2.00 ± 0.00", "3.00 ± 0.00", "0.900 ± 0.000", "4.00 ± 0.00"]
    end = ["2", "0.25", "abacus"]
    assert found[2] == ["boston", "NKCME()", "3", "exact", "3.00 ± 2.16", *scores, *end, ""]
    # On the folds both have: (1 + 2) / (2 + 2).
    assert found[3] == ["", "Treeffuser", "2", "50", "2.00 ± 0.00", *scores, *end, "0.750"]
    assert len(found) == 4
    assert "boston, Treeffuser: 2 of 20 folds" in text
    assert "boston, NGBoost: 0 of 20 folds" in text
    assert "Treeffuser 9.9 (scikit-learn 1.5)." in text
    assert "Treeffuser" in result_text([ours, theirs], rows)
    # They are no columns of the paper's tables.
    assert "Treeffuser" not in page(rows, {}, {}).partition("## What people use instead")[0]


def test_without_rows_the_section_says_so(tmp_path):
    text = page(Rows(tmp_path), {}, {})
    section = text.partition("## What people use instead")[2].partition("\n## ")[0]
    assert "No rows yet." in section
