"""Pictures for notebooks and papers: each function draws on an Axes and gives it back.

The only place that imports matplotlib, an optional extra. Where ``ax`` is None a new figure is
made; nothing is shown or saved, and several functions can draw on one Axes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from nkcme import metrics
from nkcme.distributions.base import Distribution
from nkcme.errors import NkcmeError
from nkcme.evaluation import as_table
from nkcme.report.partial_dependence import Fan, Features

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, VERMILION, GREEN, PINK, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"
COLOURS = (BLUE, VERMILION, GREEN, PINK, ORANGE)
INK = "#1a1a1a"

#: How the pictures of the documents look.
STYLE: Any = {
    "font.size": 11,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "text.color": INK,
    "axes.labelcolor": INK,
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "figure.facecolor": "white",
}


def plot_density(
    dist: Distribution,
    ax: Axes | None = None,
    *,
    rows: Iterable[int] | None = None,
    y: ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    grid: ArrayLike | None = None,
) -> Axes:
    """The predicted densities of some rows as curves; embeddings are read smoothed.

    ``rows`` are the first five unless given, ``labels`` their names in the legend. ``y``, one true
    value for each row of ``dist``, is marked by dashed lines. ``grid`` says where on the axis of y.
    """
    axes = _axes(ax)
    chosen = list(range(min(len(dist), len(COLOURS))) if rows is None else rows)
    if not chosen:
        raise NkcmeError("there are no rows to draw; give at least one")
    names = [f"row {i}" for i in chosen] if labels is None else list(labels)
    if len(names) != len(chosen):
        raise NkcmeError(f"expected a label for each of {len(chosen)} rows; got {len(names)}")
    points = _grid_over(dist[chosen]) if grid is None else np.asarray(grid, np.float64)
    # The logarithm, because it is of the clipped density where weights are signed.
    curves = np.exp(dist[chosen].smoothed().logpdf(points, grid=True))
    for k, (i, name, curve) in enumerate(zip(chosen, names, curves, strict=True)):
        colour = COLOURS[k % len(COLOURS)]
        axes.plot(points, curve, color=colour, lw=1.8, label=name)
        axes.fill_between(points, curve, color=colour, alpha=0.15, lw=0)
        if y is not None:
            axes.axvline(np.asarray(y)[i], color=colour, ls="--", lw=1.2)
    axes.set(xlabel="y", ylabel="density")
    axes.set_ylim(bottom=0)
    if len(chosen) > 1 or labels is not None:
        axes.legend(frameon=False)
    return axes


def plot_fan(
    model: Any,
    X: Any,
    feature: str | int,
    ax: Axes | None = None,
    *,
    y: ArrayLike | None = None,
    shade: str = "bands",
) -> Axes:
    """How the prediction moves along a numeric feature, the others typical for the table ``X``.

    Shaded are the middle 50 % and 90 % of the prediction (``shade="bands"``), or its density
    relative to the highest at each place (``shade="density"``), which shows several peaks as such.
    ``y``, one true value a row of ``X``, adds the rows as points.
    """
    if shade not in ("bands", "density"):
        raise NkcmeError(f'shade must be "bands" or "density"; got {shade!r}')
    features = Features(X)
    j = features.position(feature)
    truth = None if y is None else np.asarray(y, np.float64).reshape(-1)
    if truth is not None and len(truth) != len(as_table(X)):
        raise NkcmeError(f"expected a y for each of {len(as_table(X))} rows; got {len(truth)}")
    fan = features.fan(model, j, y=truth)
    axes = _axes(ax)
    if truth is not None:
        axes.scatter(features.columns[j], truth, s=6, color=ORANGE, alpha=0.6, lw=0, zorder=2)
    if shade == "density":
        _shade_density(axes, fan)
    else:
        low, low_half, _, high_half, high = fan.quantiles.T
        axes.fill_between(fan.values, low, high, color=BLUE, alpha=0.2, lw=0, label="90 %")
        axes.fill_between(
            fan.values, low_half, high_half, color=BLUE, alpha=0.35, lw=0, label="50 %"
        )
        axes.plot(fan.values, fan.quantiles[:, 2], color=INK, lw=1.8, label="median", zorder=3)
        axes.legend(frameon=False)
    axes.set(xlabel=fan.feature, ylabel="y", xlim=(fan.values[0], fan.values[-1]))
    return axes


def plot_pit(pit: ArrayLike, ax: Axes | None = None, *, n_bins: int = 10) -> Axes:
    """The histogram of PIT values; calibrated ones are flat but for chance, which is in grey."""
    values = metrics.pit(pit)
    if n_bins < 1:
        raise NkcmeError(f"n_bins must be at least 1; got {n_bins}")
    axes = _axes(ax)
    counts, edges = np.histogram(values, bins=n_bins, range=(0, 1))
    low, high = binom.ppf([0.025, 0.975], len(values), 1 / n_bins) / len(values)
    axes.bar(edges[:-1], counts / len(values), 1 / n_bins, align="edge", color=BLUE, ec="white")
    axes.axhspan(low, high, color="0.5", alpha=0.3, lw=0, zorder=2)
    axes.axhline(1 / n_bins, color=INK, ls="--", lw=1.2, zorder=3)
    axes.set(xlabel="PIT", ylabel="share of rows", xlim=(0, 1))
    return axes


def _shade_density(axes: Axes, fan: Fan) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("from white to blue", ["white", BLUE])
    axes.pcolormesh(fan.values, fan.grid, fan.shade.T, cmap=colours, shading="gouraud", zorder=0.5)


def _grid_over(dist: Distribution) -> np.ndarray:
    """Points over nearly all mass of all rows, closer where some row has much of it."""
    ends = dist.ppf([0.001, 0.999])
    even = np.linspace(ends.min(), ends.max(), 300)
    return np.unique(np.append(even, dist.ppf(np.linspace(0.001, 0.999, 100))))


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise _no_matplotlib() from error
    return pyplot.subplots()[1]


def _no_matplotlib() -> NkcmeError:
    return NkcmeError(
        'pictures need matplotlib, which is not installed; run pip install "nkcme[plots]"'
    )


@contextmanager
def picture(
    path: Path, rows: int, columns: int, size: tuple[float, float], **subplots: Any
) -> Iterator[tuple[Figure, np.ndarray]]:
    """A figure of the documents with (rows, columns) Axes, written to ``path`` in the end."""
    with _styled() as new_figure:
        figure = new_figure(figsize=size, layout="constrained")
        yield figure, figure.subplots(rows, columns, squeeze=False, **subplots)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)


@contextmanager
def _styled() -> Iterator[type[Figure]]:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise _no_matplotlib() from error
    with matplotlib.rc_context(STYLE):
        yield Figure


#: The films that can be written, by the ending of their names.
FILMS = (".gif", ".mp4")


def check_film(path: Path) -> None:
    """Refuse a film that could not be written."""
    if path.suffix.lower() not in FILMS:
        raise NkcmeError(f"a film's name ends in {' or '.join(FILMS)}; got {path}")
    if path.suffix.lower() == ".mp4":
        with _styled():
            from matplotlib.animation import FFMpegWriter

            if not FFMpegWriter.isAvailable():
                raise NkcmeError(
                    "MP4 films need ffmpeg, which is not on the path; give a name that ends in .gif"
                )


@contextmanager
def film(path: Path, size: tuple[float, float], fps: int) -> Iterator[tuple[Figure, Any]]:
    """A figure, and what adds its present state to the film that is written to ``path``.

    The film appears whole or not at all.
    """
    check_film(path)
    partial = path.with_name(f".{os.getpid()}-{path.name}")
    with _styled() as new_figure:
        from matplotlib.animation import FFMpegWriter, PillowWriter

        writer = (PillowWriter if path.suffix.lower() == ".gif" else FFMpegWriter)(fps=fps)
        figure = new_figure(figsize=size)  # without an engine that would lay out every picture
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with writer.saving(figure, str(partial), dpi=100):
                yield figure, writer.grab_frame
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
