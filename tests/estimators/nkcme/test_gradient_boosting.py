"""Gradient boosting: the number of trees is that of all members, and seeds determine the rest."""

from dataclasses import replace

import numpy as np
import pytest

from nkcme.estimators.nkcme.boosted_trees import BoostedTrees
from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.gradient_boosting import GradientBoosting, StagedTrees, stop_members
from nkcme.estimators.nkcme.recipe import BoostingRecipe
from support.nkcme_models import cross_fitted, encoded


def leaves(n):
    """``n`` trees that are leaves."""
    return BoostedTrees(0.0, np.arange(n), *[np.arange(n)] * 5, depth=0)


def table(n=400, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return encoded(x, x[:, 0] * x[:, 1] + noise * rng.normal(size=n))


def fitted(recipe=None, seed=0, n_held_out=100, **options):
    data = table(**options)
    held_out, rest = data.rows(np.arange(n_held_out)), data.rows(np.arange(n_held_out, 400))
    return GradientBoosting(recipe or BoostingRecipe(), 400, seed).fit(
        rest.x, rest.y[:, 0], rest.weight, (held_out.x, held_out.y[:, 0], held_out.weight)
    ), held_out


def test_stages_are_predictions_of_the_first_trees():
    member, held_out = fitted()
    for n_stages in (1, 3, member.n_stages, member.n_stages + 5):
        trees = member.first(n_stages)
        assert len(trees.roots) == 10 * min(n_stages, member.n_stages)
        np.testing.assert_allclose(
            trees.predict(held_out.x), member.predicted_after(n_stages), rtol=0, atol=1e-6
        )


def test_the_last_stage_is_what_remains():
    recipe = BoostingRecipe(n_trees=25, stage_trees=10, patience_trees=100)
    assert fitted(recipe)[0].n_trees == [10, 20, 25]


def test_a_seed_determines_the_trees():
    one, again, other = (fitted(seed=seed)[0].predicted for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one[0] - other[0]).max() > 1e-3


def test_a_seed_may_be_larger_than_lightgbm_takes():
    assert fitted(seed=2**31 + 3)[0].n_stages > 0


def test_a_member_that_only_gets_worse_ends_early():
    """Noise alone: the first trees are best, and hundreds more would be thrown away."""
    recipe = BoostingRecipe(patience=2.0, patience_trees=50)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 3)).astype(np.float32), rng.normal(size=400)
    ones = np.ones(200)
    member = GradientBoosting(recipe, 400).fit(x[:200], y[:200], ones, (x[200:], y[200:], ones))
    errors = [np.mean(np.square(y[200:] - predicted)) for predicted in member.predicted]
    best = 10 * (1 + int(np.argmin(errors)))
    assert member.n_trees[-1] == 2 * best + 50 < recipe.n_trees


def test_a_table_that_cannot_be_split_is_a_constant():
    x, y, ones = np.ones((30, 2), np.float32), np.arange(30.0), np.ones(30)
    member = GradientBoosting(BoostingRecipe(), 30).fit(x, y, ones, (x[:5], y[:5], ones[:5]))
    assert member.n_trees == [1]
    np.testing.assert_allclose(member.first(1).predict(x), 14.5)


def test_weights_count():
    """Weights of zero and one, and the rows of weight one alone, have equal means."""
    x, y, ones = np.ones((30, 1), np.float32), np.arange(30.0), np.ones(30)
    weight = np.where(np.arange(30) < 3, 1.0, 1e-9)
    member = GradientBoosting(BoostingRecipe(), 30).fit(x, y, weight, (x, y, ones))
    np.testing.assert_allclose(member.predicted[-1], 1.0, atol=1e-5)


def staged(folds, n_rows, member_predictions):
    """Members whose predictions after each stage are given, (n_stages, n_rows) each."""
    return [
        StagedTrees(
            leaves,
            list(range(1, 1 + len(predicted))),
            [one[folds.held_out_rows(member)] for one in predicted],
        )
        for member, predicted in enumerate(member_predictions)
    ]


def test_all_members_stop_where_their_mean_is_best():
    """Stage k has bias 1 / k and independent errors of variance 0.04 k. One member is best at
    k = 3, as 1 / 9 + 0.12 < 1 / 4 + 0.08, 1 / 16 + 0.16. The mean of ten is best at
    about k = 8, the least of 1 / k^2 + 0.004 k."""
    rng = np.random.default_rng(0)
    n = 20_000
    folds, y = Folds.assign(n, 5, 2, seed=0), rng.normal(size=n)
    stages = np.arange(1, 10)[:, None]
    members = [y + 1 / stages + np.sqrt(0.04 * stages) * rng.normal(size=(9, n)) for _ in range(10)]
    models, predicted = stop_members(staged(folds, n, members), y, np.ones(n), folds)
    (n_stages,) = {len(read().roots) for read in models}
    assert 7 <= n_stages <= 9
    rows = folds.held_out_rows(2)
    np.testing.assert_array_equal(predicted[0, rows], members[2][n_stages - 1][rows])


def test_a_member_that_ended_before_keeps_all_its_trees():
    n = 200
    folds, y = Folds.assign(n, 2, 1, seed=0), np.random.default_rng(0).normal(size=n)
    members = [[y + 1.0, y + 0.9], [y + 1.0, y + 0.5, y + 0.1]]
    models, predicted = stop_members(staged(folds, n, members), y, np.ones(n), folds)
    assert [len(read().roots) for read in models] == [2, 3]
    np.testing.assert_allclose(predicted[0] - y, np.where(folds.fold[0] == 0, 0.9, 0.1))


@pytest.mark.parametrize(("noise", "few"), [(5.0, True), (0.01, False)])
def test_noise_stops_cross_fitted_trees_early(noise, few):
    data, folds = table(noise=noise), Folds.assign(400, 5, 2, seed=0)
    base, predicted = cross_fitted(GradientBoosting(BoostingRecipe(), 400), data, folds)
    n_trees = {len(one.roots) for (one,) in base.models}
    assert max(n_trees) <= 30 if few else min(n_trees) >= 200
    for member in (0, 7):
        held_out = folds.held_out_rows(member)
        (trees,) = base.models[member]
        np.testing.assert_allclose(
            trees.predict(data.x[held_out]), predicted[member // 5, held_out, 0], atol=1e-6
        )


def test_each_output_has_its_own_number_of_trees():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    data = encoded(x, np.stack([x[:, 0] ** 3, x[:, 1] + 5 * rng.normal(size=400)], axis=1))
    folds = Folds.assign(400, 5, 1, seed=0)
    recipe = replace(BoostingRecipe(), n_trees=100)
    base, predicted = cross_fitted(GradientBoosting(recipe, 400), data, folds)
    assert predicted.shape == (1, 400, 2)
    assert len(base.models[0][0].roots) > len(base.models[0][1].roots)
