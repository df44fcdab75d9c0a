"""The figures of the README and of docs/idea.md: ``python -m benchmarks figures``."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import ConnectionPatch, Patch

from nkcme import NKCME, presets
from nkcme.datasets.problem import Toy
from nkcme.datasets.toy import load_toy
from nkcme.distributions.embedding import Embedding
from nkcme.report.plots import BLUE, INK, ORANGE, STYLE, VERMILION, plot_partial_dependence

#: The number of training rows, of 5,000, that are drawn as points.
N_POINTS = 700

#: The title of each toy problem, and the x of its lower panel.
PANELS = {
    "bimodal": ("two branches", 1.0),
    "skewed": ("changing skew and spread", -3.0),
    "ring": ("a ring around a square", 0.6),
}


def draw_readme(path: Path) -> None:
    """Three data sets with the predicted density, and below each the densities at one x."""
    fig, axes = plt.subplots(2, 3, figsize=(11, 6.2), height_ratios=(1.5, 1), layout="constrained")
    for column, (name, (title, at)) in zip(axes.T, PANELS.items(), strict=True):
        toy = load_toy(name)
        X, y = toy.make(seed=0)
        model = NKCME(**presets.QUICK, random_state=0).fit(X, y)
        _draw_data(column[0], model, X, y, title, at)
        _draw_cut(column[1], model, toy, at)
    axes[0, 0].set_ylabel("y")
    axes[1, 0].set_ylabel("density of y there")
    axes[1, 0].legend(frameon=False, loc="upper center", fontsize=10)
    shading = Patch(color=BLUE, alpha=0.8, label="predicted")
    points = axes[0, 0].get_legend_handles_labels()[0]
    axes[0, 0].legend(handles=[*points, shading], frameon=False, loc="upper left", fontsize=10)
    _save(fig, path)


def _draw_data(ax: Axes, model: NKCME, X: np.ndarray, y: np.ndarray, title: str, at: float) -> None:
    """The data over the predicted density of all x."""
    plot_partial_dependence(model, X, 0, ax, shade="density")
    ax.scatter(X[:N_POINTS, 0], y[:N_POINTS], s=6, color=ORANGE, alpha=0.8, lw=0, label="data")
    ax.axvline(at, color=VERMILION, lw=1.8, ls="--")
    ax.set(title=title, xlabel="x", ylabel="", ylim=(y.min() - 0.2, y.max() + 0.2))


def _draw_cut(ax: Axes, model: NKCME, toy: Toy, at: float) -> None:
    """The predicted and the true density at one x."""
    dist = model.predict_dist([[at]]).smoothed()
    low, high = toy.ppf([at], [0.0005, 0.9995])[0]
    margin = 0.12 * (high - low)
    grid = np.linspace(low - margin, high + margin, 800)
    ax.fill_between(grid, dist.pdf(grid, grid=True)[0], color=BLUE, alpha=0.55, label="predicted")
    ax.plot(grid, toy.pdf(at, grid), color=INK, lw=1.6, label="true")
    ax.set(xlabel=f"y at x = {at:g}".replace("-", "−"), yticks=[], xlim=(grid[0], grid[-1]))
    ax.set_ylim(bottom=0)
    ax.spines["left"].set_visible(False)


def draw_idea(path: Path) -> None:
    """Three steps: the data, the weights that a network gives to atoms at one x, the density."""
    toy, at = load_toy("ring"), 0.7
    X, y = toy.make(seed=0)
    model = NKCME(**presets.QUICK, n_atoms=28, random_state=0).fit(X, y)
    dist = model.predict_dist([[at]]).smoothed()
    assert isinstance(dist, Embedding)
    eta, weights = dist.atoms[:, 0] * dist.scale[0, 0] + dist.location[0, 0], dist.weights[0]
    grid = np.linspace(-3, 3, 900)
    bumps = weights[:, None] * Embedding(
        atoms=dist.atoms, weights=np.eye(len(eta)), kernel=dist.kernel, bandwidth=dist.bandwidth,
        location=dist.location, scale=dist.scale,
    ).pdf(grid, grid=True)  # fmt: skip

    layout = ConstrainedLayoutEngine(wspace=0.1)
    fig, axes = plt.subplots(1, 3, figsize=(11, 4.0), layout=layout, sharey=True)
    axes[0].scatter(X[:1500, 0], y[:1500], s=5, color=ORANGE, alpha=0.6, lw=0)
    axes[0].axvline(at, color=VERMILION, ls="--", lw=1.8)
    axes[0].text(at + 0.06, -2.85, f"x = {at}", color=VERMILION)
    axes[0].set(title="1  a table of (x, y)", xlabel="x", ylabel="y", ylim=(-3, 3))

    axes[1].hlines(eta, 0, weights, color=BLUE, lw=2.5)
    axes[1].plot(weights, eta, "o", color=BLUE, ms=5)
    axes[1].plot(np.zeros_like(eta), eta, "o", color=INK, ms=4, clip_on=False, zorder=5)
    axes[1].text(0.004, 2.45, r"atoms $\eta_a$")
    axes[1].set(title="2  a network weighs the atoms", xlabel="weight $w_a(x)$")

    for bump in bumps:
        axes[2].plot(bump, grid, color=BLUE, lw=0.9, alpha=0.8)
    axes[2].fill_betweenx(grid, bumps.sum(axis=0), color=BLUE, alpha=0.22, lw=0)
    axes[2].plot(bumps.sum(axis=0), grid, color=INK, lw=1.8)
    axes[2].set(title="3  a kernel makes them a density", xlabel=r"$\sum_a w_a(x)\, k(\eta_a, y)$")
    for ax in axes[1:]:
        ax.set_xlim(left=0)
        ax.locator_params(axis="x", nbins=4)
    for left, right in pairwise(axes):
        _arrow(fig, left, right)
    _save(fig, path)


def _arrow(fig: Figure, left: Axes, right: Axes) -> None:
    """An arrow from one panel to the next."""
    arrow = ConnectionPatch(
        (1.02, 0.5), (-0.05, 0.5), coordsA=left.transAxes, coordsB=right.transAxes,
        arrowstyle="-|>", mutation_scale=18, lw=1.6, color=INK,
    )  # fmt: skip
    fig.add_artist(arrow)


def _save(fig: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path)
    plt.close(fig)
    print(f"Wrote {path}")


def main(images: Path) -> None:
    """Draw both figures into a directory."""
    plt.switch_backend("Agg")
    with plt.rc_context(STYLE):
        draw_readme(images / "readme.png")
        draw_idea(images / "idea.png")
