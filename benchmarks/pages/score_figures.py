"""Figures of scores and seconds in docs/benchmarks.md, drawn from rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.experiments import paper, specs
from benchmarks.experiments.methods import METHODS, ONE_NETWORK
from benchmarks.experiments.paper import TITLES
from benchmarks.experiments.rows import Rows
from benchmarks.pages.summary import Summary, summarise
from benchmarks.pages.tables import scaling_label
from nkcme.datasets.toy import TOYS
from nkcme.report.plots import BLUE, GREEN, INK, ORANGE, PINK, VERMILION, picture

if TYPE_CHECKING:
    from nkcme.report.plots import Axes

_SHOWN_ROWS = 2000

#: Colour, marker and line style of each method where several share a panel.
_LOOKS = {
    "nkcme": (BLUE, "o", "-"),
    "nkcme-joint": (BLUE, "s", "--"),
    "nkcme-iterative": (BLUE, "^", ":"),
    "df-median": (GREEN, "o", "-"),
    "df-0.1": (GREEN, "s", "--"),
    "mdn": (ORANGE, "D", "-"),
    "nsf": (PINK, "v", "-"),
    "card": (VERMILION, "P", "-"),
    "kernel-cme": (INK, "X", "-"),
    specs.NYSTROM: (INK, "*", "--"),
}


def draw_scores(rows: Rows, directory: Path) -> dict[str, str]:
    """Draw every figure that has rows into a directory; file names and captions, in order."""
    drawn = {}
    toy = summarise(specs.toy_cells(), rows)
    for name in TOYS:
        cells = [s for s in toy if s.cell.dataset == name]
        if any(_samples(s) for s in cells):
            draw_toy(name, cells, directory / f"toy-{name}.png")
            drawn[f"toy-{name}.png"] = f"{name}: the data, and samples of each method over the data"
    uci = summarise(specs.uci_cells(), rows)
    for metric, file in (("qice_percent", "qice.png"), ("rmse", "rmse.png")):
        if any(s.rows for s in uci):
            draw_dots(uci, metric, directory / file)
            drawn[file] = f"{TITLES[metric]} of every method on every set, ours and the paper's"
    scaling = summarise(specs.scaling_cells(), rows)
    if any(s.rows for s in scaling):
        draw_scaling(scaling, directory / "scaling.png")
        drawn["scaling.png"] = "Seconds to fit and to predict by number of training rows"
    return drawn


def draw_toy(name: str, summaries: Sequence[Summary], path: Path) -> None:
    """The training data of seed 0, then the samples of each method over the data in grey."""
    X, y = TOYS[name].make(seed=0)
    x, y = X[:_SHOWN_ROWS, 0], y[:_SHOWN_ROWS]
    chosen = [s for s in summaries if s.cell.method not in ("kernel-cme", ONE_NETWORK)]
    with picture(path, 3, 3, (9, 7.4), sharex=True, sharey=True) as (figure, axes):
        first, *others = axes.flat
        first.scatter(x, y, s=3, color=INK, alpha=0.5, lw=0)
        first.set_title(f"{name}: the data")
        for ax, summary in zip(others, chosen, strict=True):
            _draw_samples(ax, summary, x, y)
        margin = 0.12 * np.ptp(y)
        first.set_ylim(y.min() - margin, y.max() + margin)
        figure.supxlabel("x", fontsize=11)
        figure.supylabel("y", fontsize=11)


def _draw_samples(ax: Axes, summary: Summary, x: np.ndarray, y: np.ndarray) -> None:
    """One panel: the samples of a method and its WAS1."""
    ax.scatter(x, y, s=3, color="0.82", lw=0)
    ax.set_title(METHODS[summary.cell.method].label)
    samples = _samples(summary)
    if samples is None:
        ax.text(0.5, 0.5, "missing", transform=ax.transAxes, ha="center", va="center")
        return
    at, draws = samples
    ax.scatter(np.tile(at, len(draws)), draws.ravel(), s=3, color=BLUE, alpha=0.5, lw=0)
    score = summary.score("was1_x100")
    assert score is not None
    ax.text(
        0.98, 0.03, f"{TITLES['was1_x100']}: {score.mean:.2f}", transform=ax.transAxes, ha="right",
        va="bottom", fontsize=9.5,
        bbox={"facecolor": "white", "alpha": 0.8, "lw": 0, "pad": 1.5},
    )  # fmt: skip


def _samples(summary: Summary) -> tuple[np.ndarray, np.ndarray] | None:
    """The points (m,) and draws (n_draws, m) kept from seed 0, or None."""
    for row in summary.rows:
        if "samples" in row:
            return np.asarray(row["samples"]["x"]), np.asarray(row["samples"]["y"])
    return None


def draw_dots(summaries: Sequence[Summary], metric: str, path: Path) -> None:
    """One panel per data set, one line per method: our score, the paper's, a perfect model's."""
    methods = [m for m in METHODS if m != "kernel-cme"]
    datasets = list(dict.fromkeys(s.cell.dataset for s in summaries))
    with picture(path, 2, 4, (11, 6.4), sharey=True) as (figure, axes):
        for ax, dataset in zip(axes.flat, datasets, strict=True):
            cells = {s.cell.method: s for s in summaries if s.cell.dataset == dataset}
            _draw_panel(ax, cells, methods, metric, dataset)
        axes[0, 0].set_yticks(range(len(methods)), [METHODS[m].label for m in methods])
        axes[0, 0].invert_yaxis()
        handles, labels = axes[0, 0].get_legend_handles_labels()
        shown = dict(zip(labels, handles, strict=True))
        figure.legend(
            shown.values(), shown.keys(), loc="outside lower center", ncols=3, frameon=False
        )
        figure.suptitle(f"{TITLES[metric]} (lower is better)", fontsize=12)


def _draw_panel(
    ax: Axes, cells: dict[str, Summary], methods: Sequence[str], metric: str, dataset: str
) -> None:
    """One data set: means with standard deviations."""
    means: list[float] = []
    for place, method in enumerate(methods):
        score = cells[method].score(metric) if method in cells else None
        published = paper.published(metric, dataset, method)
        if published is not None:
            ax.errorbar(
                published.mean, place + 0.17, xerr=published.std, fmt="o", ms=5, color=VERMILION,
                mfc="white", lw=1.2, label="paper ± deviation",
            )  # fmt: skip
            means.append(published.mean)
        if score is not None:
            ax.errorbar(
                score.mean, place - 0.17, xerr=score.std, fmt="o", ms=5, color=BLUE, lw=1.2,
                label="ours ± deviation",
            )  # fmt: skip
            means.append(score.mean)
    perfect = paper.perfect_score(metric, dataset)
    if perfect is not None:
        ax.axvline(perfect, color=INK, ls="--", lw=1, label="a perfect model")
    ax.set_title(dataset)
    ax.grid(axis="y", color="0.92", lw=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    positive = [m for m in means if m > 0]
    if positive and max(positive) > 10 * min(positive):
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
    elif perfect is not None:
        ax.set_xlim(left=0)
    if not any(s.rows for s in cells.values()):
        ax.text(0.5, 0.92, "ours: no data", transform=ax.transAxes, ha="center")


def draw_scaling(summaries: Sequence[Summary], path: Path) -> None:
    """Seconds to fit and to predict by number of training rows, on logarithmic axes."""
    panels = {"fit_seconds": "to fit", "predict_seconds": "to predict 1,000 intervals"}
    with picture(path, 1, 2, (10, 5.2), sharex=True) as (figure, axes):
        for ax, (metric, title) in zip(axes.flat, panels.items(), strict=True):
            for method, (colour, marker, line) in _LOOKS.items():
                points = [
                    (int(s.cell.dataset), score.mean)
                    for s in summaries
                    if s.cell.method == method and (score := s.score(metric)) is not None
                ]
                if points:
                    ax.plot(
                        *zip(*points, strict=True), color=colour, marker=marker, ls=line, ms=6,
                        lw=1.6, label=scaling_label(method),
                    )  # fmt: skip
            ax.set(xscale="log", yscale="log", title=title, xlabel="training rows")
            ax.grid(color="0.92", lw=0.8)
            ax.set_axisbelow(True)
        axes[0, 0].set_ylabel("seconds")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center", frameon=False)
