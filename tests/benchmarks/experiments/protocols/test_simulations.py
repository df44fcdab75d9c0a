"""The protocol of simulated tables: a perfect method, and one of ours made tiny."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.cli.app import run
from benchmarks.experiments import simulation_specs
from benchmarks.experiments.cell import choose
from benchmarks.experiments.protocols import perform
from benchmarks.experiments.rows import Rows
from nkcme import presets
from nkcme.estimators import ESTIMATORS
from support.oracle import Oracle

SMALL = {"n_train": 100, "n_test": 400, "n_points": 50}
TINY = presets.QUICK | {"hidden": (4,), "n_atoms": 5, "epochs": 1}


@pytest.fixture
def oracle_cell(monkeypatch):
    """A function from a design to its small cell for a method that knows its law."""
    monkeypatch.setitem(ESTIMATORS, "Oracle", Oracle)

    def make(design):
        (cell,) = choose(simulation_specs.simulation_cells(), methods=["nkcme"], sets=[design])
        return dataclasses.replace(
            cell,
            estimator="Oracle",
            parameters={"design": design},
            protocol=cell.protocol | SMALL,
            n_runs=2,
        )

    return make


COMMON = {"crps", "crps_oracle", "crps_ratio", "coverage_50", "coverage", "coverage_99", "width"}


def test_a_row_of_a_support_design_has_its_masses(oracle_cell):
    outcomes = dict(perform(oracle_cell("inflated-shares"), [0, 1]))
    scores = outcomes[1]["metrics"]
    assert set(scores) == COMMON | {
        "outside_bounds_percent", "between_values_percent", "mass_bias_points",
        "mass_error_points",
    }  # fmt: skip
    assert (scores["outside_bounds_percent"], scores["mass_error_points"]) == (0.0, 0.0)
    assert [mass["value"] for mass in outcomes[1]["point_masses"]] == [0.0, 1.0]
    assert outcomes[0]["seconds"]["fitted_together"] == 2
    assert outcomes[0]["metrics"] != scores


def test_a_row_of_a_shift_has_both_kinds_of_rows(oracle_cell):
    scores = dict(perform(oracle_cell("gap"), [0]))[0]["metrics"]
    assert set(scores) == COMMON | {f"shifted_{name}" for name in COMMON}
    for name in ("coverage", "shifted_coverage"):
        assert scores[name] == pytest.approx(0.9, abs=0.06)
    assert scores["crps"] != scores["shifted_crps"]


def test_a_row_of_branches_has_distances(oracle_cell):
    scores = dict(perform(oracle_cell("three-lines"), [0]))[0]["metrics"]
    assert set(scores) == COMMON | {"was1_x100", "was1_oracle_x100", "was1_ratio"}
    assert scores["was1_ratio"] == pytest.approx(1.0)


def test_the_command_runs_designs_of_a_family_and_finished_seeds_not_again(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setitem(simulation_specs.OUR_PARAMETERS, "nkcme-quick", TINY)
    monkeypatch.setattr(simulation_specs, "_N_TEST", 50)
    kept = ("binary", "gap", "three-lines")
    small = {
        name: dataclasses.replace(simulation_specs.DESIGNS[name], n_train=100) for name in kept
    }
    monkeypatch.setattr(simulation_specs, "DESIGNS", small)
    words = ["simulations", "--methods", "nkcme-quick", "--runs", "2", "--rows", str(tmp_path)]
    assert run([*words, "--designs", "support,three-lines"]) == 0
    printed = capsys.readouterr().out
    assert "| binary | quick | 2 | 0 | 0 |" in printed
    assert "| three-lines | quick | 2 |" in printed
    assert "gap" not in printed
    assert run(words) == 0
    captured = capsys.readouterr()
    assert "2 of 3 cells were already finished" in captured.err
    assert "| gap | quick | 2 |" in captured.out
    (cell,) = choose(
        simulation_specs.simulation_cells(), methods=["nkcme-quick"], sets=["binary"], n_runs=2
    )
    found = Rows(tmp_path).finished(cell)
    assert [row["seconds"]["fitted_together"] for row in found] == [2, 2]
    for name in ("commit", "device", "versions", "parameters", "fingerprint"):
        assert found[0][name]


def test_the_name_of_a_family_stands_for_its_designs():
    named = simulation_specs.named_designs(["shift", "counts", "moon"])
    assert named == [
        "beyond-range", "gap", "new-combination", "moved-inputs", "counts", "moon",
    ]  # fmt: skip


def test_cells_have_the_size_and_the_digest_of_their_design():
    for cell in simulation_specs.simulation_cells():
        design = simulation_specs.DESIGNS[cell.dataset]
        assert cell.protocol["design"] == design.digest()
        assert 2000 <= cell.protocol["n_train"] == design.n_train <= 6000
        assert simulation_specs.progress_metrics(cell)
