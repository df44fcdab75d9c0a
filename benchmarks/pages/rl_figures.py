"""Learning curves of the agents: the paper's two figures, and one of our recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.experiments.curves import unpack
from benchmarks.experiments.rl_specs import LABELS, TARGETS
from benchmarks.experiments.rows import Rows
from benchmarks.pages import bootstrap
from benchmarks.pages.bootstrap import Estimate
from benchmarks.pages.rl_section import summaries
from benchmarks.pages.summary import Summary
from nkcme.report.plots import BLUE, GREEN, INK, ORANGE, PINK, VERMILION, picture
from nkcme.rl.curve import thin
from nkcme.rl.presets import ENVIRONMENTS

if TYPE_CHECKING:
    from nkcme.report.plots import Axes

#: Points of a drawn curve; more would show only noise.
_POINTS = 100


class _Look(NamedTuple):
    """Label and colour of a method."""

    label: str
    colour: str


_COLOURS = {"fuse": BLUE, "c51": VERMILION, "mmdqn": GREEN, "dqn": ORANGE, "single": PINK}
_PAPER = {f"paper-{agent}": _Look(LABELS[agent], _COLOURS[agent]) for agent in LABELS}

#: File, caption, and the methods to draw with their looks.
_FIGURES: tuple[tuple[str, str, Mapping[str, _Look]], ...] = (
    (
        "rl-agents.png",
        "Return by step: fused, C51, MMDQN and DQN; means over seeds with 95 % bands",
        {name: look for name, look in _PAPER.items() if name != "paper-single"},
    ),
    (
        "rl-kernels.png",
        "Return by step: kernels fused, and a single one; means over seeds with 95 % bands",
        {name: _PAPER[name] for name in ("paper-fuse", "paper-single")},
    ),
    (
        "rl-tuned.png",
        "Return by step: our recipe beside the paper's; means over seeds with 95 % bands",
        {
            "paper-fuse": _Look("fused, the paper's recipe", "0.5"),
            "tuned-fuse": _Look("fused, our recipe", BLUE),
        },
    ),
)


def draw_agents(rows: Rows, directory: Path) -> dict[str, str]:
    """Draw every figure that has rows into a directory; file names and captions, in order."""
    drawn = {}
    cells = summaries(rows)
    for file, caption, looks in _FIGURES:
        chosen = [s for s in cells if s.cell.method in looks and s.rows]
        # The last method is the one that no earlier figure shows.
        if any(s.cell.method == list(looks)[-1] for s in chosen):
            draw_curves(chosen, looks, directory / file)
            drawn[file] = caption
    return drawn


def draw_curves(cells: Sequence[Summary], looks: Mapping[str, _Look], path: Path) -> None:
    """One column per environment: whole curves above, a close-up of their second half below."""
    with picture(path, 2, 3, (11, 6.2), sharex=True) as (figure, axes):
        for column, env in zip(axes.T, ENVIRONMENTS, strict=True):
            here = {s.cell.method: s for s in cells if s.cell.dataset == env}
            bands = [
                _draw(column, here[name], look.colour)
                for name, look in looks.items()
                if name in here
            ]
            column[0].set_title(env)
            column[1].set_xlabel("steps, thousands")
            target = TARGETS["tuned"][env] if "tuned-fuse" in looks else None
            if bands:
                _close_up(column[1], bands, target)
            if absent := [look.label for name, look in looks.items() if name not in here]:
                text = f"missing: {', '.join(absent)}"
                column[0].text(0.97, 0.05, text, transform=column[0].transAxes, ha="right")
        axes[0, 0].set_ylabel("return")
        axes[1, 0].set_ylabel("return, in detail")
        for name, look in looks.items():  # for the legend alone
            seeds = _seeds([s for s in cells if s.cell.method == name])
            axes[0, 0].plot([], [], color=look.colour, lw=2, label=f"{look.label} ({seeds})")
        if "tuned-fuse" in looks:
            axes[0, 0].plot([], [], color=INK, ls=":", lw=1.4, label="target for the last fifth")
        figure.legend(loc="outside lower center", ncols=len(looks) + 1, frameon=False)


def _draw(column: Sequence[Axes], summary: Summary, colour: str) -> Estimate:
    """Draw one agent into both panels; its mean curve with its band."""
    every, returns = _curves(summary)
    curve = bootstrap.estimate(returns)
    steps = every * (np.arange(len(curve.mean)) + 0.5) / 1000
    for ax in column:
        ax.fill_between(steps, curve.low, curve.high, color=colour, alpha=0.2, lw=0)
        ax.plot(steps, curve.mean, color=colour, lw=1.6)
        ax.grid(axis="y", color="0.92", lw=0.8)
        ax.set_axisbelow(True)
        ax.set_xlim(0, every * len(curve.mean) / 1000)
    return curve


def _curves(summary: Summary) -> tuple[float, np.ndarray]:
    """Steps between two points, and the thinned curves of all seeds (seeds, points)."""
    curves = [unpack(row["curve"]["returns"]) for row in summary.rows]
    thinned = [thin(curve, _POINTS) for curve in curves]
    return summary.rows[0]["curve"]["every"] * thinned[0][1], np.stack([c for c, _ in thinned])


def _close_up(ax: Axes, bands: Sequence[Estimate], target: float | None) -> None:
    """Limit the axis to the range of the second half of training."""
    late = [edge[len(edge) // 2 :] for band in bands for edge in (band.low, band.high)]
    ends = [np.min(late), np.max(late)]
    if target is not None:
        ax.axhline(target, 0.8, 1, color=INK, ls=":", lw=1.4)
        ends = [min(ends[0], target), max(ends[1], target)]
    margin = 0.05 * max(ends[1] - ends[0], 1.0)
    ax.set_ylim(ends[0] - margin, ends[1] + margin)


def _seeds(cells: Sequence[Summary]) -> str:
    """The number of finished seeds, as a range where cells differ."""
    counts = sorted({len(s.rows) for s in cells}) or [0]
    return "–".join(map(str, dict.fromkeys([counts[0], counts[-1]]))) + " seeds"
