"""How new rows are, and by how much their distributions are widened."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from nkcme import NKCME, load
from nkcme.errors import ModelFileError
from nkcme.estimators.nkcme.ensemble import Ensemble
from nkcme.estimators.nkcme.fitted_model import member_spread
from nkcme.estimators.nkcme.law_recipe import LawRecipe, NoveltyRecipe
from nkcme.estimators.nkcme.novelty import Novelty, bounds_of
from nkcme.estimators.training_data import Encoded
from nkcme.tables.target import TargetScaler
from support.tiny_estimators import small_recipe

RECIPE = NoveltyRecipe()


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def training_data(x, y):
    scaler = TargetScaler(np.zeros(1), np.ones(1))
    columns = (x.astype(np.float32), y[:, None].astype(np.float32), np.ones(len(x)))
    return Encoded(*columns, None, None, len(x), 0, scaler)


def learn(data, spread):
    return Novelty.learn(data, spread, RECIPE, located=True, bounds=bounds_of(data.x))


@pytest.fixture
def line(rng):
    """y = 2 x for x in a square, the second input without effect: a variogram of E (2 dx)^2 / 2."""
    x = rng.uniform(-1, 1, (2000, 2))
    return learn(training_data(x, 2.0 * x[:, 0]), np.full(2000, 0.5))


def test_the_variogram_is_half_the_mean_squared_difference_of_y(line):
    """Of the squared distance h^2 the effective input has half, on average: 4 h^2 / 2 / 2."""
    near = line.distances < 1.0
    np.testing.assert_allclose(line.variogram[near], np.square(line.distances[near]), atol=0.1)
    assert np.all(np.diff(line.variogram) >= 0)


def test_usual_rows_are_not_widened_and_distant_ones_more_and_more(line, rng):
    inside = rng.uniform(-0.9, 0.9, (500, 2)).astype(np.float32)
    spread = np.full(500, 0.5)
    added = line.variance(inside, spread)
    assert np.mean(added > 0) < 0.1
    assert added.max() < 0.05  # of a variance of 4/3
    away = np.array([[x, 0.0] for x in (1.5, 2.0, 3.0, 30.0)], np.float32)
    added = line.variance(away, np.full(4, 0.5))
    assert np.all(np.diff(added) > 0)
    assert added[0] > 0.1
    assert added[-1] > 5 * added[-2]  # beyond the last pair the variogram goes on growing


def test_members_that_are_unusually_far_apart_widen_by_their_excess(line):
    x = np.zeros((2, 2), np.float32)
    np.testing.assert_allclose(
        line.variance(x, np.array([0.5, 0.8])), [0.0, RECIPE.spread_factor * 0.3]
    )


def test_beyond_the_range_of_an_input_the_square_of_what_the_mean_changes_inside_is_added(line):
    """For the mean 3 x the change over a way h is 3 h, whichever side; from one input to the other
    nothing is mixed, and a way longer than the range ends at its other side."""
    low, high = line.bounds[:, 0]
    x = np.array([[0.5, 0.5], [high + 0.5, 0.2], [low - 0.25, 0.2], [high + 9.0, 0.0], [0.0, 7.0]])
    ways = np.array([0.0, 0.5, 0.25, high - low, 0.0])
    added = line.extrapolated(x.astype(np.float32), lambda rows: 3.0 * rows[:, 0])
    np.testing.assert_allclose(added, RECIPE.change_factor * np.square(3.0 * ways), rtol=1e-5)
    assert line.extrapolated(x[:1].astype(np.float32), lambda rows: 1 / 0) == 0.0  # nothing asked


def test_a_file_of_an_earlier_version_has_no_ranges(line):
    config, arrays = line.to_config(), line.to_arrays()
    del config["change_factor"], arrays["bounds"]
    earlier = Novelty.from_file(config, arrays, 2)
    assert earlier.extrapolated(np.full((1, 2), 9.0), lambda rows: 1 / 0) == 0.0


@pytest.mark.parametrize("center", ["none", "mean"])
def test_intervals_are_wider_outside_the_training_rows_and_survive_a_file(center, rng, tmp_path):
    X = rng.uniform(-1, 1, (300, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=300)
    recipe = small_recipe(steps=300, n_repeats=1, n_folds=3)
    model = NKCME(center=center, recipe=recipe, standardize=True, random_state=0).fit(X, y)
    inside, outside = np.array([[0.0, 0.0]]), np.array([[4.0, -4.0]])

    def widths(model):
        low, high = model.predict_interval(np.r_[inside, outside]).T
        return high - low

    with_novelty = widths(model)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(widths(load(tmp_path / "model")), with_novelty)
    model.law_ = replace(model.law_, novelty=None)
    without = widths(model)
    assert with_novelty[0] == without[0]
    assert with_novelty[1] > 1.5 * without[1]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("usual_spread", -1.0),
        ("usual_distance", float("nan")),
        ("centers", np.zeros((3, 5))),
        ("variogram", np.arange(21.0)[::-1]),
        ("distances", np.arange(20.0)),
        ("change_factor", -1.0),
        ("bounds", np.array([[1.0, 0.0], [0.0, 1.0]])),
    ],
)
def test_a_damaged_description_is_refused(line, name, value):
    config, arrays = line.to_config(), line.to_arrays()
    (config if name in config else arrays)[name] = value
    with pytest.raises(ModelFileError):
        Novelty.from_file(config, arrays, 2)


def test_new_rows_like_the_training_rows_are_rarely_widened(rng):
    """Fully grown trees agree on the rows that they were trained on, and not on new ones."""
    x = rng.uniform(-1, 1, (2400, 3))
    y = np.sin(3 * x).sum(axis=1)
    recipe = small_recipe(steps=20)
    model = NKCME(center=DecisionTreeRegressor(), recipe=recipe, random_state=0)
    encoded = model.fit(x[:400], y[:400])._encode(x[400:])
    spread = member_spread(Ensemble(model.model_), model.center_.at(encoded), encoded)
    assert np.mean(spread > model.law_.novelty.usual_spread) < 0.03


def test_distances_of_later_rows_are_usual_where_rows_are_in_time(rng):
    """Later rows are beyond the training rows: those that a law is learned from, and new ones."""
    x = rng.normal(size=(300, 2))
    data = training_data(x, 2 * x[:, 0])
    novelty = learn(data, np.zeros(300))
    later = (data.x + 5.0).astype(np.float32)
    known = novelty.knowing(later, NoveltyRecipe())
    assert (novelty.variance(later, np.zeros(300)) > 0).all()
    assert np.mean(known.variance(later, np.zeros(300)) > 0) < 0.02
    assert known.knowing(data.x, NoveltyRecipe()).usual_distance == known.usual_distance
    np.testing.assert_array_equal(known.bounds, bounds_of(np.concatenate([data.x, later])))


@pytest.mark.parametrize(
    ("n", "by_time", "expected"), [(1000, True, 200), (1000, False, 0), (150, True, 0)]
)
def test_the_last_rows_are_held_out_where_rows_are_in_time(n, by_time, expected):
    assert LawRecipe().n_held_out(n, by_time=by_time) == expected
