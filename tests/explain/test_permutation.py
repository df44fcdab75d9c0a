"""Permutation importance: closed forms of a known law, and a model fitted to a simulation."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from nkcme import NkcmeError, TableError
from nkcme.distributions.gaussian_mixture import GaussianMixture
from nkcme.explain import permutation_importance
from support.nkcme_models import small


class NormalModel:
    """y is normal with mean 2 x0 and log deviation x1 / 2; x2 is noise."""

    def predict_dist(self, X):
        x = np.asarray(X, float)
        return GaussianMixture(np.zeros((len(x), 1)), 2 * x[:, [0]], np.exp(0.5 * x[:, [1]]))


def simulated(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, 2 * X[:, 0] + np.exp(0.5 * X[:, 1]) * rng.normal(size=n)


@pytest.fixture(scope="module")
def found():
    return permutation_importance(NormalModel(), *simulated(), quantiles=[0.1, 0.95], n_repeats=3)


def test_each_input_is_found_for_what_it_moves_and_for_nothing_else(found):
    assert found.measures == ("crps", "centre", "spread", "tails", "q0.1", "q0.95")
    assert found.relative("centre")[0] > 1.0
    np.testing.assert_allclose(found.mean("centre")[1:], 0.0, atol=1e-12)
    assert found.relative("spread")[1] > 0.05
    np.testing.assert_allclose(found.mean("spread")[[0, 2]], 0.0, atol=1e-12)
    assert found.relative("tails")[1] > 0.02
    np.testing.assert_allclose(found.mean("tails")[[0, 2]], 0.0, atol=1e-12)
    for measure in ("crps", "q0.1", "q0.95"):
        assert list(found.order(measure)) == [0, 1, 2]
        assert found.mean(measure)[1] > 0
        assert found.mean(measure)[2] == pytest.approx(0.0, abs=1e-12)


def test_scores_and_increases_are_those_of_the_closed_form():
    X, y = simulated(4000)
    found = permutation_importance(NormalModel(), X, y, quantiles=[0.1], max_rows=4000, n_repeats=2)
    std = np.exp(0.5 * X[:, 1])
    assert found.score["crps"] == pytest.approx(np.mean(std) / np.sqrt(np.pi), rel=0.03)
    assert found.score["centre"] == pytest.approx(found.score["crps"], rel=2e-3)
    quantile = 2 * X[:, 0] + std * stats.norm.ppf(0.1)
    pinball = np.where(y < quantile, 0.9 * (quantile - y), 0.1 * (y - quantile)).mean()
    assert found.score["q0.1"] == pytest.approx(pinball)
    # The mean CRPS of N(m', s) for y from N(m, s) is E|N(m - m', 2 s^2)| - s / sqrt(pi).
    rng = np.random.default_rng(1)
    apart, width = 2 * (X[:, 0] - rng.permutation(X[:, 0])), np.sqrt(2) * std
    z = apart / width
    distance = 2 * width * stats.norm.pdf(z) + apart * (1 - 2 * stats.norm.cdf(-z))
    expected = np.mean(distance - std / np.sqrt(np.pi))
    assert found.score["crps"] + found.mean("crps")[0] == pytest.approx(expected, rel=0.03)


def test_a_fitted_model_finds_the_input_that_moves_only_the_spread():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(900, 3))
    y = 3 * X[:, 0] + np.exp(1.2 * X[:, 1]) * rng.normal(size=900)
    model = small(epochs=60).fit(X[:600], y[:600])
    found = permutation_importance(model, X[600:], y[600:])
    assert found.order("spread")[0] == 1
    assert found.relative("spread")[1] > 0.03
    assert found.order("centre")[0] == 0
    assert found.relative("centre")[1] < 0.1 * found.relative("centre")[0]
    assert np.abs(found.relative("spread")[[0, 2]]).max() < 0.5 * found.relative("spread")[1]


def test_frames_arrays_and_seeds_give_the_same(found):
    X, y = simulated()
    rng = np.random.default_rng(0)
    for frame in (
        pd.DataFrame(X, columns=list("abc"), index=rng.permutation(len(X))),
        pl.DataFrame(X, schema=list("abc")),
    ):
        same = permutation_importance(NormalModel(), frame, y, quantiles=[0.1, 0.95], n_repeats=3)
        assert same.features == ("a", "b", "c")
        np.testing.assert_allclose(same.increase["crps"], found.increase["crps"])
    fewer = permutation_importance(NormalModel(), X, y, max_rows=50, n_repeats=1)
    assert fewer.n_rows == 50
    assert "array" not in repr(found)


def test_text_and_missing_values_are_shuffled_as_they_are():
    class Kinds:
        def predict_dist(self, X):
            assert list(X.columns) == ["kind", "x"]
            mean = X["kind"].isna().to_numpy(float)[:, None]
            return GaussianMixture(np.zeros_like(mean), mean, np.ones_like(mean))

    X = pd.DataFrame({"kind": ["a", None] * 20, "x": np.arange(40.0)})
    found = permutation_importance(Kinds(), X, X["kind"].isna().to_numpy(float))
    assert found.mean("centre")[0] > 0
    assert found.mean("centre")[1] == 0


def test_bad_input_is_refused_in_one_line(found):
    X, y = simulated(20)
    for levels in ([1.5], ["x"], [0.0]):
        with pytest.raises(NkcmeError, match="quantile levels"):
            permutation_importance(NormalModel(), X, y, quantiles=levels)
    with pytest.raises(TableError, match="20 rows and y has 19"):
        permutation_importance(NormalModel(), X, y[1:])
    with pytest.raises(NkcmeError, match="no predict_dist"):
        permutation_importance(object(), X, y)
    with pytest.raises(NkcmeError, match="at least one repeat"):
        permutation_importance(NormalModel(), X, y, n_repeats=0)
    with pytest.raises(NkcmeError, match="no measure 'width'; it has crps, centre"):
        found.mean("width")
