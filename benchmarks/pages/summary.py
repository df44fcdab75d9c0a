"""The rows of a cell summarised: means, standard deviations, and the comparison with the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.experiments import paper, specs
from benchmarks.experiments.cell import Cell
from benchmarks.experiments.paper import Published
from benchmarks.experiments.rows import Row, Rows
from nkcme import metrics

#: The paper prints two decimals: a difference below half of the last digit is no difference.
_PRINTED = 0.005

#: A cell is worse than the paper's above this number of pooled standard deviations.
LIMIT = 2.0

BETTER, WITHIN, WORSE = "better", "within 2", "worse"


@dataclass(frozen=True)
class Score:
    """A metric of the finished rows of a cell; lower is better."""

    mean: float
    std: float  # of the population, as in the paper
    n: int


@dataclass(frozen=True)
class Summary:
    """A cell and its rows."""

    cell: Cell
    rows: Sequence[Row]  # finished
    failed: Sequence[Row]

    @property
    def complete(self) -> bool:
        """Whether all runs are finished."""
        return len(self.rows) == self.cell.n_runs

    def score(self, metric: str) -> Score | None:
        """The score over the rows where the metric is a number; None where there is no such row."""
        values = [v for row in self.rows if (v := row["metrics"].get(metric)) is not None]
        if not values:
            return None
        return Score(float(np.mean(values)), float(np.std(values)), len(values))

    def pooled_qice(self) -> float | None:
        """QICE in percent from the bins of all runs together, far less noisy than their mean."""
        counts = np.sum([row["bins"] for row in self.rows], axis=0)
        return 100 * metrics.qice_from_counts(counts) if self.rows else None

    def n_scored(self) -> int:
        """The number of test rows behind the pooled QICE."""
        return int(np.sum([row["bins"] for row in self.rows]))

    def difference(self, metric: str) -> float | None:
        """Ours minus the paper's in pooled standard deviations; None where one is not known."""
        score, published = self.score(metric), self._published(metric)
        if score is None or published is None or not self.complete:
            return None
        return pooled_difference(score, published)

    def verdict(self, metric: str) -> str | None:
        """Better than the paper, within two pooled standard deviations of it, or worse."""
        difference = self.difference(metric)
        score, published = self.score(metric), self._published(metric)
        if difference is None or score is None or published is None:
            return None
        if score.mean < published.mean:
            return BETTER
        if difference <= LIMIT or score.mean - published.mean <= _PRINTED:
            return WITHIN
        return WORSE

    def _published(self, metric: str) -> Published | None:
        if self.cell.experiment == specs.QUICK:
            return None  # the paper's numbers are of the whole training
        return paper.published(metric, self.cell.dataset, self.cell.method)

    def fit_seconds(self) -> float | None:
        """Seconds to fit all runs; runs fitted together share their seconds evenly."""
        shares = [
            row["seconds"]["fit_all"] / row["seconds"]["fitted_together"] for row in self.rows
        ]
        return sum(shares) if shares else None

    def median_seconds(self, what: str) -> float | None:
        """Median seconds of ``"sample"`` or ``"predict"`` per run; the first run also compiles."""
        return float(np.median([row["seconds"][what] for row in self.rows])) if self.rows else None


def pooled_difference(ours: Score, published: Published) -> float:
    """(ours - published) / sqrt(s_ours^2 + s_published^2)."""
    difference = ours.mean - published.mean
    pooled = math.hypot(ours.std, published.std or 0.0)
    if pooled <= 1e-12 * abs(published.mean):  # equal values, up to the rounding of their mean
        return math.copysign(math.inf, difference)
    return difference / pooled


def summarise(cells: Sequence[Cell], rows: Rows) -> list[Summary]:
    """A summary for each cell."""
    summaries = []
    for cell in cells:
        found = rows.of(cell)
        done = [row for row in found if "error" not in row]
        summaries.append(Summary(cell, done, [row for row in found if "error" in row]))
    return summaries


def sources(summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """The number of rows by device, commit and version of JAX, with the latest date; most first."""
    counts: dict[tuple[str, str, str], list[str]] = {}
    for summary in summaries:
        for row in summary.rows:
            jax = row["versions"].get("jax", "?")
            counts.setdefault((row["device"], row["commit"], jax), []).append(row["when"])
    return [
        {"device": device, "commit": commit, "jax": jax, "rows": len(when), "when": max(when)}
        for (device, commit, jax), when in sorted(counts.items(), key=lambda item: -len(item[1]))
    ]
