"""Training tables as estimators see them: rows that occur several times."""

import numpy as np

from nkcme import NKCME
from nkcme.estimators.training_data import Encoded
from nkcme.tables.target import TargetScaler
from support.tiny_estimators import small_recipe


def merged(weight):
    n = len(weight)
    columns = (np.arange(n, dtype=np.float32)[:, None],) * 2
    scaler = TargetScaler(np.zeros(1), np.ones(1))
    return Encoded(*columns, np.array(weight, float), None, None, int(np.sum(weight)), 0, scaler)


def test_whole_weights_become_so_many_rows():
    rows = merged([1, 3, 2]).with_copies(most_rows=100)
    np.testing.assert_array_equal(rows.x[:, 0], [0, 1, 1, 1, 2, 2])
    np.testing.assert_array_equal(rows.y, rows.x)
    np.testing.assert_array_equal(rows.weight, 1.0)
    assert rows.n_rows == 6


def test_rows_of_a_large_table_stand_for_several_copies_and_keep_their_weight():
    rows = merged([1, 3000, 7000]).with_copies(most_rows=100)
    assert 100 <= len(rows.x) <= 103
    np.testing.assert_allclose(np.bincount(rows.x[:, 0].astype(int), rows.weight), [1, 3000, 7000])


def test_weights_that_are_not_whole_count_no_copies():
    rows = merged([0.5, 1.0, 0.25]).with_copies(most_rows=100)
    np.testing.assert_array_equal(rows.weight, [0.5, 1.0, 0.25])


def test_repeated_rows_are_predicted_as_often_as_they_occur():
    """Thirty kinds of rows, each with y 0 or 1 at a share of its own. All copies of a pair (x, y)
    in one fold would leave the other folds nothing to learn of it."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 30, size=1500)
    share = np.linspace(0.05, 0.95, 30)
    y = (rng.uniform(size=1500) < share[kind]).astype(float)
    X = kind[:, None].astype(float)
    recipe = small_recipe(steps=500, n_folds=5, n_repeats=1)
    model = NKCME(center="none", recipe=recipe, random_state=0).fit(X, y)
    predicted = model.predict_dist(np.arange(30.0)[:, None]).pmf(np.ones(30))
    assert np.abs(predicted - share).mean() < 0.06  # 0.09 without separate copies
