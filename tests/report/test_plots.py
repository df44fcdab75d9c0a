"""Plots of a model that is known in closed form."""

import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from scipy.stats import norm

from nkcme import Embedding, NkcmeError, TableError
from nkcme.report.plots import plot_density, plot_partial_dependence, plot_pit
from support.known_model import DEVIATION, SLOPE, KnownModel, sample


@pytest.fixture(autouse=True)
def _no_windows():
    mpl.use("Agg")
    yield
    pyplot.close("all")


def band(collection):
    """The lower and the upper edge of a filled band, by x."""
    points = collection.get_paths()[0].vertices
    xs = np.unique(points[:, 0])
    edges = [(points[points[:, 0] == x, 1].min(), points[points[:, 0] == x, 1].max()) for x in xs]
    return xs, np.array(edges).T


def test_densities_are_drawn_with_the_observed_values():
    dist = KnownModel().predict_dist(np.array([[-1.0], [0.0], [1.0]]))
    ax = plot_density(dist, rows=[0, 2], y=[-2.5, 0.0, 1.5])
    curves = [line for line in ax.lines if len(line.get_xdata()) > 2]
    for curve, mean in zip(curves, (-SLOPE, SLOPE), strict=True):
        expected = norm.pdf(curve.get_xdata(), mean, DEVIATION)
        np.testing.assert_allclose(curve.get_ydata(), expected, atol=1e-6)
    assert [line.get_xdata()[0] for line in ax.lines if line not in curves] == [-2.5, 1.5]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["row 0", "row 2"]
    assert ax.get_ylim()[0] == 0


def test_densities_can_be_labelled_and_drawn_on_given_axes():
    dist = KnownModel().predict_dist(np.zeros((2, 1)))
    _, given = pyplot.subplots()
    ax = plot_density(dist, given, rows=[1], labels=["typical"], grid=[-1, 0, 1])
    assert ax is given
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [-1, 0, 1])
    assert ax.get_legend().get_texts()[0].get_text() == "typical"


def test_densities_of_signed_weights_are_clipped():
    dist = Embedding(atoms=[-1.0, 0.0, 1.0], weights=[[0.7, -0.4, 0.7]], bandwidth=0.4)
    assert np.all(plot_density(dist).lines[0].get_ydata() >= 0)


def test_the_bands_of_partial_dependence_are_quantiles():
    X, y = sample(300)
    frame = pd.DataFrame(X, columns=["width", "other"])
    ax = plot_partial_dependence(KnownModel(), frame, "width", y=y)
    assert ax.get_xlabel() == "width"
    points, outer, inner = ax.collections
    np.testing.assert_array_equal(points.get_offsets(), np.stack([X[:, 0], y], axis=1))
    for collection, level in ((outer, 0.05), (inner, 0.25)):
        x, edges = band(collection)
        expected = SLOPE * x + DEVIATION * np.array([[norm.ppf(level)], [norm.ppf(1 - level)]])
        np.testing.assert_allclose(edges, expected, atol=1e-4)
    median = ax.lines[0]
    np.testing.assert_allclose(median.get_ydata(), SLOPE * median.get_xdata(), atol=1e-4)


def test_partial_dependence_can_be_shaded_by_density():
    X, _ = sample(100)
    ax = plot_partial_dependence(KnownModel(), X, 0, shade="density")
    mesh = ax.collections[0]
    shade = np.asarray(mesh.get_array()).reshape(-1, 81)  # y by x
    assert shade.max(axis=0) == pytest.approx(1.0)
    y = np.asarray(mesh.get_coordinates())[..., 1][:, 0]
    x = np.asarray(mesh.get_coordinates())[0, :, 0]
    step = y[1] - y[0]
    np.testing.assert_allclose(y[shade.argmax(axis=0)], SLOPE * x, atol=step)


def test_the_pit_histogram_shows_shares_and_the_range_of_a_calibrated_model():
    pit = np.append(np.full(60, 0.05), np.full(40, 0.95))
    ax = plot_pit(pit, n_bins=5)
    assert [bar.get_height() for bar in ax.patches[:5]] == [0.6, 0, 0, 0, 0.4]
    assert ax.lines[0].get_ydata()[0] == pytest.approx(0.2)
    span = ax.patches[5].get_bbox()
    # 95 % of Binomial(100, 0.2) lie in 12 ... 28 (a table of the binomial).
    assert (span.y0, span.y1) == pytest.approx((0.12, 0.28))


@pytest.mark.parametrize(
    ("draw", "error", "expected"),
    [
        (lambda d, X: plot_density(d, rows=[]), NkcmeError, "no rows"),
        (lambda d, X: plot_density(d, labels=["one"]), NkcmeError, "one label for each of 4"),
        (
            lambda d, X: plot_partial_dependence(KnownModel(), X, "nowhere"),
            TableError,
            "no numeric feature",
        ),
        (
            lambda d, X: plot_partial_dependence(KnownModel(), X, 0, shade="dots"),
            NkcmeError,
            "dots",
        ),
        (
            lambda d, X: plot_partial_dependence(KnownModel(), X, 0, y=[1.0]),
            NkcmeError,
            "one y for each of 4",
        ),
        (lambda d, X: plot_pit([0.1, 2.0]), NkcmeError, "lie in"),
        (lambda d, X: plot_pit([0.1], n_bins=0), NkcmeError, "n_bins"),
    ],
)
def test_wrong_arguments_are_refused(draw, error, expected):
    X, _ = sample(4)
    with pytest.raises(error, match=expected):
        draw(KnownModel().predict_dist(X), X)


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NkcmeError, match=r'pip install "nkcme\[plots\]"'):
        plot_pit([0.5])
