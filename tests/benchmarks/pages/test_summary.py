"""Scores, verdicts and tables, worked out by hand from hand-made rows."""

from __future__ import annotations

import math

import pytest

from benchmarks.experiments import specs
from benchmarks.experiments.paper import Published
from benchmarks.pages.summary import BETTER, WITHIN, WORSE, Score, Summary, pooled_difference
from benchmarks.pages.tables import paper_table
from support import fake_bench


def row(cell, number, **metrics):
    return {
        "run": number, "fingerprint": cell.fingerprint, "metrics": metrics, "bins": [10] * 10,
        "seconds": {"fit_all": 6.0, "fitted_together": 3, "sample": 0.5, "predict": 0.25},
    }  # fmt: skip


def summary(values, metric="was1_x100", n_runs=None, **changes):
    cell = fake_bench.cell(n_runs=n_runs or len(values), **changes)
    return Summary(cell, [row(cell, k, **{metric: v}) for k, v in enumerate(values)], [])


def test_mean_population_deviation_and_pooled_difference():
    """1, 2, 6: mean 3, variance (4 + 1 + 9) / 3. With the paper's 1 ± 2: 2 / sqrt(14/3 + 4)."""
    score = summary([1.0, 2.0, 6.0]).score("was1_x100")
    assert score == Score(3.0, pytest.approx(math.sqrt(14 / 3)), 3)
    assert pooled_difference(score, Published(1.0, 2.0)) == pytest.approx(2 / math.sqrt(14 / 3 + 4))
    assert pooled_difference(Score(3.0, 0.0, 3), Published(1.0, None)) == math.inf
    assert pooled_difference(Score(0.0, 0.0, 3), Published(1.0, 0.0)) == -math.inf


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([26.0, 26.2, 26.4], BETTER),  # the paper: 26.66 ± 0.80
        ([27.0, 27.5, 28.0], WITHIN),
        ([28.0, 28.5, 29.0], WORSE),
        ([26.664] * 3, WITHIN),
    ],
)
def test_verdicts(values, verdict):
    assert summary(values).verdict("was1_x100") == verdict


def test_a_difference_below_the_printed_digits_is_not_worse():
    """The paper prints 0.02 ± 0.00 for CARD's RMSE on naval: 0.024 may be the same number."""
    same = summary([0.024] * 3, "rmse", dataset="naval", method="card")
    assert same.difference("rmse") == math.inf
    assert same.verdict("rmse") == WITHIN
    other = summary([0.026] * 3, "rmse", dataset="naval", method="card")
    assert other.verdict("rmse") == WORSE


def test_incomplete_cells_and_the_quick_benchmark_have_no_verdict():
    assert summary([26.0, 27.0], n_runs=3).verdict("was1_x100") is None
    assert summary([26.0], experiment=specs.QUICK).verdict("was1_x100") is None


def test_pooled_qice_is_that_of_all_counts():
    """Two folds with opposite errors: each has a QICE of 10 %, together they have 0 %."""
    cell = fake_bench.cell(n_runs=2)
    rows = [row(cell, k) | {"bins": bins} for k, bins in enumerate([[20, 0] * 5, [0, 20] * 5])]
    both = Summary(cell, rows, [])
    assert Summary(cell, rows[:1], []).pooled_qice() == pytest.approx(10.0)
    assert both.pooled_qice() == pytest.approx(0.0)
    assert both.n_scored() == 200


def test_runs_fitted_together_share_their_seconds():
    assert summary([1.0, 2.0, 3.0]).fit_seconds() == pytest.approx(6.0)
    assert summary([1.0], n_runs=3).fit_seconds() == pytest.approx(2.0)


def test_the_table_has_ours_the_papers_the_difference_and_the_best_in_bold():
    ours = [summary([26.0, 26.2, 26.4]), summary([20.0, 21.0, 22.0], method="nkcme-joint")]
    lines = paper_table(ours, "was1_x100").splitlines()
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines]
    assert cells[0] == ["WAS1 × 100", "", "joint", "MDN", "perfect model"]
    assert cells[2] == ["ring", "ours", "**21.00 ± 0.82**", "26.20 ± 0.16", "17.57"]
    assert cells[3] == ["", "paper", "**21.10 ± 1.14**", "26.66 ± 0.80", ""]
    # (21 - 21.1) / sqrt(2/3 + 1.14^2) = -0.07; (26.2 - 26.66) / sqrt(0.08/3 + 0.64) = -0.56
    assert cells[4] == ["", "difference", "−0.1 better", "−0.6 better", ""]
    assert len({len(line) for line in cells}) == 1
