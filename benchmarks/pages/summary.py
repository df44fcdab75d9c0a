"""What the rows of a cell come to: means, deviations, and how they compare with the paper's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.experiments import specs
from benchmarks.experiments.rows import Row, Rows
from benchmarks.experiments.specs import Cell, Published
from nkcme import metrics

#: The paper prints two decimals: a smaller difference than half of the last one is none.
_PRINTED = 0.005

#: A cell this many pooled standard deviations above the paper's is worse than it.
LIMIT = 2.0

BETTER, WITHIN, WORSE = "better", "within 2", "worse"


@dataclass(frozen=True)
class Score:
    """A metric of the finished rows of a cell; lower is better."""

    mean: float
    std: float  # population, as the paper's
    n: int


@dataclass(frozen=True)
class Summary:
    """A cell and its rows."""

    cell: Cell
    rows: Sequence[Row]  # finished
    failed: Sequence[Row]

    @property
    def complete(self) -> bool:
        return len(self.rows) == self.cell.n_runs

    def score(self, metric: str) -> Score | None:
        """Over the rows where the metric is a number; None where there is no such row."""
        values = [v for row in self.rows if (v := row["metrics"].get(metric)) is not None]
        if not values:
            return None
        return Score(float(np.mean(values)), float(np.std(values)), len(values))

    def pooled_qice(self) -> float | None:
        """QICE in percent of the bins of all runs together, far less noisy than their mean."""
        counts = np.sum([row["bins"] for row in self.rows], axis=0)
        return 100 * metrics.qice_from_counts(counts) if self.rows else None

    def n_scored(self) -> int:
        """Test rows behind the pooled QICE."""
        return int(np.sum([row["bins"] for row in self.rows]))

    def difference(self, metric: str) -> float | None:
        """Ours less the paper's in pooled standard deviations; None where one is not known."""
        score, paper = self.score(metric), self._paper(metric)
        if score is None or paper is None or not self.complete:
            return None
        return pooled_difference(score, paper)

    def verdict(self, metric: str) -> str | None:
        """Better than the paper, within two pooled standard deviations of it, or worse."""
        difference = self.difference(metric)
        score, paper = self.score(metric), self._paper(metric)
        if difference is None or score is None or paper is None:
            return None
        if score.mean < paper.mean:
            return BETTER
        if difference <= LIMIT or score.mean - paper.mean <= _PRINTED:
            return WITHIN
        return WORSE

    def _paper(self, metric: str) -> Published | None:
        if self.cell.experiment == specs.QUICK:
            return None  # a fraction of the training is not what the paper's numbers are of
        return specs.published(metric, self.cell.dataset, self.cell.method)

    def fit_seconds(self) -> float | None:
        """Of all runs; a run's share of a fit of several is an even one."""
        shares = [
            row["seconds"]["fit_all"] / row["seconds"]["fitted_together"] for row in self.rows
        ]
        return sum(shares) if shares else None

    def median_seconds(self, what: str) -> float | None:
        """``"sample"`` or ``"predict"``, a run; the first of a process compiles."""
        return float(np.median([row["seconds"][what] for row in self.rows])) if self.rows else None


def pooled_difference(ours: Score, paper: Published) -> float:
    """(ours - paper) / sqrt(s_ours^2 + s_paper^2)."""
    difference = ours.mean - paper.mean
    pooled = math.hypot(ours.std, paper.std or 0.0)
    if pooled <= 1e-12 * abs(paper.mean):  # equal values, but for the rounding of their mean
        return math.copysign(math.inf, difference)
    return difference / pooled


def summarise(cells: Sequence[Cell], rows: Rows) -> list[Summary]:
    summaries = []
    for cell in cells:
        found = rows.of(cell)
        done = [row for row in found if "error" not in row]
        summaries.append(Summary(cell, done, [row for row in found if "error" in row]))
    return summaries


def sources(summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """On what, from which commit and when the rows were made, and how many; most first."""
    counts: dict[tuple[str, str, str], list[str]] = {}
    for summary in summaries:
        for row in summary.rows:
            jax = row["versions"].get("jax", "?")
            counts.setdefault((row["device"], row["commit"], jax), []).append(row["when"])
    return [
        {"device": device, "commit": commit, "jax": jax, "rows": len(when), "when": max(when)}
        for (device, commit, jax), when in sorted(counts.items(), key=lambda item: -len(item[1]))
    ]
