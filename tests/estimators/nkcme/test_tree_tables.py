"""Tables of ruled-out leaves give the sums that descending the trees gives."""

from dataclasses import replace

import lightgbm
import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from nkcme.errors import ModelFileError
from nkcme.estimators.nkcme import tree_ensemble
from nkcme.estimators.nkcme.boosted_trees import BoostedTrees
from nkcme.estimators.nkcme.tree_ensemble import TreeEnsemble


def fitted(leaves, n_trees, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(800, 4)).astype(np.float32).round(1)
    y = x[:, 0] * x[:, 1] + np.sin(3 * x[:, 2]) + 0.1 * rng.normal(size=len(x))
    return boosted(x, y, n_trees, num_leaves=leaves, min_data_in_leaf=2)


def boosted(x, y, n_trees, **parameters):
    parameters |= {"verbosity": -1, "num_threads": 1, "use_missing": False}
    data = lightgbm.Dataset(x, y, params=parameters)
    return BoostedTrees.of_text(lightgbm.train(parameters, data, n_trees).model_to_string())


@pytest.mark.parametrize("leaves", [2, 8, 16, 17, 40, 64, 65, 150])
@pytest.mark.parametrize("n_rows", [1, 3, 700])
def test_sums_are_those_of_descending(leaves, n_rows):
    members = [[fitted(leaves, 5, 0), fitted(leaves, 3, 1)], [fitted(3, 7, 2), fitted(2, 1, 3)]]
    rng = np.random.default_rng(9)
    x = (1.5 * rng.normal(size=(n_rows, 4))).round(1)
    expected = [[one.predict(x) for one in of_member] for of_member in members]
    found = TreeEnsemble(members).members(x)
    assert found.shape == (2, n_rows, 2)
    np.testing.assert_allclose(found, np.moveaxis(expected, 1, 2), rtol=1e-6, atol=1e-6)


def test_trees_without_splits_are_constants():
    ensemble = TreeEnsemble([[boosted(np.ones((30, 2), np.float32), np.arange(30.0), 3)]])
    np.testing.assert_allclose(ensemble.members(np.ones((5, 2))), 14.5)
    assert ensemble.members(np.ones((0, 2))).shape == (1, 0, 1)


def test_a_forest_and_the_last_feature_that_has_16_bits():
    x = np.zeros((60, 2**15), np.float32)
    x[:, -1] = np.random.default_rng(0).normal(size=len(x))
    forest = ExtraTreesRegressor(4, random_state=0).fit(x[:, -1:], np.sin(3 * x[:, -1]))
    expected = forest.predict(x[:, -1:])
    trees = BoostedTrees.of_trees(forest.estimators_)
    found = TreeEnsemble([[trees]]).members(x[:, -1:])
    np.testing.assert_allclose(found[0, :, 0], expected, atol=1e-6)
    moved = replace(trees, feature=np.full_like(trees.feature, 2**15 - 1))
    assert moved.feature.dtype == np.int16
    found = TreeEnsemble([[moved]]).members(x)
    np.testing.assert_allclose(found[0, :, 0], expected, atol=1e-6)


def test_tables_that_would_be_too_large_are_not_made(monkeypatch):
    trees, x = fitted(31, 4), np.random.default_rng(0).normal(size=(50, 4))
    expected = TreeEnsemble([[trees]]).members(x)
    monkeypatch.setattr(tree_ensemble, "_MOST_BYTES", 100)
    ensemble = TreeEnsemble([[trees]])
    np.testing.assert_allclose(ensemble.members(x), expected, rtol=1e-6, atol=1e-6)
    assert ensemble._tables is None


def test_a_node_with_two_parents_is_refused():
    arrays = fitted(8, 2).to_arrays()
    root = arrays["roots"][0]
    arrays["right"][root] = arrays["left"][root]
    with pytest.raises(ModelFileError, match="several parents"):
        BoostedTrees.from_arrays(arrays, 4)
