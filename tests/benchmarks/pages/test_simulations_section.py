"""The page's section on simulated tables."""

from __future__ import annotations

import pytest

from benchmarks.experiments import simulation_specs
from benchmarks.experiments.cell import choose
from benchmarks.experiments.rows import Rows
from benchmarks.pages.page import page, result_text

COMMON = {"crps_ratio": 1.02, "coverage_50": 0.5, "coverage": 0.9, "coverage_99": 0.99, "width": 2}


@pytest.fixture
def rows(tmp_path):
    return Rows(tmp_path)


def cell_of(design):
    (cell,) = choose(simulation_specs.simulation_cells(), methods=["nkcme"], sets=[design])
    return cell


def put(rows, design, run, scores, **more):
    cell = cell_of(design)
    row = {
        "run": run, "fingerprint": cell.fingerprint, "metrics": COMMON | scores,
        "seconds": {"fit_all": 6.0, "fitted_together": 2, "predict": 0.25},
        "device": "abacus", "commit": "c0ffee", "versions": {}, "when": "2026-01-01",
    }  # fmt: skip
    rows.put(cell, row | more)


def lines_of(text):
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def section(rows):
    return page(rows, {}, {}).partition("## Simulations")[2].partition("\n## ")[0]


def test_without_rows_there_is_no_section(rows):
    assert "## Simulations" not in page(rows, {}, {})
    assert result_text([cell_of("gap")], rows) == "No run is finished."


def test_masses_are_the_largest_and_biases_the_mean_of_all_runs(rows):
    """Opposite biases at 0 cancel; those at 1 do not."""
    for run, at_zero in enumerate([3.0, -3.0]):
        masses = [
            {"value": 0.0, "true": 20.0, "predicted": 20.0 + at_zero, "error": 5.0, "noise": 0.4},
            {"value": 1.0, "true": 10.0, "predicted": 9.5, "error": 2.0, "noise": 0.4},
        ]
        found = {"outside_bounds_percent": 1e-14 + 0.5 * run, "between_values_percent": None}
        put(rows, "inflated-shares", run, found, point_masses=masses)
    assert lines_of(section(rows))[2:] == [
        ["inflated-shares", "NKCME()", "2 of 5", "0.5", "", "−0.50 at 1", "2.00", "0.28",
         "1.020", "0.900"],
    ]  # fmt: skip
    assert "| 2 | abacus | `c0ffee` |" in page(rows, {}, {})


def test_rounding_errors_are_no_mass_and_designs_without_point_masses_have_none(rows):
    scores = {"outside_bounds_percent": 0.0, "between_values_percent": 2e-14}
    put(rows, "whole-prices", 0, scores, point_masses=[])
    (line,) = lines_of(section(rows))[2:]
    assert line[3:8] == ["0", "0", "", "", ""]


def test_each_family_has_its_table(rows):
    put(rows, "gap", 0, {f"shifted_{name}": value / 2 for name, value in COMMON.items()})
    put(rows, "three-lines", 0, {"was1_x100": 12.0, "was1_oracle_x100": 8.0, "was1_ratio": 1.5})
    text = section(rows)
    assert "### Support" not in text
    gap, lines = (line for line in lines_of(text) if line[1] == "NKCME()")
    assert gap[3:] == ["0.250", "0.450", "0.495", "1.000", "0.500", "0.900", "0.990", "2.000"]
    assert lines[3:] == ["12.000", "8.000", "1.500", "1.020", "0.900"]
    printed = result_text([cell_of("gap"), cell_of("three-lines")], rows)
    assert printed.count("NKCME()") == 2


def test_failed_runs_are_listed(rows):
    put(rows, "gap", 0, {}, error="KeyError: 'x'")
    assert "gap, NKCME(): 0 of 5 runs; 1 failed: `KeyError: 'x'`" in section(rows)
