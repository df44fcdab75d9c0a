"""The page: numbers worked out by hand from hand-made rows, and what is not there is said."""

from __future__ import annotations

import math
import re

import pytest

from benchmarks.app import run
from benchmarks.experiments import specs
from benchmarks.experiments.rows import Rows
from benchmarks.experiments.specs import Published
from benchmarks.pages.figures import draw_all
from benchmarks.pages.page import page, result_text, write_page
from benchmarks.pages.summary import BETTER, WITHIN, WORSE, Score, Summary, pooled_difference
from benchmarks.pages.tables import paper_table
from nkcme.errors import NkcmeError
from support import fake_bench


def row(cell, number, **metrics):
    return {
        "run": number, "fingerprint": cell.fingerprint, "metrics": metrics, "bins": [10] * 10,
        "seconds": {"fit_all": 6.0, "fitted_together": 3, "sample": 0.5, "predict": 0.25},
        "device": "abacus", "commit": "c0ffee", "versions": {"jax": "1"}, "when": "2026-01-02T03",
    }  # fmt: skip


def summary(values, metric="was1_x100", n_runs=None, **changes):
    cell = fake_bench.cell(n_runs=n_runs or len(values), **changes)
    return Summary(cell, [row(cell, k, **{metric: v}) for k, v in enumerate(values)], [])


def test_mean_population_deviation_and_pooled_difference():
    """1, 2, 6: mean 3, variance (4 + 1 + 9) / 3. With a paper's 1 +- 2: 2 / sqrt(14/3 + 4)."""
    score = summary([1.0, 2.0, 6.0]).score("was1_x100")
    assert score == Score(3.0, pytest.approx(math.sqrt(14 / 3)), 3)
    assert pooled_difference(score, Published(1.0, 2.0)) == pytest.approx(2 / math.sqrt(14 / 3 + 4))
    assert pooled_difference(Score(3.0, 0.0, 3), Published(1.0, None)) == math.inf
    assert pooled_difference(Score(0.0, 0.0, 3), Published(1.0, 0.0)) == -math.inf


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([26.0, 26.2, 26.4], BETTER),  # the paper: 26.66 +- 0.80
        ([27.0, 27.5, 28.0], WITHIN),
        ([28.0, 28.5, 29.0], WORSE),
        ([26.664] * 3, WITHIN),
    ],
)
def test_verdicts(values, verdict):
    assert summary(values).verdict("was1_x100") == verdict


def test_a_difference_below_the_printed_digits_is_none():
    """The paper says 0.02 +- 0.00 for CARD's RMSE on naval: 0.024 may be the same number."""
    same = summary([0.024] * 3, "rmse", dataset="naval", method="card")
    assert same.difference("rmse") == math.inf
    assert same.verdict("rmse") == WITHIN
    other = summary([0.026] * 3, "rmse", dataset="naval", method="card")
    assert other.verdict("rmse") == WORSE


def test_an_unfinished_cell_and_the_quick_benchmark_have_no_verdict():
    assert summary([26.0, 27.0], n_runs=3).verdict("was1_x100") is None
    assert summary([26.0], experiment=specs.QUICK).verdict("was1_x100") is None


def test_pooled_qice_is_that_of_all_counts():
    """Two folds that err the other way round: each has a QICE of 10 %, together they have none."""
    cell = fake_bench.cell(n_runs=2)
    rows = [row(cell, k) | {"bins": bins} for k, bins in enumerate([[20, 0] * 5, [0, 20] * 5])]
    both = Summary(cell, rows, [])
    assert Summary(cell, rows[:1], []).pooled_qice() == pytest.approx(10.0)
    assert both.pooled_qice() == pytest.approx(0.0)
    assert both.n_scored() == 200


def test_a_fit_of_several_runs_is_counted_once():
    assert summary([1.0, 2.0, 3.0]).fit_seconds() == pytest.approx(6.0)
    assert summary([1.0], n_runs=3).fit_seconds() == pytest.approx(2.0)


def test_the_table_says_ours_the_papers_the_difference_and_who_wins():
    ours = [summary([26.0, 26.2, 26.4]), summary([20.0, 21.0, 22.0], method="nkcme-joint")]
    lines = paper_table(ours, "was1_x100").splitlines()
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
    assert cells[0] == ["WAS1 × 100", "", "joint", "MDN", "floor"]
    assert cells[2] == ["ring", "ours", "**21.00 ± 0.82**", "26.20 ± 0.16", "17.57"]
    assert cells[3] == ["", "paper", "**21.10 ± 1.14**", "26.66 ± 0.80", ""]
    # (21 - 21.1) / sqrt(2/3 + 1.14^2) = -0.07; (26.2 - 26.66) / sqrt(0.08/3 + 0.64) = -0.56
    assert cells[4] == ["", "difference", "−0.1 better", "−0.6 better", ""]
    assert len({len(line) for line in cells}) == 1


# --------------------------------------------------------------------------------- the whole page


@pytest.fixture
def cells():
    """The cell of the real specification by experiment, data set and method."""
    every = [*specs.toy_cells(), *specs.uci_cells()]
    return {(c.experiment, c.dataset, c.method): c for c in every}


@pytest.fixture
def rows(tmp_path):
    return Rows(tmp_path / "rows")


def section(text, title):
    return re.search(rf"^## {title}$(.*?)(?=^## |\Z)", text, re.M | re.S)[1]


def test_without_rows_everything_is_said_to_be_missing(rows):
    text = page(rows, {}, {})
    n_cells = sum(c.dataset != "year" for c in [*specs.toy_cells(), *specs.uci_cells()])
    assert section(text, "Missing").count(" 0 of ") == n_cells
    assert "missing (0 of 10)" in section(text, "Toy data")
    assert text.count(specs.WHY_EMPTY["year"]) == 2  # under QICE and under RMSE
    assert "No finished cell is worse" in section(text, "Worse than the paper")


def test_partial_and_failed_cells_are_said(rows, cells):
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
    worse = [cells["uci", "boston", "mdn"], cells["uci", "energy", "mdn"]]
    for cell in worse:
        for k in range(cell.n_runs):
            scores = {"crps": 1.0, "nll": 1.0, "coverage": 0.9, "width": 1.0}
            rows.put(cell, row(cell, k, qice_percent=1.0, rmse=30.0, **scores))
    text = page(rows, {"uci/rmse/boston/mdn": "The moon was full."}, {})
    listed = section(text, "Worse than the paper").strip().splitlines()
    # (30 - 3.36) / 1.14 and (30 - 2.24) / 0.43
    assert listed == [
        "- **RMSE, boston, MDN** (+23.4): The moon was full.",
        "- **RMSE, energy, MDN** (+64.6): cause not yet found",
    ]
    assert "| RMSE | 56 | 0 | 0 | 2 | 47 | 7 |" in text
    assert "| QICE, % | 56 | 2 | 0 | 0 | 47 | 7 |" in text


def test_causes_must_be_texts(tmp_path, rows):
    (tmp_path / "benchmark-causes.json").write_text('{"uci/rmse/boston/mdn": 3}')
    with pytest.raises(NkcmeError, match=r"benchmark-causes\.json"):
        write_page(rows, tmp_path / "benchmarks.md", lambda rows, directory: {})


def test_the_command_writes_the_page_and_its_pictures(tmp_path, cells, capsys):
    rows = Rows(tmp_path / "rows")
    scores = {"crps": 1.0, "nll": 1.0, "coverage": 0.9, "width": 1.0}
    toy, uci = cells["toy", "ring", "mdn"], cells["uci", "naval", "mdn"]
    samples = {"x": [-1.0, 1.0], "y": [[0.0, 1.0], [0.5, 0.7]]}
    rows.put(toy, row(toy, 0, was1_x100=26.0, **scores) | {"samples": samples})
    rows.put(uci, row(uci, 0, qice_percent=1.0, rmse=0.1, **scores))
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


def test_nothing_is_drawn_without_rows(tmp_path, rows):
    assert draw_all(rows, tmp_path / "images") == {}
    assert not (tmp_path / "images").exists()


def test_a_benchmark_of_sizes_prints_seconds(rows):
    cells = [c for c in specs.scaling_cells() if c.method in ("nkcme-quick", "kernel-cme")]
    for cell in cells[:1]:
        rows.put(cell, row(cell, 0, fit_seconds=1.25, predict_seconds=0.125))
    text = result_text(cells, rows)
    assert "| quick | 1.25 |  |  |  | 0.125 |  |  |  |" in text
