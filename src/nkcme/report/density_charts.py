"""Charts of single predicted distributions: the density that intervals and scores belong to."""

from __future__ import annotations

import numpy as np

from nkcme.distributions.base import Distribution
from nkcme.evaluation import NOMINAL
from nkcme.number_text import written
from nkcme.report.chart_elements import (
    BLUE,
    GREY,
    SKY,
    VERMILION,
    Figure,
    axis,
    faded,
    figure,
    line,
    plain,
)

#: Quantiles that bins depend on: fine ones lie between the outermost, and the others, the ends of
#: the 90 % interval, are among their edges.
BIN_LEVELS = (0.01, (1 - NOMINAL) / 2, (1 + NOMINAL) / 2, 0.99)

#: Fine bins of a row, and bins of the whole range of y. Bins narrower than the gaps between the
#: atoms of a prediction would alternate between high and low.
_BINS, _OUTER_BINS = 40, 24


def densities(
    dist: Distribution, y: np.ndarray, titles: list[str], target: str, *, height: int = 250
) -> list[Figure]:
    """A density for each row, all over one range of y, with its interval and the true value.

    The density is that of the distribution itself, averaged over narrow bins by its CDF: areas are
    exact, and the shaded interval has 90 % of them. Point masses are drawn as stems.
    """
    ends = np.append(dist.ppf([0.005, 0.995]), y)
    margin = 0.03 * np.ptp(ends) or 1.0
    low, high = ends.min() - margin, ends.max() + margin
    quantiles, (values, masses) = dist.ppf(BIN_LEVELS), dist.point_masses()
    intervals = quantiles[:, 1:3]
    figures = []
    for i, title in enumerate(titles):
        name = plain(target, 30)
        edges, heights = binned_density(dist[i], quantiles[i], (low, high), values, masses[i])
        within = (edges >= intervals[i, 0]) & (edges <= intervals[i, 1])
        steps = {"line": {"color": BLUE, "width": 1.6, "shape": "hv"}}
        data = [
            line(edges[within], heights[within], "90 % interval", width=0, fill="tozeroy")
            | {"fillcolor": faded(SKY, 0.5), "hoverinfo": "skip"}
            | {"line": {"width": 0, "shape": "hv"}},
            line(edges, heights, "predicted density", BLUE)
            | {"hovertemplate": f"{name} %{{x}}<br>density %{{y:.3g}}<extra></extra>"}
            | steps,
        ]
        top = float(heights.max(initial=0.0)) or 1.0
        if len(values):
            data += _stems(values, masses[i], intervals[i], top, name)
        data.append(
            line([y[i], y[i]], [0, 1.06 * top], "true value", VERMILION, dash="4px,3px")
            | {"hovertemplate": f"true {name}: {written(y[i], 5)}<extra></extra>"}
        )
        axes = {
            "xaxis": axis(plain(target, 40), range=[low, high], nticks=4),
            "yaxis": axis("density", range=[0, 1.1 * top], showticklabels=False, ticks=""),
        }
        heading = {"text": plain(title), "x": 0.02, "font": {"size": 14}}
        figures.append(figure(data, height=height, legend=False, title=heading, **axes))
    return figures


def binned_density(
    row: Distribution,
    quantiles: np.ndarray,
    reach: tuple[float, float],
    values: np.ndarray,
    masses: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Edges (k + 1,) of bins over a range, and the mean density (k + 1,) right of each edge.

    The last density repeats the one before. Point masses do not count.

    Parameters
    ----------
    row : Distribution
        One row.
    quantiles : array (4,)
        Its quantiles at `BIN_LEVELS`.
    reach : (float, float)
        The range.
    values, masses : arrays (k,)
        Its point masses.
    """
    low, high = np.clip(quantiles[[0, -1]], *reach)
    inner = np.linspace(low, high, _BINS + 1)
    for end in quantiles[1:3]:  # the nearest edge moves there, so that no bin is very narrow
        inner[np.argmin(np.abs(inner - end))] = end
    outer = np.linspace(*reach, _OUTER_BINS)
    edges = np.unique(np.concatenate([outer[(outer < low) | (outer > high)], inner]))
    below = row.cdf(edges, grid=True)[0]
    if len(values):
        below = below - (masses * (values <= edges[:, None])).sum(axis=1)
    heights = np.maximum(np.diff(below), 0.0) / np.diff(edges)
    # Rounding of the sums above.
    heights = np.where(np.diff(below) < 1e-9, 0.0, heights)
    return edges, np.append(heights, heights[-1:])


def _stems(
    values: np.ndarray, masses: np.ndarray, interval: np.ndarray, top: float, name: str
) -> list[Figure]:
    """Point masses as vertical lines, the largest as high as the curve; blue in the interval."""
    inside = (values >= interval[0]) & (values <= interval[1])
    height = top * masses / masses.max()
    found = []
    for chosen, colour in ((inside, BLUE), (~inside, GREY)):
        gaps = np.full(int(chosen.sum()), np.nan)
        x = np.stack([values[chosen], values[chosen], gaps], axis=1).ravel()
        stems = np.stack([np.zeros_like(gaps), height[chosen], gaps], axis=1).ravel()
        template = f"{name} %{{x}}<br>probability %{{customdata:.3g}}<extra></extra>"
        found.append(
            line(x, stems, "point masses", colour, width=3)
            | {"customdata": np.repeat(masses[chosen], 3), "hovertemplate": template}
        )
    return found
