"""Each stage of a fit respects groups: inputs of weights, held-out rows, choices, what is usual."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from nkcme import load, runtime
from nkcme.errors import ModelFileError
from nkcme.estimators.nkcme.calibrating import Predicted
from nkcme.estimators.nkcme.candidate import Candidate
from nkcme.estimators.nkcme.folds import Folds, hold_out
from nkcme.estimators.nkcme.law_recipe import LawRecipe, NoveltyRecipe, TransformRecipe
from nkcme.estimators.nkcme.location_fitting import stack_bases
from nkcme.estimators.nkcme.location_model import LocationModel
from nkcme.estimators.nkcme.novelty import Novelty, bounds_of
from nkcme.estimators.nkcme.recipe import DEFAULT
from nkcme.estimators.nkcme.selection import is_clearly_positive
from nkcme.estimators.nkcme.transform_choice import compare
from nkcme.tables.row_groups import RowGroups
from support.nkcme_models import cross_fitted, encoded, quick


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def grouped(rng, n_groups=12, n=10):
    """y is that of the group, which no input shows, and some noise."""
    codes = np.repeat(np.arange(n_groups), n)
    x = rng.normal(size=(len(codes), 2))
    y = x[:, 0] + rng.normal(size=n_groups)[codes] + 0.1 * rng.normal(size=len(codes))
    return x, y, codes


def test_weights_do_not_see_what_is_predicted_without_a_group(rng):
    """The mean of all other groups is lower where the group that is left out is high."""
    x, y, codes = grouped(rng)
    groups = RowGroups(codes)
    for data in (encoded(x, y), encoded(x, y)._replace(groups=groups)):
        folds = Folds.assign_groups(groups, 4, 2, seed=0)
        base, predicted = cross_fitted(LinearRegression(), data, folds)
        located = stack_bases(data, folds, {"base00": base}, [predicted], DEFAULT.location)
        inputs = Candidate(data, folds, located).training_data.x
        if data.groups is None:
            without = y - located.out_of_fold[0].mean(axis=0)[:, 0]
            level = np.array([without[codes == group].mean() for group in range(12)])
            shown = np.array([(inputs[:, 2] - x[:, 0])[codes == g].mean() for g in range(12)])
            assert np.corrcoef(level, shown)[0, 1] < -0.3
        else:
            np.testing.assert_array_equal(inputs, data.x)
            assert located.model.n_inputs(2) == 2


def test_a_model_of_groups_survives_a_file(rng, tmp_path):
    x, y, codes = grouped(rng)
    model = quick(center="mean", n_members=2, recalibrate=True).fit(x, y, groups=codes)
    model.save(tmp_path / "model")
    expected = model.predict_quantiles(x, [0.05, 0.95])
    np.testing.assert_array_equal(
        load(tmp_path / "model").predict_quantiles(x, [0.05, 0.95]), expected
    )
    found = runtime.load(tmp_path / "model").predict_quantiles(x, [0.05, 0.95])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    arrays = model.center_.to_arrays()
    with pytest.raises(ModelFileError):
        LocationModel.from_arrays(arrays | {"informs": np.zeros(2)}, 2, 1, None, None)


@pytest.mark.parametrize(("n_groups", "expected"), [(20, 0), (2000, 200)])
def test_groups_are_held_out_where_enough_of_them_calibrate(n_groups, expected, rng):
    codes = np.repeat(np.arange(n_groups), 20_000 // n_groups)
    data = encoded(rng.normal(size=(20_000, 1)), rng.normal(size=20_000))
    rest, held = hold_out(data._replace(groups=RowGroups(codes)), LawRecipe())
    n_held = 0 if held is None else len(np.unique(held.groups.codes))
    assert n_held == expected
    assert len(np.unique(rest.groups.codes)) == n_groups - expected


@pytest.mark.parametrize("way", ["blocks", "random"])
def test_the_last_rows_are_held_out_and_the_others_may_have_random_folds(way, rng):
    data = encoded(rng.normal(size=(400, 1)), rng.normal(size=400))
    data = data._replace(groups=RowGroups(np.arange(400), by_time=True))
    rest, held = hold_out(data, replace(LawRecipe(), folds_by_time=way))
    assert held.by_time
    assert held.groups.codes.min() == 320
    assert (rest.groups is None) == (way == "random")
    in_blocks = np.ptp(np.flatnonzero(Folds.of(rest, 5, 1).fold[0] == 2)) < 70
    assert in_blocks == (way == "blocks")


def test_rows_as_far_as_other_groups_are_usual(rng):
    """Groups lie apart, and their rows together: a new group is as far as the others are."""
    codes = np.repeat(np.arange(40), 20)
    x = 10 * rng.normal(size=(40, 2))[codes] + 0.01 * rng.normal(size=(800, 2))
    data = encoded(x, rng.normal(size=800))
    usual = [
        Novelty.learn(
            one, np.zeros(800), NoveltyRecipe(), located=True, bounds=bounds_of(one.x)
        ).usual_distance
        for one in (data, data._replace(groups=RowGroups(codes)))
    ]
    assert usual[0] < 0.2
    assert usual[1] > 2.0


def test_a_gain_on_few_groups_is_not_clear():
    gain = 0.1 + np.repeat(np.linspace(-1.0, 1.0, 9), 100)
    assert is_clearly_positive(gain, np.ones(900))
    assert not is_clearly_positive(gain, np.ones(900), RowGroups(np.repeat(np.arange(9), 100)))


def test_copies_make_no_choice_of_log_y_clearer_where_they_are_a_group(rng):
    x = rng.normal(size=(300, 2)).astype(np.float32)
    y = np.exp(x[:, :1] + 0.3 * rng.normal(size=(300, 1)))
    copies = np.repeat(np.arange(300), 5)
    many = x[copies], y[copies] * (1 + 1e-6 * rng.normal(size=(1500, 1))), np.ones(1500)
    once = compare(x, y, np.ones(300), 0, TransformRecipe())
    found = compare(*many, 0, TransformRecipe(), RowGroups(copies))
    # As rows of their own they would count sqrt(5) times as much.
    assert 0.5 < found.standard_errors / once.standard_errors < 1.6


@pytest.mark.parametrize("by_time", [False, True])
def test_halves_share_no_group(by_time):
    codes = np.random.default_rng(0).integers(0, 30, 200)
    rows = Predicted(
        None, np.zeros((1, 200, 2)), np.zeros((1, 1)), np.ones((1, 1)), np.arange(200.0), "none",
        np.ones(200), 1, RowGroups(codes, by_time),
    )  # fmt: skip
    first, second = (set(half.groups.codes) for half in rows.halves())
    assert first | second == set(codes)
    assert not first & second
    assert (max(first) < min(second)) == by_time
