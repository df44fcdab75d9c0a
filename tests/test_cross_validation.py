"""Out-of-fold distributions: rows in order, each by a model that did not see it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, TimeSeriesSplit

from nkcme import KernelCME, NkcmeError, TableError, cross_val_predict_dist
from nkcme.distributions.embedding import Embedding


class Recording(BaseEstimator):
    """Predicts a narrow distribution at the mean of its training y."""

    def fit(self, X, y, sample_weight=None):
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        assert len(X) == len(y) == len(weight)
        self.mean_ = np.average(y, weights=weight)
        return self

    def predict_dist(self, X):
        return Embedding([0.0], np.ones((len(X), 1)), location=self.mean_)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=60), "c": rng.choice(["a", "b"], 60)})
    return X, X["x"].to_numpy() + 0.1 * rng.normal(size=60)


def test_each_row_is_predicted_by_a_model_of_the_other_folds(table):
    X, y = table
    cv = KFold(4, shuffle=True, random_state=0)
    weight = np.linspace(0.5, 2.0, 60)
    model = Recording()
    dist = cross_val_predict_dist(model, X, y, cv=cv, params={"sample_weight": weight})
    assert not hasattr(model, "mean_")
    expected = np.empty(60)
    for train, test in cv.split(X):
        expected[test] = np.average(y[train], weights=weight[train])
    np.testing.assert_allclose(dist.mean(), expected)


def test_an_estimator_of_the_library_gives_whole_distributions(table):
    X, y = table
    model, cv = KernelCME(random_state=0), KFold(3)
    dist = cross_val_predict_dist(model, X, y, cv=cv)
    train, test = list(cv.split(X))[1]
    own = model.fit(X.iloc[train], y[train]).predict_dist(X.iloc[test])
    np.testing.assert_allclose(dist[test].ppf([0.1, 0.9]), own.ppf([0.1, 0.9]))
    in_sample = model.fit(X, y).predict_dist(X).crps(y).mean()
    assert in_sample < dist.crps(y).mean() < y.std()


def test_groups_stay_together(table):
    X, y = table
    groups = np.repeat(np.arange(6), 10)
    dist = cross_val_predict_dist(Recording(), X, y, cv=GroupKFold(6), groups=groups)
    expected = [y[groups != g].mean() for g in groups]
    np.testing.assert_allclose(dist.mean(), expected)


def test_bad_input_is_refused_in_one_line(table):
    X, y = table
    for cv in (TimeSeriesSplit(3), ShuffleSplit(2, random_state=0)):
        with pytest.raises(NkcmeError, match=r"tested once; here \d+ rows are never tested"):
            cross_val_predict_dist(Recording(), X, y, cv=cv)
    with pytest.raises(TableError, match="60 rows and y has 59"):
        cross_val_predict_dist(Recording(), X, y[1:])
    with pytest.raises(NkcmeError, match="no predict_dist"):
        cross_val_predict_dist(BaseEstimator(), X, y)
