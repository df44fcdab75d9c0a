"""Extra trees as arrays predict what scikit-learn's predict; a forest without weight is left."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.tree import ExtraTreeRegressor

from nkcme.estimators.nkcme.boosted_trees import BoostedTrees
from nkcme.estimators.nkcme.extra_trees import ExtraTrees
from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.recipe import ForestRecipe
from support.nkcme_models import cross_fitted, encoded, quick
from support.tiny_estimators import small_recipe


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)).astype(np.float32)
    return x, x[:, 0] * x[:, 1] + rng.normal(size=n)


@pytest.mark.parametrize("leaves", [2, 40, None])
def test_they_predict_what_scikit_learn_predicts(leaves):
    forest = ExtraTreesRegressor(7, max_leaf_nodes=leaves, random_state=0).fit(*table())
    trees = BoostedTrees.of_trees(forest.estimators_)
    new, _ = table(500, seed=1)
    np.testing.assert_allclose(trees.predict(new), forest.predict(new), rtol=0, atol=1e-6)
    again = BoostedTrees.from_arrays(trees.to_arrays(), 4)
    np.testing.assert_array_equal(again.predict(new), trees.predict(new))


def test_they_are_the_trees_of_a_forest_and_filters_of_warnings_stay():
    x, y = table()
    weight = np.random.default_rng(1).uniform(size=300)
    before = list(warnings.filters)
    filters = []

    def notice(*_):
        filters.append(list(warnings.filters))
        return True

    with pytest.MonkeyPatch.context() as patch:
        fit = ExtraTreeRegressor.fit
        patch.setattr(ExtraTreeRegressor, "fit", lambda *a, **k: notice() and fit(*a, **k))
        _, predicted = ExtraTrees(ForestRecipe(n_trees=3), seed=5).fit(x, y, weight, x)
    assert filters == [before] * 3
    leaves = ForestRecipe().most_leaves
    forest = ExtraTreesRegressor(3, max_leaf_nodes=leaves, random_state=5)
    forest.fit(x, y, sample_weight=weight)
    np.testing.assert_allclose(predicted, forest.predict(x), rtol=1e-12)


def test_out_of_fold_predictions_are_those_of_the_members():
    data, folds = encoded(*table()), Folds.assign(300, 5, 2, seed=0)
    forest = ExtraTrees(ForestRecipe(n_trees=3))
    base, predicted = cross_fitted(forest, data, folds)
    for member in (0, 7):
        rows = folds.held_out_rows(member)
        (trees,) = base.models[member]
        np.testing.assert_allclose(
            trees.predict(data.x[rows]), predicted[member // 5, rows, 0], atol=1e-6
        )
    _, again = cross_fitted(forest, data, folds)
    np.testing.assert_array_equal(again, predicted)


def test_leaves_are_bounded():
    x, y = table()
    read, nothing = ExtraTrees(ForestRecipe(n_trees=2, most_leaves=9)).fit(
        x, y, np.ones(300), x[:0]
    )
    assert len(read().left) == 2 * (2 * 9 - 1)
    assert len(nothing) == 0


def test_weights_count():
    x, y = np.ones((30, 1), np.float32), np.arange(30.0)
    weight = np.where(np.arange(30) < 3, 1.0, 1e-9)
    read, _ = ExtraTrees(ForestRecipe()).fit(x, y, weight, x)
    np.testing.assert_allclose(read().predict(x), 1.0, atol=1e-5)


@pytest.mark.parametrize(("least_weight", "n_bases"), [(0.0, 3), (1.1, 2)])
def test_a_forest_of_too_small_a_weight_is_not_kept(least_weight, n_bases, tmp_path):
    recipe = small_recipe()
    forest = replace(recipe.location.forest, least_weight=least_weight)
    recipe = replace(recipe, location=replace(recipe.location, forest=forest))
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(200, 2))
    model = quick(center="mean", recipe=recipe).fit(x, np.sin(20 * x[:, 0]))
    assert len(model.center_.bases) == len(model.center_.weights) == n_bases
    model.save(tmp_path / "m")
    assert (tmp_path / "m").exists()
