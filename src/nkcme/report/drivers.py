"""What drives predictions: the importance of inputs, and SHAP values of single rows."""

from __future__ import annotations

import html
from importlib.util import find_spec
from typing import Any

import numpy as np

from nkcme.evaluation import native
from nkcme.explain.permutation import Importance, permutation_importance
from nkcme.explain.shap_values import shap_values
from nkcme.number_text import written_change
from nkcme.report.chart_elements import BLUE, GREY, Figure, axis, faded, figure, plain
from nkcme.report.page import chart, section

#: Inputs that are drawn, the most important ones.
MAX_DRAWN = 12

#: Predictions that the importance may take, and rows and repeats at most.
_MAX_PREDICTIONS, _MAX_ROWS, _REPEATS = 60_000, 500, 3

#: Inputs of which SHAP values of single rows are computed, and rows to compare with.
_MAX_EXPLAINED, _BACKGROUND = 60, 25

_TITLES = {
    "crps": "Whole distribution (CRPS)",
    "centre": "Centre",
    "spread": "Spread",
    "tails": "Tails",
}


def drivers(model: Any, table: Any, y: np.ndarray, target: str) -> str:
    """The section on what moves the centre, the spread and the tails."""
    n_columns = table.shape[1]
    n_rows = int(np.clip(_MAX_PREDICTIONS // (_REPEATS * n_columns), 30, _MAX_ROWS))
    found = permutation_importance(model, native(table), y, n_repeats=_REPEATS, max_rows=n_rows)
    drawn = "".join(
        chart(importance_chart(found, measure), f"Importance for the {title.lower()}")
        for measure, title in _TITLES.items()
    )
    more = n_columns - MAX_DRAWN
    text = (
        f"How much worse is the prediction of {html.escape(target)} if an input is shuffled "
        f"between rows? Measured on {found.n_rows:,} rows, {_REPEATS} times each; a line shows how "
        "much that differs. Centre: only the median changes. Spread: only distances from the "
        "median change. Tails: only quantiles beyond the 90 % interval change. Inputs that nearly "
        "repeat each other share their importance."
    )
    if more > 0:
        text += f" The {MAX_DRAWN} most important of {n_columns:,} inputs are drawn."
    return section("Drivers", text, f'<div class="grid wide">{drawn}</div>')


def importance_chart(found: Importance, measure: str) -> Figure:
    """A bar for each input; all measures have the inputs in the order of the CRPS."""
    order = found.order()[:MAX_DRAWN][::-1]
    unit = 100 / max(found.score[measure], 1e-300)
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": unit * found.mean(measure)[order],
        # Positions rather than names, of which two may look alike after they are shortened.
        "y": np.arange(len(order)),
        "error_x": {"array": unit * found.std(measure)[order], "color": GREY, "thickness": 1.2},
        "marker": {"color": faded(BLUE, 0.75)},
        "hovertemplate": "%{x:.3~r} % worse<extra></extra>",
    }
    names = {
        "tickmode": "array",
        "tickvals": np.arange(len(order)),
        "ticktext": [plain(found.features[j], 18) for j in order],
        "showgrid": False,
    }
    return figure(
        [bars],
        height=110 + 26 * len(order),
        legend=False,
        title={"text": _TITLES[measure], "x": 0.02, "font": {"size": 14}},
        xaxis=axis("worse by", ticksuffix=" %", rangemode="tozero", zeroline=True, nticks=5),
        yaxis=axis("", **names),
    )


def drivers_of_rows(model: Any, table: Any, rows: np.ndarray) -> list[str]:
    """For each of the rows, what moved its mean and its spread most, by SHAP values.

    Empty texts where the package shap is not installed or where there are very many inputs.
    """
    n_columns = table.shape[1]
    if find_spec("shap") is None or n_columns > _MAX_EXPLAINED:
        return [""] * len(rows)
    found = shap_values(
        model,
        native(table[rows]),
        native(table),
        statistics=("mean", "spread"),
        n_background=_BACKGROUND,
        n_permutations=1,
    )
    return [
        f"Mean: {_strongest(found, i, 0)}. Width of the interval: {_strongest(found, i, 1)} "
        "(SHAP values, against the average row)"
        for i in range(len(rows))
    ]


def _strongest(found: Any, row: int, statistic: int, n: int = 3) -> str:
    values = found.values[row, :, statistic]
    order = np.argsort(-np.abs(values), kind="stable")[:n]
    return ", ".join(f"{written_change(values[j])} by {found.feature_names[j]}" for j in order)
