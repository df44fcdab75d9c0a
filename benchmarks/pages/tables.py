"""Tables of scores and seconds: beside the paper's numbers, and those that it does not have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.experiments import paper, specs
from benchmarks.experiments.methods import METHODS
from benchmarks.experiments.paper import TITLES, Published
from benchmarks.pages.markdown import (
    NO_ROWS,
    bold,
    number,
    signed,
    table,
    table_or_note,
    three_digits,
)
from benchmarks.pages.summary import Summary
from nkcme import metrics

PERFECT = "perfect model"

#: Why the cells of a data set are empty.
WHY_EMPTY = {
    "year": (
        "YearPredictionMSD was not available on the machines that made these rows (its 515,345 "
        "rows are downloaded on request only); [Year](#year) has the same recipe on a generated "
        "table of its size"
    )
}

# --- the paper's tables -----------------------------------------------------------------------


def paper_table(summaries: Sequence[Summary], metric: str) -> str:
    """Ours, the paper's and the difference for each data set; the best of each line is bold."""
    methods = _methods(summaries)
    lines, notes = [], []
    for dataset, cells in _by_dataset(summaries).items():
        ours = {m: s.score(metric) for m, s in cells.items()}
        published = {m: paper.published(metric, dataset, m) for m in methods}
        best = _best({m: s.mean for m, s in ours.items() if s and cells[m].complete})
        if dataset in WHY_EMPTY and not any(s.rows for s in cells.values()):
            texts = ["no data"] * len(methods)
            notes.append(f"{dataset} is empty: {WHY_EMPTY[dataset]}.")
        else:
            texts = [_ours(cells.get(m), metric, m == best) for m in methods]
        perfect = paper.perfect_score(metric, dataset)
        lines.append([dataset, "ours", *texts, "" if perfect is None else number(perfect)])
        best = _best({m: p.mean for m, p in published.items() if p})
        lines.append(["", "paper", *(_published(published[m], m == best) for m in methods), ""])
        verdicts = [_verdict(cells.get(m), metric) for m in methods]
        if any(verdicts):
            lines.append(["", "difference", *verdicts, ""])
    header = [TITLES[metric], "", *(METHODS[m].label for m in methods), PERFECT]
    return "\n\n".join([table(header, lines), *notes])


def _ours(summary: Summary | None, metric: str, best: bool) -> str:
    if summary is None:
        return "not run"
    n, of = len(summary.rows), summary.cell.n_runs
    score = summary.score(metric)
    if score is None:
        return f"{'failed' if summary.failed else 'missing'} ({n} of {of})"
    text = bold(f"{number(score.mean)} ± {number(score.std, like=score.mean)}", best)
    return text if summary.complete else f"{text} ({n} of {of})"


def _published(published: Published | None, best: bool) -> str:
    if published is None:
        return ""
    deviation = "" if published.std is None else f" ± {published.std:.2f}"
    return bold(f"{published.mean:.2f}{deviation}", best)


def _verdict(summary: Summary | None, metric: str) -> str:
    verdict = None if summary is None else summary.verdict(metric)
    if summary is None or verdict is None:
        return ""
    difference = summary.difference(metric)
    assert difference is not None
    return f"{signed(difference)} {verdict}"


def _best(means: dict[str, float]) -> str | None:
    return min(means, key=means.__getitem__) if means else None


def pooled_table(summaries: Sequence[Summary]) -> str:
    """QICE from the bins of all folds together."""
    methods = _methods(summaries)
    lines = []
    for dataset, cells in _by_dataset(summaries).items():
        pooled = {m: s.pooled_qice() for m, s in cells.items()}
        best = _best({m: v for m, v in pooled.items() if v is not None and cells[m].complete})
        n = max((s.n_scored() for s in cells.values()), default=0)
        if n == 0:
            continue
        texts = []
        for m in methods:
            value = pooled.get(m)
            texts.append("" if value is None else bold(number(value), m == best))
        lines.append([dataset, *texts, number(100 * metrics.qice_floor(n))])
    if not lines:
        return NO_ROWS
    return table(["pooled QICE, %", *(METHODS[m].label for m in methods), PERFECT], lines)


# --- scores that the paper does not have ------------------------------------------------------


def score_table(summaries: Sequence[Summary], metric: str) -> str:
    """A score of every method on every data set."""
    methods = _methods(summaries)
    lines = []
    for dataset, cells in _by_dataset(summaries).items():
        if any(s.rows for s in cells.values()):
            texts = (_score(cells.get(m), metric) for m in methods)
            lines.append([dataset, *texts])
    return table_or_note(["", *(METHODS[m].label for m in methods)], lines)


def _score(summary: Summary | None, metric: str) -> str:
    if summary is None or not summary.rows:
        return ""
    score = summary.score(metric)
    infinite = len(summary.rows) - (score.n if score else 0)
    if infinite:
        return f"∞ ({infinite} of {len(summary.rows)})"
    assert score is not None
    return three_digits(score)


def outputs_table(summaries: Sequence[Summary]) -> str:
    """Every score on the problems with two outputs, beside that of a perfect model."""
    methods = _methods(summaries)
    lines = []
    for dataset, cells in _by_dataset(summaries).items():
        done = {m: s for m, s in cells.items() if s.rows}
        for metric, title in specs.OUTPUTS_TITLES.items():
            best = _best({m: v.mean for m, s in done.items() if (v := s.score(metric))})
            texts = {m: _score(s, metric) for m, s in done.items()}
            if best is None:
                continue
            perfect = next(iter(done.values())).score(f"{metric}_floor")
            lines.append([
                dataset, title,
                *(bold(texts.get(m, ""), m == best) for m in methods),
                "" if perfect is None else three_digits(perfect),
            ])  # fmt: skip
    return table_or_note(["", "", *(METHODS[m].label for m in methods), PERFECT], lines)


# --- seconds ----------------------------------------------------------------------------------


def seconds_table(summaries: Sequence[Summary], seconds: Callable[[Summary], float | None]) -> str:
    """Seconds of every method on every data set."""
    methods = _methods(summaries)
    lines = []
    for dataset, cells in _by_dataset(summaries).items():
        if any(s.rows for s in cells.values()):
            values = (seconds(cells[m]) if m in cells else None for m in methods)
            lines.append([dataset, *("" if v is None else f"{v:.3g}" for v in values)])
    return table_or_note(["", *(METHODS[m].label for m in methods)], lines)


def scaling_table(summaries: Sequence[Summary]) -> str:
    """Seconds to fit and to predict by the number of training rows, one line per method."""
    lines = []
    by_method: dict[str, list[Summary]] = {}
    for summary in summaries:
        by_method.setdefault(summary.cell.method, []).append(summary)
    for method, cells in by_method.items():
        if not any(s.rows for s in cells):
            continue
        by_size = {s.cell.dataset: s for s in cells}
        line = [scaling_label(method)]
        for metric in ("fit_seconds", "predict_seconds"):
            for size in specs.SIZES:
                score = by_size[size].score(metric) if size in by_size else None
                line.append("" if score is None else f"{score.mean:.3g}")
        lines.append(line)
    sizes = [f"{int(size):,}" for size in specs.SIZES]
    header = ["", *(f"fit, {n}" for n in sizes), *(f"predict, {n}" for n in sizes)]
    return table_or_note(header, lines)


def scaling_label(method: str) -> str:
    """The printed name of a method of the scaling experiment."""
    return METHODS[method].label if method in METHODS else "KernelCME, 500 landmarks"


# --- grouping ---------------------------------------------------------------------------------


def _by_dataset(summaries: Sequence[Summary]) -> dict[str, dict[str, Summary]]:
    """Summaries by data set, then by method, in the order of the specification."""
    found: dict[str, dict[str, Summary]] = {}
    for summary in summaries:
        found.setdefault(summary.cell.dataset, {})[summary.cell.method] = summary
    return found


def _methods(summaries: Sequence[Summary]) -> list[str]:
    """The methods that have a summary, in the order of `METHODS`."""
    present = {summary.cell.method for summary in summaries}
    return [method for method in METHODS if method in present]
