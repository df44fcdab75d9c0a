"""Trees as arrays predict what LightGBM's predict, and a damaged file is refused."""

import lightgbm
import numpy as np
import pytest

from nkcme.errors import ModelFileError
from nkcme.estimators.nkcme.boosted_trees import BoostedTrees


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)).astype(np.float32)
    return x, x[:, 0] * x[:, 1] + rng.normal(size=n)


def boosted(x, y, n_trees=5, **parameters):
    parameters = {"verbosity": -1, "num_threads": 1, "use_missing": False} | parameters
    data = lightgbm.Dataset(x, y, params=parameters)
    model = lightgbm.train(parameters, data, n_trees)
    return model, BoostedTrees.of_text(model.model_to_string())


@pytest.mark.parametrize(("leaves", "n_trees"), [(2, 1), (31, 40), (100, 400)])
def test_they_predict_what_lightgbm_predicts(leaves, n_trees):
    model, trees = boosted(*table(), n_trees, num_leaves=leaves, min_data_in_leaf=2)
    new, _ = table(500, seed=1)
    np.testing.assert_allclose(trees.predict(new), model.predict(new), rtol=0, atol=1e-6)
    again = BoostedTrees.from_arrays(trees.to_arrays(), 4)
    np.testing.assert_array_equal(again.predict(new), trees.predict(new))
    assert trees.predict(new[:0]).shape == (0,)


def test_arrays_of_earlier_versions_are_read():
    """They had 64 bits for each number."""
    _, trees = boosted(*table(), 40)
    arrays = trees.to_arrays()
    old = {k: v.astype(np.int64 if v.dtype.kind == "i" else np.float64) for k, v in arrays.items()}
    assert sum(v.nbytes for v in arrays.values()) < 0.5 * sum(v.nbytes for v in old.values())
    new, _ = table(500, seed=1)
    again = BoostedTrees.from_arrays(old, 4)
    np.testing.assert_array_equal(again.predict(new), trees.predict(new))


def test_rows_on_a_threshold_go_the_same_way():
    """Neighbours in single precision: their middle, rounded up, would send both to the left."""
    low = np.float32(1.0)
    high = np.nextafter(low, np.float32(2.0))
    x = np.repeat(np.array([low, high]), 50)[:, None]
    y = np.repeat([0.0, 1.0], 50)
    model, trees = boosted(x, y, 1, learning_rate=1.0)
    np.testing.assert_allclose(trees.predict(x), model.predict(x), atol=1e-6)
    assert np.ptp(model.predict(x)) == pytest.approx(1.0)


def test_a_table_that_cannot_be_split_is_a_constant():
    _, trees = boosted(np.ones((30, 2), np.float32), np.arange(30.0), 3)
    np.testing.assert_allclose(trees.predict(np.ones((2, 2))), 14.5)


def test_many_columns_need_wider_numbers():
    x = np.zeros((60, 40_000), np.float32)
    x[30:, 39_999] = 1.0
    _, trees = boosted(x, x[:, -1].copy(), 1, learning_rate=1.0)
    np.testing.assert_allclose(trees.predict(x[[0, -1]]), [0.0, 1.0], atol=1e-6)


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
    trees = boosted(*table())[1].to_arrays()
    with pytest.raises(ModelFileError):
        BoostedTrees.from_arrays(trees | {name: change(trees[name])}, 4)
    with pytest.raises(ModelFileError, match="complete"):
        BoostedTrees.from_arrays({k: v for k, v in trees.items() if k != name}, 4)
