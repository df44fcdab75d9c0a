"""The page: made from rows alone, with missing, failed and worse cells listed."""

from __future__ import annotations

import re

import pytest

from benchmarks.cli.app import run
from benchmarks.experiments import specs
from benchmarks.experiments.cell import choose
from benchmarks.experiments.rows import Rows
from benchmarks.pages.document import draw_all, write_page
from benchmarks.pages.page import page, result_text
from benchmarks.pages.tables import WHY_EMPTY
from nkcme.errors import NkcmeError

SCORES = {"crps": 1.0, "nll": 1.0, "coverage": 0.9, "width": 1.0}


def row(cell, number, **metrics):
    return {
        "run": number, "fingerprint": cell.fingerprint, "metrics": metrics, "bins": [10] * 10,
        "seconds": {"fit_all": 6.0, "fitted_together": 3, "sample": 0.5, "predict": 0.25},
        "device": "abacus", "commit": "c0ffee", "versions": {"jax": "1"}, "when": "2026-01-02T03",
    }  # fmt: skip


@pytest.fixture
def cells():
    """The cells of the paper's tables by experiment, data set and method."""
    every = [*specs.toy_cells(), *specs.uci_cells()]
    return {(c.experiment, c.dataset, c.method): c for c in every}


@pytest.fixture
def rows(tmp_path):
    return Rows(tmp_path / "rows")


def section(text, title):
    return re.search(rf"^## {title}$(.*?)(?=^## |\Z)", text, re.M | re.S)[1]


def test_without_rows_every_cell_is_listed_as_missing_and_nothing_is_drawn(rows, tmp_path):
    assert draw_all(rows, tmp_path / "images") == {}
    assert not (tmp_path / "images").exists()
    text = page(rows, {}, {})
    n_cells = sum(c.dataset != "year" for c in [*specs.toy_cells(), *specs.uci_cells()])
    assert section(text, "Missing").count(" 0 of ") == n_cells
    assert "missing (0 of 10)" in section(text, "Toy data")
    assert text.count(WHY_EMPTY["year"]) == 2  # under QICE and under RMSE
    assert "No finished cell is worse" in section(text, "Worse than the paper")
    assert "No rows yet." in section(text, "What people use instead")
    assert "No rows yet." in section(text, "Two outputs")
    assert section(text, "Reinforcement learning").count("| missing |") >= 18


def test_incomplete_and_failed_cells_are_marked(rows, cells):
    mdn = cells["toy", "ring", "mdn"]
    for k in range(4):
        rows.put(mdn, row(mdn, k, was1_x100=26.0, crps=1.0, nll=None, coverage=0.9, width=1.0))
    nsf = cells["toy", "ring", "nsf"]
    rows.put(nsf, {"run": 0, "fingerprint": nsf.fingerprint, "error": "KeyError: 'x'"})
    text = page(rows, {}, {})
    assert "26.00 ± 0.00 (4 of 10)" in section(text, "Toy data")
    assert "failed (0 of 10)" in section(text, "Toy data")
    assert "toy ring, MDN: 4 of 10 rows\n" in section(text, "Missing")
    assert "toy ring, NSF: 0 of 10 rows; 1 failed: `KeyError: 'x'`" in section(text, "Missing")
    assert "∞ (4 of 4)" in section(text, "Other scores")
    assert "| 4 | abacus | `c0ffee` | 1 | 2026-01-02 |" in text


def test_worse_cells_are_listed_with_their_cause(rows, cells):
    for cell in (cells["uci", "boston", "mdn"], cells["uci", "energy", "mdn"]):
        for k in range(cell.n_runs):
            rows.put(cell, row(cell, k, qice_percent=1.0, rmse=30.0, **SCORES))
    text = page(rows, {"uci/rmse/boston/mdn": "The moon was full."}, {})
    listed = section(text, "Worse than the paper").strip().splitlines()
    # (30 - 3.36) / 1.14 and (30 - 2.24) / 0.43
    assert listed == [
        "- **RMSE, boston, MDN** (+23.4): The moon was full.",
        "- **RMSE, energy, MDN** (+64.6): cause not yet found",
    ]
    assert "| RMSE | 56 | 0 | 0 | 2 | 47 | 7 |" in text
    assert "| QICE, % | 56 | 2 | 0 | 0 | 47 | 7 |" in text


@pytest.mark.parametrize("causes", ['{"uci/rmse/boston/mdn": 3}', "not JSON"])
def test_a_bad_file_of_causes_is_an_error_that_names_it(causes, tmp_path, rows):
    (tmp_path / "benchmark-causes.json").write_text(causes)
    with pytest.raises(NkcmeError, match=r"benchmark-causes\.json must be"):
        write_page(rows, tmp_path / "benchmarks.md")


def test_the_command_writes_the_page_and_its_figures(tmp_path, cells, capsys):
    rows = Rows(tmp_path / "rows")
    toy, uci = cells["toy", "ring", "mdn"], cells["uci", "naval", "mdn"]
    samples = {"x": [-1.0, 1.0], "y": [[0.0, 1.0], [0.5, 0.7]]}
    rows.put(toy, row(toy, 0, was1_x100=26.0, **SCORES) | {"samples": samples})
    rows.put(uci, row(uci, 0, qice_percent=1.0, rmse=0.1, **SCORES))
    scaling = specs.scaling_cells()[0]
    rows.put(scaling, row(scaling, 0, fit_seconds=1.0, predict_seconds=0.1))
    out = tmp_path / "docs" / "benchmarks.md"
    assert run(["page", "--rows", str(tmp_path / "rows"), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"Wrote {out}\n"
    shown = re.findall(r"!\[.+\]\((images/.+)\)", out.read_text(encoding="utf-8"))
    assert shown == [f"images/{n}.png" for n in ("toy-ring", "qice", "rmse", "scaling")]
    for name in shown:
        assert (out.parent / name).read_bytes().startswith(b"\x89PNG")
    assert not list(out.parent.glob("*.partial"))


def test_the_scaling_benchmark_prints_seconds(rows):
    cells = [c for c in specs.scaling_cells() if c.method in ("nkcme-quick", "kernel-cme")]
    rows.put(cells[0], row(cells[0], 0, fit_seconds=1.25, predict_seconds=0.125))
    assert "| quick | 1.25 |  |  |  | 0.125 |  |  |  |" in result_text(cells, rows)


def test_peers_are_compared_with_ours_on_common_folds(rows):
    (ours,) = choose(specs.uci_cells(), methods=["nkcme"], sets=["boston"])
    (theirs,) = choose(specs.peer_cells(), methods=["treeffuser"], sets=["boston"])
    scores = {"rmse": 2.0, "qice_percent": 3.0, "coverage": 0.9, "width": 4.0}
    for fold, crps in enumerate([1.0, 2.0, 6.0]):
        rows.put(ours, row(ours, fold, crps=crps, **scores))
    for fold in (0, 1):
        versions = {"peer": {"treeffuser": "9.9", "scikit-learn": "1.5"}}
        rows.put(theirs, row(theirs, fold, crps=2.0, **scores) | versions)
    before, _, after = page(rows, {}, {}).partition("## What people use instead")
    text = after.partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    found = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
    middle = ["2.00 ± 0.00", "3.00 ± 0.00", "0.900 ± 0.000", "4.00 ± 0.00", "2", "0.25", "abacus"]
    assert found[2:] == [
        ["boston", "NKCME()", "3", "exact", "3.00 ± 2.16", *middle, ""],
        # On the folds that both have: (1 + 2) / (2 + 2).
        ["", "Treeffuser", "2", "50", "2.00 ± 0.00", *middle, "0.750"],
    ]
    assert "boston, Treeffuser: 2 of 20 folds" in text
    assert "boston, NGBoost: 0 of 20 folds" in text
    assert "Treeffuser 9.9 (scikit-learn 1.5)." in text
    assert "| Treeffuser |" not in before  # no column of the paper's tables
    assert "| Treeffuser |" in result_text([ours, theirs], rows)
