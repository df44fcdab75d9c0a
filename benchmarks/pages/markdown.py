"""Pieces of Markdown: tables, signed numbers, figures, and lines on unfinished cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from benchmarks.pages.summary import Score, Summary

NO_ROWS = "No rows yet."


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are aligned to the right."""
    rules = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rules, *lines))


def table_or_note(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table, or a note where it has no lines."""
    return table(header, lines) if lines else NO_ROWS


def number(value: float, like: float | None = None) -> str:
    """Two decimals as in the paper, or four where the value (or ``like``) is below 0.1."""
    size = abs(value if like is None else like)
    return f"{value:.2f}" if size >= 0.1 else f"{value:.4f}"


def three_digits(score: Score) -> str:
    """Mean ± deviation with three digits of the larger of the two."""
    size = max(abs(score.mean), score.std)
    place = min(max(2 - math.floor(math.log10(size)), 0), 6) if size else 2
    return f"{score.mean:.{place}f} ± {score.std:.{place}f}"


def signed(difference: float) -> str:
    """One decimal with its sign, and ∞ where infinite."""
    if math.isinf(difference):
        return "+∞" if difference > 0 else "−∞"
    return f"{difference:+.1f}".replace("-", "−")


def bold(text: str, when: bool) -> str:
    """The text, in bold on a condition."""
    return f"**{text}**" if when else text


def figures(pictures: dict[str, str], prefix: str) -> list[str]:
    """The figures with a given prefix, from file names and captions."""
    return [
        f"![{text}](images/{name})" for name, text in pictures.items() if name.startswith(prefix)
    ]


def unfinished(summary: Summary, name: str, unit: str) -> str:
    """A list item: the finished and failed runs of a cell."""
    text = f"- {name}: {len(summary.rows)} of {summary.cell.n_runs} {unit}"
    if summary.failed:
        text += f"; {len(summary.failed)} failed: `{summary.failed[0]['error']}`"
    return text
