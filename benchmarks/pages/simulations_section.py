"""The page's section on simulated tables: predicted laws against the true ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.experiments.methods import label
from benchmarks.experiments.simulations import branch_designs, shift_designs, support_designs
from benchmarks.pages import text
from benchmarks.pages.markdown import table, unfinished
from benchmarks.pages.summary import Summary

#: Smaller percentages are rounding errors of a sum of probabilities.
_ROUNDING = 1e-9

_COVERAGES = ("coverage_50", "coverage", "coverage_99")


def section(summaries: Sequence[Summary]) -> list[str]:
    """The section; empty where there are no rows."""
    if not any(s.rows or s.failed for s in summaries):
        return []
    parts = ["## Simulations", text.SIMULATIONS]
    for family, (title, meaning, _, _) in _FAMILIES.items():
        found = [s for s in summaries if s.cell.protocol["family"] == family]
        if any(s.rows for s in found):
            parts += [f"### {title}", meaning, _family_table(family, found)]
    failed = [s for s in summaries if s.failed]
    parts.append(
        "\n".join(
            unfinished(s, f"{s.cell.dataset}, {label(s.cell.method)}", "runs") for s in failed
        )
    )
    return parts


def scores_tables(summaries: Sequence[Summary]) -> str:
    """One table for each family of designs."""
    families = dict.fromkeys(s.cell.protocol["family"] for s in summaries)
    return "\n\n".join(
        _family_table(family, [s for s in summaries if s.cell.protocol["family"] == family])
        for family in families
    )


def _family_table(family: str, summaries: Sequence[Summary]) -> str:
    """One line for each method on each design."""
    _, _, header, line = _FAMILIES[family]
    lines, last = [], ""
    for summary in summaries:
        if summary.rows:
            design, n, n_runs = summary.cell.dataset, len(summary.rows), summary.cell.n_runs
            name = "" if design == last else design
            runs = str(n) if n == n_runs else f"{n} of {n_runs}"
            lines.append([name, label(summary.cell.method), runs, *line(summary)])
            last = design
    return table(["", "", "runs", *header], lines) if lines else "No run is finished."


# --- the lines of each family -----------------------------------------------------------------


def _support_line(summary: Summary) -> list[str]:
    bias, error, noise = _worst_point_mass(summary)
    return [
        _largest(summary, "outside_bounds_percent"),
        _largest(summary, "between_values_percent"),
        bias,
        error,
        noise,
        _mean(summary, "crps_ratio"),
        _mean(summary, "coverage"),
    ]


def _shift_line(summary: Summary) -> list[str]:
    return [
        *(_mean(summary, f"shifted_{name}") for name in (*_COVERAGES, "width")),
        *(_mean(summary, name) for name in (*_COVERAGES, "width")),
    ]


def _branches_line(summary: Summary) -> list[str]:
    names = ("was1_x100", "was1_oracle_x100", "was1_ratio", "crps_ratio", "coverage")
    return [_mean(summary, name) for name in names]


def _mean(summary: Summary, metric: str) -> str:
    score = summary.score(metric)
    return "" if score is None else f"{score.mean:.3f}"


def _largest(summary: Summary, metric: str) -> str:
    """The largest percentage of all runs; empty where the design has no such score."""
    values = [v for row in summary.rows if (v := row["metrics"][metric]) is not None]
    if not values:
        return ""
    return f"{max(values):.3g}" if max(values) > _ROUNDING else "0"


def _worst_point_mass(summary: Summary) -> tuple[str, str, str]:
    """Mean bias of the point mass where it is largest, its mean error, and the noise of the bias.

    Biases of runs are averaged with their signs: each follows the share in its training rows.
    """
    masses = list(zip(*(row["point_masses"] for row in summary.rows), strict=True))
    if not masses:
        return "", "", ""
    biases = [np.mean([run["predicted"] - run["true"] for run in runs]) for runs in masses]
    worst = int(np.argmax(np.abs(biases)))
    error = np.mean([run["error"] for run in masses[worst]])
    noise = np.mean([run["noise"] for run in masses[worst]]) / np.sqrt(len(masses[worst]))
    bias = f"{biases[worst]:+.2f} at {masses[worst][0]['value']:g}".replace("-", "−")
    return bias, f"{error:.2f}", f"{noise:.2f}"


#: Title, text, columns and line of each family.
_FAMILIES: dict[str, tuple[str, str, list[str], Callable[[Summary], list[str]]]] = {
    support_designs.FAMILY: (
        "Support",
        text.SIMULATED_SUPPORT,
        [
            "outside the bounds, %", "between values, %", "bias of a point mass", "its error",
            "its noise", "CRPS / perfect", "90 % coverage",
        ],
        _support_line,
    ),
    shift_designs.FAMILY: (
        "Shift",
        text.SIMULATED_SHIFT,
        [
            *(f"shifted: {name}" for name in ("50 %", "90 %", "99 %", "width")),
            *(f"in range: {name}" for name in ("50 %", "90 %", "99 %", "width")),
        ],
        _shift_line,
    ),
    branch_designs.FAMILY: (
        "Branches",
        text.SIMULATED_BRANCHES,
        ["WAS1 × 100", "perfect model", "ratio", "CRPS / perfect", "90 % coverage"],
        _branches_line,
    ),
}  # fmt: skip
