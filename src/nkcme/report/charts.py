"""The charts of a report, as plotly's figures in plain dictionaries: data in, no HTML, no plotly.

Every text that comes from a user passes through `plain`, for plotly reads its texts as HTML.
Colours are Okabe and Ito's, which colour-blind readers can tell apart.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import binom

from nkcme import metrics
from nkcme.distributions.base import Distribution
from nkcme.evaluation import NOMINAL, Evaluation
from nkcme.report.partial_dependence import Fan

BLUE, SKY, ORANGE, VERMILION = "#0072B2", "#56B4E9", "#E69F00", "#D55E00"
INK, GREY, LIGHT = "#1a1a1a", "#666666", "#e4e4e4"

Figure = dict[str, Any]

#: Lines that are told apart without colour.
_DASHES = ("solid", "dash", "dot", "dashdot")

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def plain(text: object, limit: int = 60) -> str:
    """A user's text as a plotly text that shows it as it is, on one line, cut if very long."""
    words = " ".join(str(text).split())
    shown = words if len(words) <= limit else words[: limit - 1] + "…"
    # Braces would be read as a hover template's, dollars as TeX where a page has MathJax.
    escaped = html.escape(shown, quote=False)
    return escaped.replace("{", "&#123;").replace("}", "&#125;").replace("$", "&#36;")


def densities(dist: Distribution, y: np.ndarray, titles: list[str], target: str) -> list[Figure]:
    """A density for each row, all over one range of y, with its interval and the true value."""
    ends = np.append(dist.ppf([0.005, 0.995]), y)
    margin = 0.03 * np.ptp(ends) or 1.0
    low, high = ends.min() - margin, ends.max() + margin
    intervals = dist.interval(NOMINAL)
    figures = []
    for i, title in enumerate(titles):
        row = dist[i]
        # Its own quantiles too, so that a narrow density is drawn as finely as a wide one.
        own = np.append(
            np.linspace(intervals[i, 0], intervals[i, 1], 100),
            row.ppf(np.linspace(0.01, 0.99, 100)),
        )
        grid = np.unique(np.append(np.linspace(low, high, 300), own))
        curve = np.exp(row.smoothed().logpdf(grid, grid=True)[0])
        within = (grid >= intervals[i, 0]) & (grid <= intervals[i, 1])
        name = plain(target, 30)
        data = [
            _line(grid[within], curve[within], "90 % interval", width=0, fill="tozeroy")
            | {"fillcolor": _faded(SKY, 0.5), "hoverinfo": "skip"},
            _line(grid, curve, "predicted density", BLUE)
            | {"hovertemplate": f"{name} %{{x:.4g}}<br>density %{{y:.3g}}<extra></extra>"},
            _line([y[i], y[i]], [0, 1.06 * curve.max()], "true value", VERMILION, dash="4px,3px")
            | {"hovertemplate": f"true {name}: {y[i]:.5g}<extra></extra>"},
        ]
        axes = {
            "xaxis": _axis(plain(target, 40), range=[low, high]),
            "yaxis": _axis("density", rangemode="tozero", showticklabels=False, ticks=""),
        }
        heading = {"text": plain(title), "x": 0.02, "font": {"size": 14}}
        figures.append(_figure(data, height=250, legend=False, title=heading, **axes))
    return figures


def fan_chart(fan: Fan, x: np.ndarray, y: np.ndarray, target: str) -> Figure:
    """The density along a feature as shading, quantiles as lines, rows of the table as points."""
    name, feature = plain(target, 30), plain(fan.feature, 30)
    shading = {
        "type": "heatmap",
        "x": fan.values,
        "y": fan.grid,
        "z": np.round(255 * fan.shade.T).astype(np.uint8),  # as fine as can be seen
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
        _line(fan.values, quantile, groups.get(label, label), INK, width=width, dash=dash)
        | {
            "showlegend": label in groups,
            "hovertemplate": f"{feature} %{{x:.4g}}<br>{label}: %{{y:.4g}}<extra></extra>",
        }
        for quantile, (label, width, dash) in zip(fan.quantiles.T, styles, strict=True)
    ]
    points = _points(x, y, "rows of the table", ORANGE, size=6) | {
        "hovertemplate": f"{feature} %{{x:.4g}}<br>{name} %{{y:.4g}}<extra></extra>"
    }
    return _figure(
        [shading, points, *lines],
        height=440,
        xaxis=_axis(plain(fan.feature), range=[fan.values[0], fan.values[-1]], showgrid=False),
        yaxis=_axis(plain(target), range=[fan.grid[0], fan.grid[-1]], showgrid=False),
    )


def predicted_against_actual(rows: Evaluation, target: str) -> Figure:
    """Medians against y with bars for the intervals; a bar that meets the diagonal holds y."""
    low, high = _span(np.concatenate([rows.y, rows.lower, rows.upper]))
    data = [_line([low, high], [low, high], "predicted = actual", INK, width=1.5)]
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
            "color": _faded(colour, 0.35),
            "thickness": 1.2,
            "width": 0,
        }
        template = (
            "actual %{x:.4g}<br>median %{y:.4g}<br>"
            "90 %: %{customdata[0]:.4g} to %{customdata[1]:.4g}<extra></extra>"
        )
        data.append(
            _points(of.y, of.median, label, colour, size=6, symbol=symbol)
            | {"error_y": bars, "customdata": of.interval, "hovertemplate": template}
        )
    return _figure(
        data,
        height=480,
        xaxis=_axis(f"actual {plain(target)}", range=[low, high]),
        yaxis=_axis(f"predicted {plain(target)}", range=[low, high]),
    )


def pit_histogram(pit: np.ndarray) -> Figure:
    """Shares of PIT values in even bins, with the line and the scatter of a perfect model."""
    n, n_bins = len(pit), 20 if len(pit) >= 400 else 10
    counts, edges = np.histogram(pit, bins=n_bins, range=(0, 1))
    lower, upper = 100 * binom.ppf([0.025, 0.975], n, 1 / n_bins) / n
    bars = {
        "type": "bar",
        "x": (edges[1:] + edges[:-1]) / 2,
        "y": 100 * counts / n,
        "width": 1 / n_bins,
        "name": "rows",
        "marker": {"color": _faded(BLUE, 0.75), "line": {"color": "white", "width": 1}},
        "hovertemplate": "PIT %{x:.3f}<br>%{y:.1f} % of rows<extra></extra>",
        "showlegend": False,
    }
    return _figure(
        [
            bars,
            *_chance_band([0, 1], [lower] * 2, [upper] * 2),
            _perfect([0, 1], [100 / n_bins] * 2),
        ],
        height=360,
        xaxis=_axis("PIT: probability below the true value", range=[0, 1]),
        yaxis=_axis("share of rows", rangemode="tozero", ticksuffix=" %"),
    )


def coverage_chart(pit: np.ndarray) -> Figure:
    """Observed against nominal coverage of central intervals, with a perfect model's scatter."""
    levels = np.linspace(0, 1, 41)
    lower, observed, upper = 100 * np.stack(
        [
            binom.ppf(0.025, len(pit), levels) / len(pit),
            metrics.coverage_curve(pit, levels),
            binom.ppf(0.975, len(pit), levels) / len(pit),
        ]
    )
    nominal = 100 * levels
    curve = _line(nominal, observed, "this model", BLUE, width=3) | {
        "hovertemplate": "interval of %{x:.3g} %<br>holds %{y:.1f} % of rows<extra></extra>"
    }
    percent = {"range": [0, 100], "ticksuffix": " %", "dtick": 20}
    return _figure(
        [*_chance_band(nominal, lower, upper), _perfect([0, 100], [0, 100]), curve],
        height=360,
        xaxis=_axis("nominal coverage of the interval", **percent),
        yaxis=_axis("share of rows inside it", **percent),
    )


def training_curves(history: dict[str, np.ndarray]) -> list[Figure]:
    """The loss, the bandwidth and the validation score over the steps, those that there are."""
    steps = np.asarray(history.get("step", ()))
    names = {
        "loss": ("training loss", BLUE),
        "bandwidth": ("bandwidth, in std. deviations of y", VERMILION),
        "validation": ("CRPS of the rows held out", INK),
    }
    figures = []
    for key, (label, colour) in names.items():
        values = np.asarray(history.get(key, ()))
        if steps.ndim != 1 or not len(steps) or values.shape != steps.shape:
            continue
        curve = _line(steps, values, label, colour) | {
            "mode": "lines+markers",
            "marker": {"size": 5},
            "hovertemplate": "step %{x}<br>%{y:.4g}<extra></extra>",
        }
        mode = "tozero" if key == "bandwidth" else "normal"
        axes = {"xaxis": _axis("training step"), "yaxis": _axis(label, rangemode=mode)}
        figures.append(_figure([curve], height=300, legend=False, **axes))
    return figures


def return_curves(step: np.ndarray, returns: np.ndarray, seeds: Sequence[int]) -> Figure:
    """Returns (n, agents) over the steps: each agent thin, their mean, a deviation around it."""
    mean, spread = returns.mean(axis=1), returns.std(axis=1)
    hover = {"hovertemplate": "step %{x:,.0f}<br>return %{y:.4g}<extra></extra>"}
    several = returns.shape[1] > 1
    data = []
    if several:
        edge = {"hoverinfo": "skip", "legendgroup": "band"}
        fill = {"fill": "tonexty", "fillcolor": _faded(BLUE, 0.15)}
        data = [
            _line(step, mean - spread, "", width=0) | edge | {"showlegend": False},
            _line(step, mean + spread, "± one deviation of the agents", width=0) | edge | fill,
        ]
        data += [
            _line(step, one, "each agent", _faded(BLUE, 0.35), width=1)
            | {
                "legendgroup": "agents",
                "showlegend": k == 0,
                "hovertemplate": f"seed {seed}, step %{{x:,.0f}}<br>%{{y:.4g}}<extra></extra>",
            }
            for k, (seed, one) in enumerate(zip(seeds, returns.T, strict=True))
        ]
    data.append(_line(step, mean, "mean" if several else "return", BLUE, width=3) | hover)
    return _figure(
        data,
        height=420,
        legend=several,
        xaxis=_axis("step", rangemode="tozero", tickformat=",d"),
        yaxis=_axis("return of an evaluation episode"),
    )


def foreseen_returns(
    grid: np.ndarray, curves: np.ndarray, means: np.ndarray, names: Sequence[str]
) -> Figure:
    """The density (actions, grid) of each action's return in one state, and its mean, dashed."""
    best = int(np.argmax(means))
    data = []
    for a, name in enumerate(names):
        colour = BLUE if a == best else GREY
        label = plain(f"{name}, mean {means[a]:.4g}" + (" (chosen)" if a == best else ""))
        data += [
            _line(grid, curves[a], label, colour, dash=_DASHES[a % len(_DASHES)])
            | {"hovertemplate": f"{plain(name)}: return %{{x:.4g}}<extra></extra>"}
            | ({"fill": "tozeroy", "fillcolor": _faded(BLUE, 0.15)} if a == best else {}),
        ]
    return _figure(
        data,
        height=360,
        xaxis=_axis("foreseen return, discounted", range=[grid[0], grid[-1]]),
        yaxis=_axis("density", rangemode="tozero", showticklabels=False, ticks=""),
    )


def foreseen_and_came(grid: np.ndarray, curve: np.ndarray, came: np.ndarray) -> Figure:
    """A density of what was foreseen over the histogram of what came."""
    edges = np.linspace(grid[0], grid[-1], 41)
    shares = np.histogram(came, edges)[0] / len(came) / np.diff(edges)
    bars = {
        "type": "bar",
        "x": (edges[1:] + edges[:-1]) / 2,
        "y": shares,
        "width": np.diff(edges),
        "name": "what came",
        "marker": {"color": _faded(ORANGE, 0.75), "line": {"color": "white", "width": 1}},
        "hovertemplate": "%{x:.4g}<extra></extra>",
    }
    return _figure(
        [bars, _line(grid, curve, "foreseen at the start", BLUE, width=2.5)],
        height=360,
        xaxis=_axis("return of an episode, discounted", range=[grid[0], grid[-1]]),
        yaxis=_axis("density", rangemode="tozero", showticklabels=False, ticks=""),
    )


# ------------------------------------------------------------------------------------ the pieces


def _figure(data: list[Figure], *, height: int, legend: bool = True, **layout: Any) -> Figure:
    top = 44 if legend or "title" in layout else 16
    return {
        "data": data,
        "layout": {
            "height": height,
            "margin": {"l": 12, "r": 26, "t": top, "b": 12},
            "font": {"family": _FONT, "size": 13, "color": INK},
            "paper_bgcolor": "white",
            "plot_bgcolor": "white",
            "showlegend": legend,
            "legend": {
                "orientation": "h",
                "x": 0,
                "y": 1.01,
                "yanchor": "bottom",
                "font": {"size": 12},
            },
            "dragmode": False,  # so that a finger scrolls the page
            "hoverlabel": {"bgcolor": "white", "font": {"color": INK}},
            **layout,
        },
    }


def _axis(title: str, **settings: Any) -> dict[str, Any]:
    return {
        "title": {"text": title, "standoff": 8, "font": {"size": 13}},
        "automargin": True,
        "fixedrange": True,
        "showline": True,
        "linecolor": GREY,
        "ticks": "outside",
        "tickcolor": GREY,
        "gridcolor": LIGHT,
        "zeroline": False,
        "nticks": 7,
        "exponentformat": "power",
        **settings,
    }


def _line(
    x: Any,
    y: Any,
    name: str,
    colour: str = BLUE,
    width: float = 2,
    dash: str = "solid",
    **more: Any,
) -> Figure:
    style = {"color": colour, "width": width, "dash": dash}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "name": name, "line": style, **more}


def _points(x: Any, y: Any, name: str, colour: str, size: int, symbol: str = "circle") -> Figure:
    marker = {"color": _faded(colour, 0.65), "size": size, "symbol": symbol}
    return {"type": "scatter", "mode": "markers", "x": x, "y": y, "name": name, "marker": marker}


def _perfect(x: Any, y: Any) -> Figure:
    return _line(x, y, "perfect model", INK, 1.5, "dash") | {"hoverinfo": "skip"}


def _chance_band(x: Any, lower: Any, upper: Any) -> list[Figure]:
    """Where a perfect model would be in 95 of 100 tables of this size."""
    style: dict[str, Any] = {"hoverinfo": "skip"}
    fill = {"fill": "tonexty", "fillcolor": _faded(GREY, 0.22)}
    return [
        _line(x, lower, "", width=0) | style | {"showlegend": False},
        _line(x, upper, "its range by chance", width=0) | style | fill,
    ]


def _span(values: np.ndarray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = 0.03 * (high - low) or 1.0
    return low - margin, high + margin


def _faded(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"
