"""SHAP values add up to the difference in each statistic, and are those of closed forms."""

import numpy as np
import pandas as pd
import pytest

from nkcme import KernelCME, NkcmeError, TableError
from nkcme.distributions.gaussian_mixture import GaussianMixture
from nkcme.explain import shap_values
from nkcme.explain.statistics import Statistics

pytest.importorskip("shap", reason="shap is an extra: pip install 'nkcme[shap]'")

STATISTICS = ("mean", "spread", 0.05, 0.5, 0.99)


class NormalModel:
    """y is normal with mean 2 x0 and deviation 1 + x1."""

    def predict_dist(self, X):
        x = np.asarray(X, float)
        return GaussianMixture(np.zeros((len(x), 1)), 2 * x[:, [0]], 1 + x[:, [1]])


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return rng.uniform(size=(60, 3))


def test_values_of_an_additive_law_are_its_terms(table):
    found = shap_values(NormalModel(), table[:4], table[10:], statistics=STATISTICS)
    assert found.values.shape == (4, 3, 5)
    assert found.output_names == ["mean", "spread", "q0.05", "q0.5", "q0.99"]
    own, usual = table[:4], table[10:].mean(axis=0)
    width = 2 * 1.6448536269514722
    np.testing.assert_allclose(found.values[:, 0, 0], 2 * (own[:, 0] - usual[0]), atol=1e-9)
    np.testing.assert_allclose(found.values[:, 1, 1], width * (own[:, 1] - usual[1]), atol=1e-7)
    # Each input moves what it should, and nothing else.
    np.testing.assert_allclose(found.values[:, 1:, 0], 0.0, atol=1e-9)
    np.testing.assert_allclose(found.values[:, [0, 2], 1], 0.0, atol=1e-7)


def test_values_of_a_fitted_model_add_up_in_each_quantile(table):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": table[:, 0], "kind": rng.choice(["x", "y"], 60), "b": table[:, 1]})
    X.loc[3, "a"] = np.nan
    y = 3 * table[:, 0] * (X["kind"] == "x") + table[:, 1] * rng.normal(size=60)
    model = KernelCME(random_state=0).fit(X, y)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    found = shap_values(model, X[:6], X, statistics=STATISTICS, n_background=20)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    predicted = Statistics(STATISTICS).of(model.predict_dist(X[:6]))
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), predicted, rtol=1e-9)
    assert found.feature_names == ["a", "kind", "b"]
    assert list(found.data[:, 1]) == list(X["kind"][:6])
    again = shap_values(model, X[:6], X, statistics=STATISTICS, n_background=20)
    np.testing.assert_array_equal(again.values, found.values)


def test_bad_input_is_refused_in_one_line(table):
    model = NormalModel()
    for statistics in (["width"], [2.0], []):
        with pytest.raises(NkcmeError, match=r'"mean", "spread"|quantile levels'):
            shap_values(model, table, table, statistics=statistics)
    with pytest.raises(TableError, match="same columns"):
        shap_values(model, table, table[:, :2])
    with pytest.raises(TableError, match="same columns"):
        shap_values(model, pd.DataFrame(table), table)
    with pytest.raises(NkcmeError, match="at least one background row"):
        shap_values(model, table, table, n_background=0)
    with pytest.raises(NkcmeError, match="no predict_dist"):
        shap_values(object(), table, table)


def test_where_shap_is_absent_the_extra_is_named(table, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "shap", None)
    with pytest.raises(NkcmeError, match=r"nkcme\[shap\]"):
        shap_values(NormalModel(), table, table)
