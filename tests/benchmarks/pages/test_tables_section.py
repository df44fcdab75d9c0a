"""The page's section on tables in CSV files."""

from __future__ import annotations

import pytest

from benchmarks.experiments.cell import Cell
from benchmarks.experiments.rows import Rows
from benchmarks.pages.page import page
from nkcme import metrics

SCORES = {"rmse": 2.0, "coverage_50": 0.5, "coverage": 0.9, "coverage_99": 0.99, "width": 4.0}


def put(rows, method, run, crps, **more):
    """Write a row of a table with two folds."""
    cell = Cell("tables", "houses", method, "NKCME", {}, {"n_folds": 2}, 2)
    row = {
        "dataset": cell.dataset, "method": method, "estimator": cell.estimator, "parameters": {},
        "protocol": cell.protocol, "fingerprint": cell.fingerprint, "run": run,
        "metrics": SCORES | {"crps": crps, "nll": 1.5, "nll_not_finite": 3},
        "bins": [20, 0] * 5 if run else [0, 20] * 5,
        "seconds": {"fit_all": 6.0, "fitted_together": 2, "predict": 0.25},
        "device": "abacus", "commit": "c0ffee", "versions": {}, "when": f"2026-01-0{run + 1}",
    }  # fmt: skip
    rows.put(cell, row | more)


@pytest.fixture
def rows(tmp_path):
    return Rows(tmp_path)


def section(rows):
    return page(rows, {}, {}).partition("## Other tables")[2].partition("\n## ")[0]


def test_without_rows_there_is_no_section(rows):
    assert "Other tables" not in page(rows, {}, {})


def test_a_line_has_the_pooled_scores_of_a_method(rows):
    for run, crps in enumerate([1.0, 3.0]):
        put(rows, "nkcme", run, crps)
    missing = {"nll": None, "nll_not_finite": None, "coverage_99": None}
    put(rows, "treeffuser", 1, 2.0, peer={"treeffuser": "9.9"},
        metrics=SCORES | {"crps": 2.0} | missing)  # fmt: skip
    text = section(rows)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    found = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
    floors = [f"{100 * metrics.qice_floor(n):.2f}" for n in (200, 100)]
    assert found[2:] == [
        # The two folds have opposite errors: together a QICE of 0.
        ["houses", "NKCME()", "2", "2.00 ± 1.00", "0.500", "0.900", "0.990", "0.00", floors[0],
         "1.500", "6", "3", "0.25", ""],
        ["", "Treeffuser", "1 of 2", "2.00", "0.500", "0.900", "", "10.00", floors[1],
         "", "", "3", "0.25", "1.500"],
    ]  # fmt: skip
    assert "Versions: Treeffuser 9.9." in text
    assert "| 3 | abacus | `c0ffee` |" in page(rows, {}, {})


def test_failed_folds_are_listed(rows):
    put(rows, "nkcme", 0, 1.0)
    put(rows, "nkcme", 1, 1.0, error="KeyError: 'x'")
    assert "houses, NKCME(): 1 of 2 folds; 1 failed: `KeyError: 'x'`" in section(rows)
