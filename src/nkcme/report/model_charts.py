"""The charts of a model's report: data in, figures of `chart_elements` out."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binom

from nkcme import metrics
from nkcme.evaluation import Evaluation
from nkcme.report.chart_elements import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    VERMILION,
    Figure,
    axis,
    faded,
    figure,
    line,
    plain,
    points,
)
from nkcme.report.partial_dependence import PartialDependence


def partial_dependence_chart(
    prediction: PartialDependence, x: np.ndarray, y: np.ndarray, target: str
) -> Figure:
    """The density along a feature as shading, quantiles as lines, rows of the table as points."""
    name, feature = plain(target, 30), plain(prediction.feature, 30)
    values, grid = prediction.values, prediction.grid
    shading = {
        "type": "heatmap",
        "x": values,
        "y": grid,
        # Finer differences than 1/255 are not visible.
        "z": np.round(255 * prediction.shade.T).astype(np.uint8),
        "zmin": 0,
        "zmax": 255,
        "colorscale": [[0, "rgba(0,114,178,0)"], [1, "rgba(0,114,178,0.75)"]],
        "showscale": False,
        "zsmooth": "best",
        "hoverinfo": "skip",
    }
    styles = [("5 %", 1.4, "dot"), ("25 %", 1.4, "solid"), ("median", 2.5, "solid")]
    styles += [("75 %", 1.4, "solid"), ("95 %", 1.4, "dot")]
    groups = {"5 %": "middle 90 %", "25 %": "middle 50 %", "median": "median"}
    lines = [
        line(values, quantile, groups.get(label, label), INK, width=width, dash=dash)
        | {
            "showlegend": label in groups,
            "hovertemplate": f"{feature} %{{x}}<br>{label}: %{{y}}<extra></extra>",
        }
        for quantile, (label, width, dash) in zip(prediction.quantiles.T, styles, strict=True)
    ]
    rows = points(x, y, "rows of the table", ORANGE, size=6) | {
        "hovertemplate": f"{feature} %{{x}}<br>{name} %{{y}}<extra></extra>"
    }
    return figure(
        [shading, rows, *lines],
        height=440,
        xaxis=axis(plain(prediction.feature), range=[values[0], values[-1]], showgrid=False),
        yaxis=axis(plain(target), range=[grid[0], grid[-1]], showgrid=False),
    )


def predicted_against_actual(rows: Evaluation, target: str) -> Figure:
    """Medians against y with bars for the intervals; a bar that crosses the diagonal contains y."""
    low, high = _range_of(np.concatenate([rows.y, rows.lower, rows.upper]))
    data = [line([low, high], [low, high], "predicted = actual", INK, width=1.5)]
    data[0]["hoverinfo"] = "skip"
    for inside, colour, symbol, label in (
        (True, BLUE, "circle", "inside its 90 % interval"),
        (False, VERMILION, "diamond", "outside"),
    ):
        of = rows.rows(rows.inside == inside)
        bars = {
            "type": "data",
            "symmetric": False,
            "array": of.upper - of.median,
            "arrayminus": of.median - of.lower,
            "color": faded(colour, 0.35),
            "thickness": 1.2,
            "width": 0,
        }
        template = (
            "actual %{x}<br>median %{y}<br>"
            "90 %: %{customdata[0]:,.4~r} to %{customdata[1]:,.4~r}<extra></extra>"
        )
        data.append(
            points(of.y, of.median, label, colour, size=6, symbol=symbol)
            | {"error_y": bars, "customdata": of.interval, "hovertemplate": template}
        )
    return figure(
        data,
        height=480,
        xaxis=axis(f"actual {plain(target)}", range=[low, high], nticks=5),
        yaxis=axis(f"predicted {plain(target)}", range=[low, high], nticks=5),
    )


def pit_histogram(pit: np.ndarray) -> Figure:
    """Shares of PIT values in even bins, with the range of a perfect model."""
    n, n_bins = len(pit), 20 if len(pit) >= 400 else 10
    counts, edges = np.histogram(pit, bins=n_bins, range=(0, 1))
    lower, upper = (100 * binom.ppf([0.025, 0.975], n, 1 / n_bins) / n).tolist()
    bars = {
        "type": "bar",
        "x": (edges[1:] + edges[:-1]) / 2,
        "y": 100 * counts / n,
        "width": 1 / n_bins,
        "name": "rows",
        "marker": {"color": faded(BLUE, 0.75), "line": {"color": "white", "width": 1}},
        "hovertemplate": "PIT %{x:.3f}<br>%{y:.1f} % of rows<extra></extra>",
        "showlegend": False,
    }
    ends = [
        line([0, 1], [end] * 2, "its range by chance", GREY, 1.2, "dot")
        | {"hoverinfo": "skip", "showlegend": end == upper}
        for end in (lower, upper)
    ]
    # Traces of lines cover bars; a shape below all traces does not.
    behind = {
        "type": "rect",
        "layer": "below",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": lower,
        "y1": upper,
        "fillcolor": faded(GREY, 0.22),
        "line": {"width": 0},
    }
    top = 1.08 * max(float(bars["y"].max()), upper)
    return figure(
        [bars, *ends, _perfect([0, 1], [100 / n_bins] * 2)],
        height=360,
        shapes=[behind],
        xaxis=axis("PIT: probability below the true value", range=[0, 1]),
        yaxis=axis("share of rows", range=[0, top], ticksuffix=" %"),
    )


def coverage_chart(pit: np.ndarray) -> Figure:
    """Observed against nominal coverage of central intervals, with the range of a perfect model."""
    levels = np.linspace(0, 1, 41)
    lower, observed, upper = 100 * np.stack(
        [
            binom.ppf(0.025, len(pit), levels) / len(pit),
            metrics.coverage_curve(pit, levels),
            binom.ppf(0.975, len(pit), levels) / len(pit),
        ]
    )
    nominal = 100 * levels
    curve = line(nominal, observed, "this model", BLUE, width=3) | {
        "hovertemplate": "interval of %{x:.3g} %<br>contains %{y:.1f} % of rows<extra></extra>"
    }
    percent = {"range": [0, 100], "ticksuffix": " %", "dtick": 20}
    return figure(
        [*_chance_band(nominal, lower, upper), _perfect([0, 100], [0, 100]), curve],
        height=360,
        xaxis=axis("nominal coverage of the interval", **percent),
        yaxis=axis("share of rows inside it", **percent),
    )


def training_curves(history: dict[str, np.ndarray]) -> list[Figure]:
    """The loss, the bandwidth and the validation score over the steps, as far as recorded."""
    steps = np.asarray(history.get("step", ()))
    names = {
        "loss": ("training loss", BLUE),
        "bandwidth": ("bandwidth, in std. deviations of y", VERMILION),
        "validation": ("CRPS of the held-out rows", INK),
    }
    figures = []
    for key, (label, colour) in names.items():
        values = np.asarray(history.get(key, ()))
        if steps.ndim != 1 or not len(steps) or values.shape != steps.shape:
            continue
        curve = line(steps, values, label, colour) | {
            "mode": "lines+markers",
            "marker": {"size": 5},
            "hovertemplate": "step %{x}<br>%{y}<extra></extra>",
        }
        mode = "tozero" if key == "bandwidth" else "normal"
        axes = {"xaxis": axis("training step"), "yaxis": axis(label, rangemode=mode)}
        figures.append(figure([curve], height=300, legend=False, **axes))
    return figures


def _perfect(x: Any, y: Any) -> Figure:
    """The line of a perfect model."""
    return line(x, y, "perfect model", INK, 1.5, "dash") | {"hoverinfo": "skip"}


def _chance_band(x: Any, lower: Any, upper: Any) -> list[Figure]:
    """The range of a perfect model in 95 of 100 tables of this size."""
    style: dict[str, Any] = {"hoverinfo": "skip"}
    fill = {"fill": "tonexty", "fillcolor": faded(GREY, 0.22)}
    return [
        line(x, lower, "", width=0) | style | {"showlegend": False},
        line(x, upper, "its range by chance", width=0) | style | fill,
    ]


def _range_of(values: np.ndarray) -> tuple[float, float]:
    """The range of values with a margin."""
    low, high = float(values.min()), float(values.max())
    margin = 0.03 * (high - low) or 1.0
    return low - margin, high + margin
