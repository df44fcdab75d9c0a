"""Fitting location models: out-of-fold predictions, stacks, scales, and fits in other threads."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

from nkcme.errors import NkcmeError, TrainingError
from nkcme.estimators.nkcme import location_fitting, location_regressors
from nkcme.estimators.nkcme.extra_trees import ExtraTrees
from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.gradient_boosting import GradientBoosting
from nkcme.estimators.nkcme.location_fitting import check_center, stack_bases
from nkcme.estimators.nkcme.other_bases import OtherBases
from nkcme.estimators.nkcme.recipe import (
    DEFAULT,
    BoostingRecipe,
    ForestRecipe,
    LocationRecipe,
)
from nkcme.estimators.replica_training import Run
from support.nkcme_models import cross_fitted, encoded, line, quick, small
from support.tiny_estimators import small_recipe


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_location_model_of_noise_predicts_next_to_nothing(rng):
    """In-sample, boosting explains noise; out-of-fold there is nothing to explain."""
    x, y = rng.normal(size=(300, 5)), rng.normal(size=300)
    data, folds = encoded(x, y), Folds.assign(300, 5, 1, seed=0)
    boosting = HistGradientBoostingRegressor(max_iter=50, min_samples_leaf=2)
    assert np.std(y - boosting.fit(x, y).predict(x)) < 0.5 * np.std(y)
    base, predicted = cross_fitted(boosting, data, folds)
    fit = stack_bases(data, folds, {"base00": base}, [predicted], DEFAULT.location)
    assert fit.model.weights[0, 0] < 0.3
    assert fit.model.scale[0] > 0.95 * np.std(y)


def test_out_of_fold_predictions_are_those_of_a_model_without_the_row(rng):
    x, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    data, folds = encoded(x, y), Folds.assign(60, 5, 2, seed=0)
    base, predicted = cross_fitted(LinearRegression(), data, folds)
    for member in range(10):
        rows, held_out = folds.training_rows(member), folds.held_out_rows(member)
        alone = LinearRegression().fit(data.x[rows], data.y[rows, 0])
        np.testing.assert_allclose(
            predicted[member // 5, held_out, 0], alone.predict(data.x[held_out]), rtol=1e-4
        )
    each = [one.predict(data.x) for of_member in base.models for one in of_member]
    np.testing.assert_allclose(base.members(data.x)[..., 0], each, rtol=1e-6)


def test_fits_in_other_threads_are_the_same(rng, monkeypatch):
    x, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    data, folds = encoded(x, y), Folds.assign(60, 2, 1, seed=0)
    boosting = HistGradientBoostingRegressor(max_iter=5, max_features=0.5)
    found = []
    for cores in (2, 3, 6):  # when they are collected, in one thread, in four
        monkeypatch.setattr(location_regressors, "available_cores", lambda cores=cores: cores)
        base, predicted = cross_fitted(boosting, data, folds)
        found.append((predicted, base.members(data.x)))
    for predicted, members in found[1:]:
        np.testing.assert_array_equal(predicted, found[0][0])
        np.testing.assert_array_equal(members, found[0][1])


@pytest.mark.parametrize("cores", [1, 4])
def test_abandoned_fits_are_not_started(cores, rng, monkeypatch):
    started, may_end = [], threading.Event()

    class Counted(LinearRegression):
        def fit(self, x, y):
            started.append(1)
            assert may_end.wait(60)
            return super().fit(x, y)

    monkeypatch.setattr(location_regressors, "available_cores", lambda: cores)
    data, folds = encoded(rng.normal(size=(60, 2)), rng.normal(size=60)), Folds.assign(60, 30, 1, 0)
    fits = location_regressors.RegressorFits([Counted()], [data], [folds])
    threading.Timer(0.2, may_end.set).start()
    fits.abandon()
    # Of thirty, those that were running already: at most one per thread.
    assert len(started) <= {1: 1, 4: 2}[cores]


def test_a_location_model_that_fails_abandons_its_regressors(monkeypatch):
    def diverge(*_, **__):
        raise TrainingError("the loss is nan")

    abandoned = []
    monkeypatch.setattr(location_fitting, "fit_networks", diverge)
    monkeypatch.setattr(
        location_fitting.RegressorFits, "abandon", lambda self: abandoned.append(self)
    )
    with pytest.raises(TrainingError):
        quick(center="mean").fit(*line())
    assert len(abandoned) == 1


def test_the_scale_is_that_of_the_mean_of_all_members(rng):
    """Members with independent errors: the mean over two repeats has variance v / 2, that of all
    ten v / 10."""
    truth = rng.normal(size=20_000)
    data = encoded(rng.normal(size=(20_000, 1)), truth + 0.5 * rng.normal(size=20_000))
    folds = Folds.assign(20_000, 5, 2, seed=0)
    predicted = truth[:, None] + rng.normal(size=(2, 20_000, 1))
    fit = stack_bases(data, folds, {"base00": None}, [predicted], DEFAULT.location)
    w = fit.model.weights[0, 0]
    error = lambda k: np.sqrt(0.25 + (1 - w) ** 2 + w**2 / k)  # noqa: E731
    assert fit.model.n_averaged == 10
    assert fit.model.scale[0] == pytest.approx(error(10), rel=0.02)
    assert fit.unit()[0] == pytest.approx(error(2), rel=0.02)
    assert np.std(fit.residuals(data.y)) == pytest.approx(1.0, rel=0.02)


def test_sample_weights_reach_a_regressor_that_takes_them(rng):
    x, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    weight = np.where(np.arange(40) < 10, 5.0, 1.0)
    folds = Folds.assign(40, 5, 1, seed=0)
    _, weighted = cross_fitted(LinearRegression(), encoded(x, y, weight), folds)
    _, plain = cross_fitted(LinearRegression(), encoded(x, y), folds)
    assert np.abs(weighted - plain).max() > 1e-3
    with pytest.raises(NkcmeError, match="KNeighborsRegressor as center does not take"):
        cross_fitted(KNeighborsRegressor(), encoded(x, y, weight), folds)


def test_each_output_has_its_own_stack():
    x, y = line()
    pair = np.stack([y, -x[:, 1]], axis=1)
    model = quick(center=[LinearRegression(), "network"]).fit(x, pair)
    assert model.center_.weights.shape == (2, 2)
    np.testing.assert_allclose(model.predict(x), pair, atol=1.5)


def test_a_scale_that_depends_on_x_is_found():
    """y = N(0, s(x)^2) with s from 0.1 to 3: boosting finds log s up to a constant, which the units
    contain."""
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, size=(2000, 1))
    s = np.exp(1.7 * x[:, 0])
    model = small(center="mean-scale", epochs=20, standardize=True)
    model.fit(x, s * rng.normal(size=2000))
    at = np.array([[-0.9], [0.0], [0.9]])
    scale = model.center_.at(model._encode(at)).scale[:, 0]
    np.testing.assert_allclose(scale / scale[1], np.exp(1.7 * at[:, 0]), rtol=0.35)
    np.testing.assert_allclose(
        model.predict_dist(at).std() / np.exp(1.7 * at[:, 0]), 1.0, rtol=0.35
    )


def test_several_outputs_share_one_scale():
    """(y1, y2) = s(x) (cos t, 0.2 sin t), t uniform. The length of y determines s far better than
    either output, whose different units the scale does not touch."""
    rng = np.random.default_rng(8)
    x = rng.uniform(-1, 1, size=(1000, 1))
    t = rng.uniform(0, 2 * np.pi, 1000)
    y = np.exp(x) * np.stack([np.cos(t), 0.2 * np.sin(t)], axis=1)
    model = small(center="mean-scale", epochs=20).fit(x, y)
    at = np.linspace(-0.9, 0.9, 19)[:, None]
    scale = model.center_.at(model._encode(at)).scale
    np.testing.assert_allclose(scale / scale[9], np.exp(at) * np.ones(2), rtol=0.15)


@pytest.mark.parametrize("center", [["tree"], [], "median", 3, [LinearRegression(), 3]])
def test_a_center_that_is_no_regressor_is_refused(center):
    with pytest.raises(NkcmeError, match="center must be"):
        check_center(center)


def location_fit(x, y, recipe):
    data, folds = encoded(x, y), Folds.assign(len(x), 2, 1, seed=0)
    return location_fitting.fit_location_models("mean", [data], [folds], recipe, Run(False))[0]


@pytest.mark.parametrize("hopeless_ratio", [0.0, 1e9])
def test_trees_that_add_nothing_are_left_out(hopeless_ratio, rng):
    x = rng.normal(size=(200, 2))
    small = small_recipe(network_steps=100).location
    recipe = replace(small, hopeless_ratio=hopeless_ratio, hopeless_gain=1.0)
    fit = location_fit(x, x[:, 0] + x[:, 1], recipe)
    assert (list(fit.model.bases) == ["network"]) == (hopeless_ratio > 0)


def test_trees_that_add_something_are_kept(rng):
    """Jumps, which trees learn at once."""
    x = rng.normal(size=(300, 2))
    recipe = replace(small_recipe(network_steps=100).location, hopeless_ratio=0.6)
    assert "base00" in location_fit(x, np.sign(x[:, 0]) + (x[:, 1] > 1), recipe).model.bases


@pytest.mark.parametrize("paused", [False, True])
def test_a_pause_changes_nothing_in_the_end(paused, rng):
    data, folds = encoded(rng.normal(size=(80, 2)), rng.normal(size=80)), Folds.assign(80, 2, 2, 0)
    recipe = BoostingRecipe(n_trees=40, first_trees=10)
    regressors = [GradientBoosting(recipe, 80), ExtraTrees(ForestRecipe(n_trees=2))]
    known = location_regressors.RegressorFits(regressors, [data], [folds]).collect()
    fits = location_regressors.RegressorFits(regressors, [data], [folds])
    if paused:
        fits.pause()
    assert [one.shape for one in fits.predicted_after(10)] == [(2, 80, 1)]
    for (ours,), (theirs,) in zip(fits.collect(), known, strict=True):
        np.testing.assert_array_equal(ours[1], theirs[1])


def others(fits, data, folds, recipe, on_gpu=False):
    regressors = {"base00": GradientBoosting(recipe.boosting, len(data.x))}
    fits = fits or location_regressors.RegressorFits(list(regressors.values()), [data], [folds])
    return OtherBases(regressors, fits, [data], [folds], recipe, True, on_gpu)


def slowly_learned(rng):
    """A line, of which trees learn little by little, and networks that know it up to noise."""
    x = rng.normal(size=(400, 2))
    data, folds = encoded(x, x[:, 0] + 0.5 * x[:, 1]), Folds.assign(400, 2, 2, 0)
    return data, folds, [data.y + 0.01 * rng.normal(size=(2, 400, 1))]


FEW_TREES = replace(
    LocationRecipe(), boosting=BoostingRecipe(n_trees=80, first_trees=10, stage_trees=5)
)


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("lead", [False, True])
def test_trees_wait_for_networks_that_lead_and_on_a_gpu_for_all(lead, on_gpu, rng):
    data, folds, exact = slowly_learned(rng)
    bases = others(None, data, folds, FEW_TREES, on_gpu)
    networks = exact if lead else [np.zeros((2, 400, 1))]
    (first,) = bases.fits.predicted_after(10)
    of_first = bases.stack_error(0, first)
    assert (bases.errors(networks) == [of_first]) == (lead or on_gpu)
    assert ("collected" in vars(bases)) == (not lead and not on_gpu)


def test_trees_that_waited_are_those_of_fits_without_a_pause(rng):
    data, folds, _ = slowly_learned(rng)
    no_network = [np.zeros((2, 400, 1))]  # beside which all trees are needed
    waiting = others(None, data, folds, FEW_TREES, on_gpu=True)
    waiting.errors(no_network)
    (_, ours) = waiting.beside(no_network)["base00"][0]
    (_, known) = others(None, data, folds, FEW_TREES).collected["base00"][0]
    np.testing.assert_array_equal(ours, known)


def test_trees_grow_no_further_than_helps_the_networks(rng):
    """Beside networks that are nearly exact the first trees add nothing: how many more are grown
    depends on the ratio alone, and their predictions are those of as many trees."""
    data, folds, exact = slowly_learned(rng)
    found = {}
    for name, ratio in {"all": 0.0, "enough": 0.9}.items():
        recipe = replace(FEW_TREES, enough_ratio=ratio, hopeless_ratio=0.0)
        bases = others(None, data, folds, recipe)
        bases.errors(exact)
        found[name] = bases.beside(exact)["base00"][0]
        if name == "enough":
            (of_ten,) = bases.fits.predicted_after(10)
            np.testing.assert_array_equal(found[name][1], of_ten)
    n_trees = {name: len(trees.models[0][0].roots) for name, (trees, _) in found.items()}
    assert n_trees["enough"] == 10
    assert n_trees["all"] > 40
    error = {name: np.std(predicted[0] - data.y) for name, (_, predicted) in found.items()}
    assert error["all"] < 0.7 * error["enough"]


def test_the_trees_that_are_kept_do_not_depend_on_when_networks_came_to_lead(rng):
    """A fit that was stopped meets only the networks that came after its checkpoint."""
    data, folds, exact = slowly_learned(rng)
    recipe = replace(FEW_TREES, enough_ratio=0.9, hopeless_ratio=0.0)
    whole, resumed = (others(None, data, folds, recipe) for _ in range(2))
    whole.errors([np.zeros((2, 400, 1))])  # which do not lead: all trees are grown
    resumed.errors(exact)
    (trees, of_whole), (_, of_resumed) = (
        one.beside(exact)["base00"][0] for one in (whole, resumed)
    )
    assert len(trees.models[0][0].roots) == 10
    np.testing.assert_array_equal(of_whole, of_resumed)


def test_trees_that_may_overtake_networks_go_on(rng):
    """The error of these trees falls fast: at that rate they would come below that of the
    networks, to which ten trees add nothing yet."""
    data, folds, _ = slowly_learned(rng)
    first = others(None, data, folds, FEW_TREES)
    (predicted,) = first.fits.predicted_after(10)
    networks = [data.y + 0.6 * (predicted - data.y)]
    assert first.stack_error(0, *networks, predicted) == pytest.approx(
        first.stack_error(0, *networks)
    )
    first.errors(networks)
    trees, _ = first.beside(networks)["base00"][0]
    assert len(trees.models[0][0].roots) > 40
