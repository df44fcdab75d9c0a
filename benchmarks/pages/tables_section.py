"""The page's section on tables in CSV files: our methods and the peers on the same folds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.experiments.methods import DEFAULT, METHODS, PEERS, label
from benchmarks.pages import text
from benchmarks.pages.markdown import table_or_note, unfinished
from benchmarks.pages.peers_section import crps_ratio, score_text
from benchmarks.pages.summary import Summary
from nkcme import metrics

_COVERAGES = ("coverage_50", "coverage", "coverage_99")
_HEADER = [
    "", "", "folds", "CRPS", "50 % coverage", "90 % coverage", "99 % coverage", "QICE, %",
    "floor, %", "NLL", "not finite", "fit, s", "predict, s", "CRPS of NKCME() / this CRPS",
]  # fmt: skip


def section(summaries: Sequence[Summary]) -> list[str]:
    """The section; empty where there are no rows."""
    if not summaries:
        return []
    failed = [s for s in summaries if s.failed]
    return [
        "## Other tables",
        text.TABLES,
        scores_table(summaries),
        "\n".join(
            unfinished(s, f"{s.cell.dataset}, {label(s.cell.method)}", "folds") for s in failed
        ),
        _versions(summaries),
    ]


def scores_table(summaries: Sequence[Summary]) -> str:
    """One line for each method on each table."""
    lines = []
    for dataset in dict.fromkeys(s.cell.dataset for s in summaries):
        cells = {s.cell.method: s for s in summaries if s.cell.dataset == dataset and s.rows}
        shown = [method for method in (*METHODS, *PEERS) if method in cells]
        for k, method in enumerate(shown):
            lines.append(["" if k else dataset, *_line(cells[method], cells.get(DEFAULT))])
    return table_or_note(_HEADER, lines)


def _line(summary: Summary, default: Summary | None) -> list[str]:
    n, n_folds = len(summary.rows), summary.cell.protocol["n_folds"]
    fit, qice = summary.fit_seconds(), summary.pooled_qice()
    ratio = None if default is None or default is summary else crps_ratio(default, summary)
    return [
        label(summary.cell.method),
        str(n) if n == n_folds else f"{n} of {n_folds}",
        score_text(summary.score("crps")),
        *(_mean(summary, metric) for metric in _COVERAGES),
        f"{qice:.2f}",
        f"{100 * metrics.qice_floor(summary.n_scored()):.2f}",
        _mean(summary, "nll"),
        _not_finite(summary),
        "" if fit is None else f"{fit / n:.3g}",
        f"{summary.median_seconds('predict'):.3g}",
        "" if ratio is None else f"{ratio:.3f}",
    ]


def _mean(summary: Summary, metric: str) -> str:
    """The mean over all test rows; empty where a fold lacks the metric."""
    values = [row["metrics"][metric] for row in summary.rows]
    if None in values:
        return ""
    return f"{np.average(values, weights=[sum(row['bins']) for row in summary.rows]):.3f}"


def _not_finite(summary: Summary) -> str:
    counts = [row["metrics"]["nll_not_finite"] for row in summary.rows]
    return "" if None in counts else str(sum(counts))


def _versions(summaries: Sequence[Summary]) -> str:
    """The versions of the peers behind the rows."""
    found = dict.fromkeys(
        f"{label(method)} {row['peer'][method]}"
        for method in PEERS
        for summary in summaries
        if summary.cell.method == method
        for row in summary.rows
    )
    return f"Versions: {', '.join(found)}." if found else ""
