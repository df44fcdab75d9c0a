"""Plots for notebooks and papers: each function draws on an Axes and returns it.

Nothing is shown or saved, and several functions can draw on one Axes. This is the only module that
imports matplotlib, which is an optional extra.
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
from nkcme.report.partial_dependence import Features, PartialDependence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The colours of Okabe and Ito, which colour-blind readers can distinguish.
BLUE, VERMILION, GREEN, PINK, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"
COLOURS = (BLUE, VERMILION, GREEN, PINK, ORANGE)
INK = "#1a1a1a"

#: The style of the figures in reports and documents.
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
    """Draw the predicted densities of some rows as curves, and point masses as vertical lines.

    Embeddings are read smoothed. The height of a line is the probability of the value.

    Parameters
    ----------
    dist : Distribution
        Predicted distributions of one output.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure.
    rows : iterable of int or None
        The rows to draw; None for the first five.
    y : array_like of shape (n_rows,) or None
        One observed value per row of ``dist``, drawn as dashed lines.
    labels : sequence of str or None
        The name of each drawn row in the legend; None for its number.
    grid : array_like or None
        The values of y at which densities are computed; None for a range that covers them.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    NkcmeError
        If there are no rows, if labels and rows differ in number, or without matplotlib.

    Examples
    --------
    ::

        plot_density(model.predict_dist(X), rows=[0, 7], y=y)
    """
    axes = _axes(ax)
    chosen = list(range(min(len(dist), len(COLOURS))) if rows is None else rows)
    if not chosen:
        raise NkcmeError("there are no rows to draw; choose at least one")
    names = [f"row {i}" for i in chosen] if labels is None else list(labels)
    if len(names) != len(chosen):
        raise NkcmeError(f"expected one label for each of {len(chosen)} rows; got {len(names)}")
    points = _grid_over(dist[chosen]) if grid is None else np.asarray(grid, np.float64)
    law = dist[chosen].smoothed()
    values, masses = law.point_masses()
    points = np.setdiff1d(points, values)  # where the density is a probability
    curves = law.pdf(points, grid=True)
    for k, (i, name, curve) in enumerate(zip(chosen, names, curves, strict=True)):
        colour = COLOURS[k % len(COLOURS)]
        axes.plot(points, curve, color=colour, lw=1.8, label=name)
        axes.fill_between(points, curve, color=colour, alpha=0.15, lw=0)
        if len(values):
            axes.vlines(values, 0.0, masses[k], color=colour, lw=2.5)
        if y is not None:
            axes.axvline(np.asarray(y)[i], color=colour, ls="--", lw=1.2)
    axes.set(xlabel="y", ylabel="density")
    axes.set_ylim(bottom=0)
    if len(chosen) > 1 or labels is not None:
        axes.legend(frameon=False)
    return axes


def plot_partial_dependence(
    model: Any,
    X: Any,
    feature: str | int,
    ax: Axes | None = None,
    *,
    y: ArrayLike | None = None,
    shade: str = "bands",
) -> Axes:
    """Draw the predicted distribution along a numeric feature, the others at typical values.

    Parameters
    ----------
    model : estimator
        A fitted estimator of one output with ``predict_dist``.
    X : table
        The table; the medians and most common values of its columns are the typical values.
    feature : str or int
        The name or the number of the feature.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure.
    y : array_like of shape (n_rows,) or None
        One observed value per row of ``X``, which adds the rows as points.
    shade : {"bands", "density"}
        "bands" shades the central 50 % and 90 % of the prediction. "density" shades its density
        relative to the maximum at each value of the feature, which shows several peaks.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TableError
        If the feature is not a numeric column that varies.
    NkcmeError
        If ``y`` has another number of rows, for another ``shade``, or without matplotlib.

    Examples
    --------
    ::

        plot_partial_dependence(model, X, "age", y=y, shade="density")
    """
    if shade not in ("bands", "density"):
        raise NkcmeError(f'shade must be "bands" or "density"; got {shade!r}')
    features = Features(X, getattr(model, "encoder_", None))
    j = features.position(feature)
    truth = None if y is None else np.asarray(y, np.float64).reshape(-1)
    if truth is not None and len(truth) != len(as_table(X)):
        raise NkcmeError(f"expected one y for each of {len(as_table(X))} rows; got {len(truth)}")
    prediction = features.partial_dependence(model, j, y=truth)
    axes = _axes(ax)
    if truth is not None:
        axes.scatter(features.columns[j], truth, s=6, color=ORANGE, alpha=0.6, lw=0, zorder=2)
    x = prediction.values
    if shade == "density":
        _shade_density(axes, prediction)
    else:
        low, low_half, median, high_half, high = prediction.quantiles.T
        axes.fill_between(x, low, high, color=BLUE, alpha=0.2, lw=0, label="90 %")
        axes.fill_between(x, low_half, high_half, color=BLUE, alpha=0.35, lw=0, label="50 %")
        axes.plot(x, median, color=INK, lw=1.8, label="median", zorder=3)
        axes.legend(frameon=False)
    axes.set(xlabel=prediction.feature, ylabel="y", xlim=(x[0], x[-1]))
    return axes


def plot_pit(pit: ArrayLike, ax: Axes | None = None, *, n_bins: int = 10) -> Axes:
    """Draw the histogram of PIT values, which is flat if the model is calibrated.

    Parameters
    ----------
    pit : array_like of shape (n_rows,)
        The probability integral transform of each row, such as ``dist.cdf(y)``.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure.
    n_bins : int
        The number of bins.

    Returns
    -------
    matplotlib Axes
        The grey band contains a bar of a calibrated model with probability 95 %.

    Raises
    ------
    NkcmeError
        If a value is outside of [0, 1], or without matplotlib.
    """
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


def _shade_density(axes: Axes, prediction: PartialDependence) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("from white to blue", ["white", BLUE])
    x, y, shade = prediction.values, prediction.grid, prediction.shade.T
    axes.pcolormesh(x, y, shade, cmap=colours, shading="gouraud", zorder=0.5)


def _grid_over(dist: Distribution) -> np.ndarray:
    """Points over nearly all mass of all rows, denser where a row has much of it."""
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
        'plots need matplotlib, which is not installed; run pip install "nkcme[plots]"'
    )


@contextmanager
def picture(
    path: Path, rows: int, columns: int, size: tuple[float, float], **subplots: Any
) -> Iterator[tuple[Figure, np.ndarray]]:
    """A figure with (rows, columns) Axes, which is written to ``path`` at the end."""
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


#: The endings of the animations that can be written.
ANIMATIONS = (".gif", ".mp4")


def check_animation(path: Path) -> None:
    """Raise if an animation cannot be written to ``path``."""
    if path.suffix.lower() not in ANIMATIONS:
        raise NkcmeError(f"an animation's name ends in {' or '.join(ANIMATIONS)}; got {path}")
    if path.suffix.lower() == ".mp4":
        with _styled():
            from matplotlib.animation import FFMpegWriter

            if not FFMpegWriter.isAvailable():
                raise NkcmeError(
                    "MP4 needs ffmpeg, which is not on the path; choose a name that ends in .gif"
                )


@contextmanager
def animation(path: Path, size: tuple[float, float], fps: int) -> Iterator[tuple[Figure, Any]]:
    """A figure, and a function that adds its current state as a frame of the animation ``path``.

    The file is complete or does not exist.
    """
    check_animation(path)
    partial = path.with_name(f".{os.getpid()}-{path.name}")
    with _styled() as new_figure:
        from matplotlib.animation import FFMpegWriter, PillowWriter

        writer = (PillowWriter if path.suffix.lower() == ".gif" else FFMpegWriter)(fps=fps)
        figure = new_figure(
            figsize=size
        )  # without a layout engine, which would run for every frame
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with writer.saving(figure, str(partial), dpi=100):
                yield figure, writer.grab_frame
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
