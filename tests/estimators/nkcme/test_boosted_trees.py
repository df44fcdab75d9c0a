"""Trees as arrays predict what scikit-learn's predict, and a damaged file is refused."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from nkcme.errors import ModelFileError
from nkcme.estimators.nkcme.boosted_trees import BoostedTrees


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)).astype(np.float32)
    return x, x[:, 0] * x[:, 1] + rng.normal(size=n)


@pytest.mark.parametrize(("leaves", "n_trees"), [(2, 1), (31, 40)])
def test_they_predict_what_scikit_learn_predicts(leaves, n_trees):
    model = HistGradientBoostingRegressor(max_iter=n_trees, max_leaf_nodes=leaves).fit(*table())
    trees = BoostedTrees.of(model)
    new, _ = table(500, seed=1)
    np.testing.assert_allclose(trees.predict(new), model.predict(new), rtol=1e-5, atol=1e-5)
    again = BoostedTrees.from_arrays(trees.to_arrays(), 4)
    np.testing.assert_array_equal(again.predict(new), trees.predict(new))
    assert trees.predict(new[:0]).shape == (0,)


def test_rows_on_a_threshold_go_the_same_way():
    """Neighbours in single precision: their middle, rounded up, would send both to the left."""
    low = np.float32(1.0)
    high = np.nextafter(low, np.float32(2.0))
    x = np.repeat(np.array([low, high]), 50)[:, None]
    y = np.repeat([0.0, 1.0], 50)
    model = HistGradientBoostingRegressor(max_iter=1, learning_rate=1.0).fit(x, y)
    np.testing.assert_allclose(BoostedTrees.of(model).predict(x), model.predict(x), atol=1e-6)
    assert np.ptp(model.predict(x)) == pytest.approx(1.0)


def test_a_table_that_cannot_be_split_is_a_constant():
    model = HistGradientBoostingRegressor(max_iter=3).fit(np.ones((30, 2)), np.arange(30.0))
    np.testing.assert_allclose(BoostedTrees.of(model).predict(np.ones((2, 2))), 14.5)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("left", lambda a: a + 10**6),
        ("right", lambda a: a - 10**6),
        ("feature", lambda a: a + 4),
        ("roots", lambda a: a[:0]),
        ("value", lambda a: a * np.nan),
        ("threshold", lambda a: a[:-1]),
        ("head", lambda a: a + 1e9),
        ("left", lambda a: a.astype(float)),
        ("value", lambda a: a[None]),
    ],
)
def test_damaged_trees_are_refused(name, change):
    trees = BoostedTrees.of(HistGradientBoostingRegressor(max_iter=5).fit(*table())).to_arrays()
    with pytest.raises(ModelFileError):
        BoostedTrees.from_arrays(trees | {name: change(trees[name])}, 4)
    with pytest.raises(ModelFileError, match="complete"):
        BoostedTrees.from_arrays({k: v for k, v in trees.items() if k != name}, 4)
