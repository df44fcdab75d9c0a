"""The page's section on what people use instead: theirs beside ours, on the same folds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.experiments.specs import DEFAULT, METHODS, ONE_NETWORK, PEERS
from benchmarks.pages.summary import Score, Summary
from benchmarks.pages.tables import rows_or_none, three, unfinished

#: The columns of ours that stand beside the peers'.
OURS = (DEFAULT, ONE_NETWORK)

_SCORES = ("crps", "rmse", "qice_percent", "coverage", "width")
_HEADER = [
    "", "", "folds", "draws", "CRPS", "RMSE", "QICE, %", "90 % coverage", "90 % width",
    "fit, s", "predict, s", "on", "CRPS of NKCME() / its",
]  # fmt: skip


def section(ours: Sequence[Summary], peers: Sequence[Summary]) -> list[str]:
    """The whole section, of all UCI cells; sets that no peer was run on are left out."""
    run = {summary.cell.dataset for summary in peers if summary.rows or summary.failed}
    left = [s for s in peers if s.cell.dataset in run and not s.complete]
    return [
        "## What people use instead",
        _INTRODUCTION,
        peers_table([s for s in (*ours, *peers) if s.cell.dataset in run]),
        "\n".join(unfinished(s, f"{s.cell.dataset}, {_label(s)}", "folds") for s in left),
        _versions(peers),
    ]


def peers_table(summaries: Sequence[Summary]) -> str:
    """A line for each method on each data set; of ours, those of `OURS`."""
    lines = []
    for dataset in dict.fromkeys(s.cell.dataset for s in summaries):
        cells = {s.cell.method: s for s in summaries if s.cell.dataset == dataset}
        shown = [method for method in (*OURS, *PEERS) if method in cells and cells[method].rows]
        for k, method in enumerate(shown):
            lines.append(["" if k else dataset, *_line(cells[method], cells.get(DEFAULT))])
    return rows_or_none(_HEADER, lines)


def _line(summary: Summary, default: Summary | None) -> list[str]:
    folds, protocol = len(summary.rows), summary.cell.protocol
    fit, predict = summary.fit_seconds(), summary.median_seconds("predict")
    assert fit is not None
    assert predict is not None
    ratio = None if default in (None, summary) else _ratio(default, summary)
    return [
        _label(summary),
        str(folds),
        f"{protocol['n_draws']:,}" if protocol["draws"] == "independent" else "exact",
        *(_score(summary.score(metric)) for metric in _SCORES),
        f"{fit / folds:.3g}",
        f"{predict:.3g}",
        ", ".join(dict.fromkeys(row["device"] for row in summary.rows)),
        "" if ratio is None else f"{ratio:.3f}",
    ]


def _score(score: Score | None) -> str:
    """Of one fold there is no deviation."""
    if score is None:
        return ""
    return three(score) if score.n > 1 else three(score).partition(" ± ")[0]


def _ratio(ours: Summary, theirs: Summary) -> float | None:
    """Our mean CRPS over theirs, on the folds that both have: below one is ours."""
    of_ours, of_theirs = (
        {row["run"]: row["metrics"]["crps"] for row in summary.rows} for summary in (ours, theirs)
    )
    common = sorted(of_ours.keys() & of_theirs.keys())
    if not common:
        return None
    return float(np.sum([of_ours[k] for k in common]) / np.sum([of_theirs[k] for k in common]))


def _label(summary: Summary) -> str:
    method = summary.cell.method
    return PEERS[method].label if method in PEERS else METHODS[method].label


def _versions(summaries: Sequence[Summary]) -> str:
    """Which versions answered."""
    found = dict.fromkeys(
        f"{_label(s)} {row['peer'][s.cell.method]} (scikit-learn {row['peer']['scikit-learn']})"
        for s in sorted(summaries, key=lambda s: list(PEERS).index(s.cell.method))
        for row in s.rows
    )
    return f"Versions: {', '.join(found)}." if found else ""


_INTRODUCTION = """\
Packages that people take for the same task, with the settings they come with, on the same folds:
`python -m benchmarks uci --peers`, which installs each into an environment of its own (they are no
dependencies of this library). Mean ± standard deviation over folds; RMSE times 100 for kin8nm and
naval, the rest in units of y. On the larger sets the peers were given the first folds only, so the
last column compares on the folds that both have: the mean CRPS of `NKCME()` over theirs, below one
where ours is better.

*exact*: scored by the predicted distribution itself, by 1,000 quantiles of NGBoost's and of
quantile-forest's. Treeffuser can only draw, and slowly, so it was given few draws. Its CRPS is the
estimate without bias, and its intervals allow for the number of draws, so that its coverage is
right but its width, for a normal law, is 5 % (50 draws) to 12 % (20) above that of many draws; its
RMSE is of the mean of the draws, 1 to 2.5 % above that of its mean. It was not seeded when drawing,
since its sampler repeats noise then. Fit and predict seconds are of one fold: theirs on one thread
of a machine that others worked on too, ours trained side by side with the other folds on the
machine named, so they compare roughly."""
