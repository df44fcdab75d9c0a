"""The protocol of CSV files: fits of all folds together, and peers, scored alike."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.cli.app import run
from benchmarks.experiments import peers, table_specs
from benchmarks.experiments.methods import PEERS
from benchmarks.experiments.protocols.tables import as_numbers
from benchmarks.experiments.rows import Rows
from benchmarks.experiments.table_files import find_tables, load_table
from nkcme import presets
from nkcme.estimators import ESTIMATORS
from support import fake_bench, fake_peers, table_folder

TINY = presets.QUICK | {"hidden": (4,), "n_atoms": 5, "epochs": 1}


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    """A folder of tables, and x and z of y = x + z."""
    folder = tmp_path_factory.mktemp("tables")
    return folder, *table_folder.make(folder)


def rows_of(rows, method, table="numbered"):
    """The rows on disk of a method on a table."""
    store = Rows(rows)
    (cell,) = [c for c in table_specs.recorded_cells(store) if c.name == f"{table}--{method}"]
    return store.of(cell)


# --- this library's methods -------------------------------------------------------------------


def test_the_folds_are_fitted_together_and_finished_ones_not_again(
    truth, tmp_path, capsys, monkeypatch
):
    """The only "blue" is in fold 1, so its training rows have other encoded columns."""
    folder, *_ = truth
    monkeypatch.setitem(table_specs.OUR_PARAMETERS, "nkcme-quick", TINY)
    words = ["tables", str(folder), "--tables", "numbered", "--methods", "nkcme-quick"]
    words += ["--rows", str(tmp_path)]
    assert run([*words, "--folds", "3"]) == 0
    assert "| numbered | quick | 3 of 4 |" in capsys.readouterr().out
    found = rows_of(tmp_path, "nkcme-quick")
    assert [row["seconds"]["fitted_together"] for row in found] == [2, 1, 2]
    for row in found:
        assert set(row["metrics"]) == {
            "crps", "rmse", "nll", "nll_not_finite", "qice_percent", "coverage_50", "coverage",
            "coverage_99", "width", "below_0.001", "above_0.999",
        }  # fmt: skip
        assert sum(row["bins"]) == table_folder.N_ROWS / table_folder.N_FOLDS
        assert row["commit"]
        assert row["protocol"]["target"] == "y"
        assert row["seconds"]["predict"] > 0
    assert run(words) == 0
    again = rows_of(tmp_path, "nkcme-quick")
    assert again[:3] == found
    assert again[3]["seconds"]["fitted_together"] == 1


def test_scores_are_those_of_the_distribution(truth, tmp_path, monkeypatch):
    """The fake predicts N(0, 1), and reports |y| as its CRPS."""
    folder, x, z = truth
    monkeypatch.setitem(ESTIMATORS, "Fake", fake_bench.Fake)
    quick = table_specs.METHODS["nkcme-quick"]._replace(estimator="Fake")
    monkeypatch.setitem(table_specs.METHODS, "nkcme-quick", quick)
    monkeypatch.setitem(table_specs.OUR_PARAMETERS, "nkcme-quick", {})
    path = str(folder / "shuffled.csv")
    words = ["--methods", "nkcme-quick", "--split", "3", "--rows", str(tmp_path)]
    assert run(["tables", path, *words]) == 0
    data = load_table(find_tables(folder / "shuffled.csv")[0], 3)
    for row in rows_of(tmp_path, "nkcme-quick", "shuffled"):
        y = (x + z)[data.fold(row["run"])[1]]
        scores = row["metrics"]
        assert scores["crps"] == pytest.approx(np.abs(y).mean())
        assert scores["nll"] == pytest.approx(-norm.logpdf(y).mean())
        assert scores["coverage_50"] == np.mean(np.abs(y) <= norm.ppf(0.75))
        assert row["bins"] == np.bincount((10 * norm.cdf(y)).astype(int), minlength=10).tolist()


# --- peers ------------------------------------------------------------------------------------


def test_peers_are_scored_by_the_closed_forms_of_their_predictions(
    truth, tmp_path, capsys, monkeypatch
):
    """The fakes predict N(x, 1), which is the truth."""
    folder, _, z = truth
    home, rows = tmp_path / "peers", tmp_path / "rows"
    fake_peers.make(home)
    monkeypatch.setenv(peers.HOME_VARIABLE, str(home))
    words = ["--sets", "numbered", "--methods", ",".join(PEERS), "--peers", "--folds", "1"]
    assert run(["tables", str(folder), *words, "--rows", str(rows)]) == 0
    assert "| LightGBM | 1 of 4 |" in capsys.readouterr().out
    z = z[:: table_folder.N_FOLDS]
    crps = np.mean(z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    for method in PEERS:
        ((row),) = rows_of(rows, method)
        scores, few = row["metrics"], method == "treeffuser"
        fitted = method in ("catboost", "lightgbm")  # interpolated between 23 levels
        assert scores["crps"] == pytest.approx(crps, rel=0.1 if few else 0.01 if fitted else 1e-3)
        assert scores["rmse"] == pytest.approx(np.sqrt(np.mean(z**2)), rel=0.05 if few else 1e-6)
        if not few:
            assert scores["coverage"] == np.mean(np.abs(z) <= norm.ppf(0.95))
            assert scores["width"] == pytest.approx(2 * norm.ppf(0.95))
            assert scores["below_0.001"] == np.mean(z < norm.ppf(0.001))
        assert (scores["coverage_99"] is None) == few
        expected = -norm.logpdf(z).mean() if method == "ngboost" else None
        assert scores["nll"] == (expected if expected is None else pytest.approx(expected))
        assert row["peer"][method] == "9.9"


def test_categories_become_codes(truth):
    folder, x, _ = truth
    frame = load_table(find_tables(folder, names=["numbered"])[0], 2).X
    frame.loc[7, "colour"] = None
    numbers, categories = as_numbers(frame)
    assert categories == (1,)
    assert np.array_equal(numbers[:, 0], x)
    names = np.array(["blue", "green", "red"])
    known = np.arange(len(x)) != 7
    assert numbers[7, 1] == -1
    assert np.array_equal(names[numbers[known, 1].astype(int)], frame["colour"][known])
