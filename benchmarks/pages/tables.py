"""Rows as Markdown tables: the paper's with the differences, and the scores it does not have."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from benchmarks.experiments import specs
from benchmarks.experiments.specs import METHODS, TITLES
from benchmarks.pages.summary import Score, Summary
from nkcme import metrics

# --- the paper's tables -----------------------------------------------------------------------


def paper_table(summaries: Sequence[Summary], metric: str) -> str:
    """Ours, the paper's and the difference for each data set; the best of each line is bold."""
    methods = _methods(summaries)
    lines, below = [], []
    for dataset, cells in _by_dataset(summaries).items():
        ours = {m: s.score(metric) for m, s in cells.items()}
        paper = {m: specs.published(metric, dataset, m) for m in methods}
        best = _best({m: s.mean for m, s in ours.items() if s and cells[m].complete})
        if dataset in specs.WHY_EMPTY and not any(s.rows for s in cells.values()):
            texts = ["no data"] * len(methods)
            below.append(f"{dataset} is empty: {specs.WHY_EMPTY[dataset]}.")
        else:
            texts = [_ours(cells.get(m), metric, m == best) for m in methods]
        floor = specs.floor_under(metric, dataset)
        lines.append([dataset, "ours", *texts, "" if floor is None else _number(floor)])
        best = _best({m: p.mean for m, p in paper.items() if p})
        lines.append(["", "paper", *(_paper(paper[m], m == best) for m in methods), ""])
        verdicts = [_verdict(cells.get(m), metric) for m in methods]
        if any(verdicts):
            lines.append(["", "difference", *verdicts, ""])
    header = [TITLES[metric], "", *(METHODS[m].label for m in methods), "floor"]
    return "\n\n".join([table(header, lines), *below])


def _ours(summary: Summary | None, metric: str, best: bool) -> str:
    if summary is None:
        return "not run"
    n, of = len(summary.rows), summary.cell.n_runs
    score = summary.score(metric)
    if score is None:
        return f"{'failed' if summary.failed else 'missing'} ({n} of {of})"
    text = f"{_number(score.mean)} ± {_number(score.std, like=score.mean)}"
    text = f"**{text}**" if best else text
    return text if summary.complete else f"{text} ({n} of {of})"


def _paper(published: specs.Published | None, best: bool) -> str:
    if published is None:
        return ""
    text = f"{published.mean:.2f}"
    if published.std is not None:
        text += f" ± {published.std:.2f}"
    return f"**{text}**" if best else text


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
            text = "" if value is None else _number(value)
            texts.append(f"**{text}**" if m == best else text)
        lines.append([dataset, *texts, _number(100 * metrics.qice_floor(n))])
    if not lines:
        return "No rows yet."
    header = ["pooled QICE, %", *(METHODS[m].label for m in methods), "floor"]
    return table(header, lines)


# --- other tables -----------------------------------------------------------------------------


def score_table(summaries: Sequence[Summary], metric: str) -> str:
    methods = _methods(summaries)
    lines = []
    for dataset, cells in _by_dataset(summaries).items():
        if any(s.rows for s in cells.values()):
            texts = (_other(cells.get(m), metric) for m in methods)
            lines.append([dataset, *texts])
    return rows_or_none(["", *(METHODS[m].label for m in methods)], lines)


def _other(summary: Summary | None, metric: str) -> str:
    if summary is None or not summary.rows:
        return ""
    score = summary.score(metric)
    infinite = len(summary.rows) - (score.n if score else 0)
    if infinite:
        return f"∞ ({infinite} of {len(summary.rows)})"
    assert score is not None
    return three(score)


def three(score: Score) -> str:
    """Three digits of the mean or of the deviation, whichever is larger, and as many places."""
    size = max(abs(score.mean), score.std)
    place = min(max(2 - math.floor(math.log10(size)), 0), 6) if size else 2
    return f"{score.mean:.{place}f} ± {score.std:.{place}f}"


def outputs_table(summaries: Sequence[Summary]) -> str:
    """Every score of the problems of two outputs, beside that of a perfect model."""
    methods = _methods(summaries)
    lines = []
    for dataset, cells in _by_dataset(summaries).items():
        done = {m: s for m, s in cells.items() if s.rows}
        for metric, title in specs.OUTPUTS_TITLES.items():
            best = _best({m: v.mean for m, s in done.items() if (v := s.score(metric))})
            texts = {m: _other(s, metric) for m, s in done.items()}
            if not done or best is None:
                continue
            floor = next(iter(done.values())).score(f"{metric}_floor")
            lines.append([
                dataset, title,
                *(f"**{texts[m]}**" if m == best else texts.get(m, "") for m in methods),
                "" if floor is None else three(floor),
            ])  # fmt: skip
    header = ["", "", *(METHODS[m].label for m in methods), "a perfect model"]
    return rows_or_none(header, lines)


def seconds_table(summaries: Sequence[Summary], ask: Callable[[Summary], float | None]) -> str:
    methods = _methods(summaries)
    lines = []
    for dataset, cells in _by_dataset(summaries).items():
        if any(s.rows for s in cells.values()):
            values = (ask(cells[m]) if m in cells else None for m in methods)
            lines.append([dataset, *("" if v is None else f"{v:.3g}" for v in values)])
    return rows_or_none(["", *(METHODS[m].label for m in methods)], lines)


def scaling_table(summaries: Sequence[Summary]) -> str:
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
    return rows_or_none(header, lines)


def scaling_label(method: str) -> str:
    return METHODS[method].label if method in METHODS else "KernelCME, 500 landmarks"


# --- text -------------------------------------------------------------------------------------


def _by_dataset(summaries: Sequence[Summary]) -> dict[str, dict[str, Summary]]:
    """Summaries by data set, then by method, in the order of the specification."""
    found: dict[str, dict[str, Summary]] = {}
    for summary in summaries:
        found.setdefault(summary.cell.dataset, {})[summary.cell.method] = summary
    return found


def _methods(summaries: Sequence[Summary]) -> list[str]:
    there = {summary.cell.method for summary in summaries}
    return [method for method in METHODS if method in there]


def _number(value: float, like: float | None = None) -> str:
    """Two decimals as the paper has, more where these would say little."""
    size = abs(value if like is None else like)
    return f"{value:.2f}" if size >= 0.1 else f"{value:.4f}"


def signed(difference: float) -> str:
    if math.isinf(difference):
        return "+∞" if difference > 0 else "−∞"
    return f"{difference:+.1f}".replace("-", "−")


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rules = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rules, *lines))


def rows_or_none(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return table(header, lines) if lines else "No rows yet."


def shown(pictures: dict[str, str], prefix: str) -> list[str]:
    """Those of the pictures, file names and captions, whose names begin so."""
    return [
        f"![{text}](images/{name})" for name, text in pictures.items() if name.startswith(prefix)
    ]


def unfinished(summary: Summary, name: str, unit: str) -> str:
    """A line of a list: how much of a cell is there, and what went wrong."""
    text = f"- {name}: {len(summary.rows)} of {summary.cell.n_runs} {unit}"
    if summary.failed:
        text += f"; {len(summary.failed)} failed: `{summary.failed[0]['error']}`"
    return text
