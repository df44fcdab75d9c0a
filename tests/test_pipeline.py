"""A pipeline that ends in an estimator of distributions."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from nkcme import DistributionPipeline, KernelCME, cross_val_predict_dist, crps_scorer
from nkcme.evaluation import evaluate
from support.tiny_estimators import tiny


def pipeline(last=None):
    columns = ColumnTransformer([("numbers", StandardScaler(), ["x"]),
                                 ("kinds", OneHotEncoder(sparse_output=False), ["c"])])  # fmt: skip
    return DistributionPipeline([("columns", columns), ("cme", last or KernelCME(random_state=0))])


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=60), "c": rng.choice(["a", "b"], 60), "id": range(60)})
    return X, X["x"].to_numpy() + (X["c"] == "a") + 0.1 * rng.normal(size=60)


@pytest.fixture(scope="module")
def fitted(table):
    return pipeline().fit(*table)


def test_predictions_are_those_of_the_last_step_for_transformed_rows(fitted, table):
    X, y = table
    last, inner = fitted["cme"], fitted["columns"].transform(X)
    dist = fitted.predict_dist(X)
    np.testing.assert_array_equal(dist.mean(), last.predict_dist(inner).mean())
    np.testing.assert_array_equal(fitted.predict(X), last.predict(inner))
    np.testing.assert_array_equal(fitted.predict_var(X), last.predict_var(inner))
    np.testing.assert_array_equal(
        fitted.predict_quantiles(X, [0.2, 0.7]), last.predict_quantiles(inner, [0.2, 0.7])
    )
    np.testing.assert_array_equal(
        fitted.predict_interval(X, coverage=0.5), last.predict_interval(inner, 0.5)
    )
    np.testing.assert_array_equal(
        fitted.sample(X, 3, random_state=0), last.sample(inner, 3, random_state=0)
    )
    assert evaluate(fitted, X, y)["crps"] == pytest.approx(-crps_scorer(fitted, X, y))


def test_methods_are_those_of_the_last_step():
    assert not hasattr(pipeline(), "predict_uncertainty")
    assert hasattr(pipeline(tiny("NKCME")), "predict_uncertainty")
    assert not hasattr(pipeline(LinearRegression()), "predict_dist")


def test_clone_grid_search_and_out_of_fold_predictions(fitted, table):
    X, y = table
    copy = clone(fitted).fit(X, y)
    np.testing.assert_array_equal(copy.predict(X), fitted.predict(X))
    search = GridSearchCV(pipeline(), {"cme__n_atoms": [5, 20]}, scoring=crps_scorer, cv=2).fit(
        X, y
    )
    assert np.isfinite(search.best_score_)
    assert search.best_estimator_.predict_dist(X[:3]).n_rows == 3
    assert cross_val_predict_dist(pipeline(), X, y, cv=2).n_rows == 60


def test_a_pipeline_of_one_step(table):
    X, y = table
    alone = DistributionPipeline([("cme", KernelCME(random_state=0))]).fit(X[["x"]], y)
    expected = KernelCME(random_state=0).fit(X[["x"]], y).predict(X[["x"]])
    np.testing.assert_array_equal(alone.predict_dist(X[["x"]]).mean(), expected)
