"""The page's section on other packages: their scores beside ours, on the same folds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.experiments.methods import DEFAULT, ONE_NETWORK, PEERS, label
from benchmarks.pages import text
from benchmarks.pages.markdown import table_or_note, three_digits, unfinished
from benchmarks.pages.summary import Score, Summary

#: Our methods that the peers are compared with.
OURS = (DEFAULT, ONE_NETWORK)

_SCORES = ("crps", "rmse", "qice_percent", "coverage", "width")
_HEADER = [
    "", "", "folds", "draws", "CRPS", "RMSE", "QICE, %", "90 % coverage", "90 % width",
    "fit, s", "predict, s", "device", "CRPS of NKCME() / this CRPS",
]  # fmt: skip


def section(ours: Sequence[Summary], peers: Sequence[Summary]) -> list[str]:
    """The section, from all UCI cells; data sets without results of a peer are left out."""
    run = {summary.cell.dataset for summary in peers if summary.rows or summary.failed}
    incomplete = [s for s in peers if s.cell.dataset in run and not s.complete]
    return [
        "## What people use instead",
        text.PEERS,
        peers_table([s for s in (*ours, *peers) if s.cell.dataset in run]),
        "\n".join(
            unfinished(s, f"{s.cell.dataset}, {label(s.cell.method)}", "folds") for s in incomplete
        ),
        _versions(peers),
    ]


def peers_table(summaries: Sequence[Summary]) -> str:
    """One line for each peer, and for each of `OURS`, on each data set."""
    lines = []
    for dataset in dict.fromkeys(s.cell.dataset for s in summaries):
        cells = {s.cell.method: s for s in summaries if s.cell.dataset == dataset}
        shown = [method for method in (*OURS, *PEERS) if method in cells and cells[method].rows]
        for k, method in enumerate(shown):
            lines.append(["" if k else dataset, *_line(cells[method], cells.get(DEFAULT))])
    return table_or_note(_HEADER, lines)


def _line(summary: Summary, default: Summary | None) -> list[str]:
    folds, protocol = len(summary.rows), summary.cell.protocol
    fit, predict = summary.fit_seconds(), summary.median_seconds("predict")
    assert fit is not None
    assert predict is not None
    ratio = None if default is None or default is summary else crps_ratio(default, summary)
    return [
        label(summary.cell.method),
        str(folds),
        f"{protocol['n_draws']:,}" if protocol["draws"] == "independent" else "exact",
        *(score_text(summary.score(metric)) for metric in _SCORES),
        f"{fit / folds:.3g}",
        f"{predict:.3g}",
        ", ".join(dict.fromkeys(row["device"] for row in summary.rows)),
        "" if ratio is None else f"{ratio:.3f}",
    ]


def score_text(score: Score | None) -> str:
    """Mean ± deviation; the mean alone where there is one fold."""
    if score is None:
        return ""
    return three_digits(score) if score.n > 1 else three_digits(score).partition(" ± ")[0]


def crps_ratio(ours: Summary, theirs: Summary) -> float | None:
    """Our mean CRPS divided by theirs, on the folds that both have; below one, ours is better."""
    our_crps, their_crps = (
        {row["run"]: row["metrics"]["crps"] for row in summary.rows} for summary in (ours, theirs)
    )
    common = sorted(our_crps.keys() & their_crps.keys())
    if not common:
        return None
    return float(np.sum([our_crps[k] for k in common]) / np.sum([their_crps[k] for k in common]))


def _versions(summaries: Sequence[Summary]) -> str:
    """The versions of the packages behind the rows."""
    found = dict.fromkeys(
        f"{label(s.cell.method)} {row['peer'][s.cell.method]} "
        f"(scikit-learn {row['peer']['scikit-learn']})"
        for s in sorted(summaries, key=lambda s: list(PEERS).index(s.cell.method))
        for row in s.rows
    )
    return f"Versions: {', '.join(found)}." if found else ""
