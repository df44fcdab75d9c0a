"""The cells of tables: what identifies their rows, and cells known from rows alone."""

from __future__ import annotations

import dataclasses
import json
import shutil

import pytest

from benchmarks.experiments.methods import PEERS
from benchmarks.experiments.rows import Rows
from benchmarks.experiments.table_files import find_tables
from benchmarks.experiments.table_specs import recorded_cells, table_cells
from nkcme.estimators import ESTIMATORS
from support import table_folder


@pytest.fixture
def folder(tmp_path):
    table_folder.make(tmp_path / "tables")
    return tmp_path / "tables"


def cells(folder, name, n_shuffled=10, peers=False):
    files = find_tables(folder, names=[name])
    return {cell.method: cell for cell in table_cells(files, n_shuffled=n_shuffled, peers=peers)}


def test_cells_are_json_and_their_parameters_are_accepted(folder):
    found = cells(folder, "numbered", peers=True)
    for method, cell in found.items():
        json.dumps([cell.parameters, cell.protocol])
        assert cell.n_runs == table_folder.N_FOLDS
        if method not in PEERS:
            ESTIMATORS[cell.estimator](**cell.parameters)
    assert set(found) & set(PEERS) == set(PEERS)
    assert not set(cells(folder, "numbered")) & set(PEERS)


def test_peers_have_at_least_500_trees(folder):
    found = cells(folder, "numbered", peers=True)
    names = ("n_estimators", "iterations", "num_iterations")
    trees = {}
    for method in set(PEERS) - {"treeffuser"}:  # its default is 3,000
        (trees[method],) = [n for name, n in found[method].parameters.items() if name in names]
    assert min(trees.values()) >= 500
    assert trees["catboost"] >= 1000
    assert len(found["catboost"].parameters["levels"]) >= 20


def test_rows_belong_to_the_data_and_its_folds_but_not_to_its_place(folder, tmp_path):
    cell = cells(folder, "shuffled")["nkcme"]
    assert cells(folder, "shuffled", n_shuffled=5)["nkcme"].fingerprint != cell.fingerprint
    moved = shutil.copytree(folder, tmp_path / "elsewhere")
    assert cells(moved, "shuffled")["nkcme"].fingerprint == cell.fingerprint
    with (moved / "shuffled.csv").open("a") as file:
        file.write("0.5,0.5\n")
    assert cells(moved, "shuffled")["nkcme"].fingerprint != cell.fingerprint


def test_cells_are_known_from_their_latest_rows(folder, tmp_path):
    rows = Rows(tmp_path / "rows")
    assert recorded_cells(rows) == []
    new = cells(folder, "numbered")["nkcme-quick"]
    old = dataclasses.replace(new, parameters={"epochs": 1})
    for run, (cell, when) in enumerate([(old, "2026-01-01"), (new, "2026-01-02")]):
        names = ("dataset", "method", "estimator", "parameters", "protocol", "fingerprint")
        about = {name: getattr(cell, name) for name in names}
        rows.put(cell, about | {"run": run, "when": when, "metrics": {"crps": 1.0}})
    (found,) = recorded_cells(rows)
    assert found.fingerprint == new.fingerprint
    assert found.name == new.name
    assert (found.n_runs, [row["run"] for row in rows.of(found)]) == (table_folder.N_FOLDS, [1])
