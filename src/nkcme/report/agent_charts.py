"""The charts of a report of agents: data in, figures of `chart_elements` out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nkcme.report.chart_elements import (
    BLUE,
    GREY,
    ORANGE,
    Figure,
    axis,
    faded,
    figure,
    line,
    plain,
)

#: Line styles that can be distinguished without colour.
_DASHES = ("solid", "dash", "dot", "dashdot")


def return_curves(step: np.ndarray, returns: np.ndarray, seeds: Sequence[int]) -> Figure:
    """Returns (n, agents) over the steps: each agent, their mean, and one standard deviation."""
    mean, spread = returns.mean(axis=1), returns.std(axis=1)
    hover = {"hovertemplate": "step %{x:,.0f}<br>return %{y:.4g}<extra></extra>"}
    several = returns.shape[1] > 1
    data = []
    if several:
        edge = {"hoverinfo": "skip", "legendgroup": "band"}
        fill = {"fill": "tonexty", "fillcolor": faded(BLUE, 0.15)}
        data = [
            line(step, mean - spread, "", width=0) | edge | {"showlegend": False},
            line(step, mean + spread, "± one standard deviation", width=0) | edge | fill,
        ]
        data += [
            line(step, one, "each agent", faded(BLUE, 0.35), width=1)
            | {
                "legendgroup": "agents",
                "showlegend": k == 0,
                "hovertemplate": f"seed {seed}, step %{{x:,.0f}}<br>%{{y:.4g}}<extra></extra>",
            }
            for k, (seed, one) in enumerate(zip(seeds, returns.T, strict=True))
        ]
    data.append(line(step, mean, "mean" if several else "return", BLUE, width=3) | hover)
    return figure(
        data,
        height=420,
        legend=several,
        xaxis=axis("step", rangemode="tozero", tickformat=",d"),
        yaxis=axis("return of an evaluation episode"),
    )


def predicted_returns(
    grid: np.ndarray, curves: np.ndarray, means: np.ndarray, names: Sequence[str]
) -> Figure:
    """The predicted density (actions, grid) of each action's return in one state."""
    best = int(np.argmax(means))
    data = []
    for a, name in enumerate(names):
        colour = BLUE if a == best else GREY
        label = plain(f"{name}, mean {means[a]:.4g}" + (" (chosen)" if a == best else ""))
        data += [
            line(grid, curves[a], label, colour, dash=_DASHES[a % len(_DASHES)])
            | {"hovertemplate": f"{plain(name)}: return %{{x:.4g}}<extra></extra>"}
            | ({"fill": "tozeroy", "fillcolor": faded(BLUE, 0.15)} if a == best else {}),
        ]
    return figure(
        data,
        height=360,
        xaxis=axis("predicted return, discounted", range=[grid[0], grid[-1]]),
        yaxis=axis("density", rangemode="tozero", showticklabels=False, ticks=""),
    )


def predicted_and_observed_returns(
    grid: np.ndarray, curve: np.ndarray, observed: np.ndarray
) -> Figure:
    """A predicted density over the histogram of observed returns."""
    edges = np.linspace(grid[0], grid[-1], 41)
    shares = np.histogram(observed, edges)[0] / len(observed) / np.diff(edges)
    bars = {
        "type": "bar",
        "x": (edges[1:] + edges[:-1]) / 2,
        "y": shares,
        "width": np.diff(edges),
        "name": "observed",
        "marker": {"color": faded(ORANGE, 0.75), "line": {"color": "white", "width": 1}},
        "hovertemplate": "%{x:.4g}<extra></extra>",
    }
    return figure(
        [bars, line(grid, curve, "predicted at the start", BLUE, width=2.5)],
        height=360,
        xaxis=axis("return of an episode, discounted", range=[grid[0], grid[-1]]),
        yaxis=axis("density", rangemode="tozero", showticklabels=False, ticks=""),
    )
