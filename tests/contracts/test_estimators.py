"""The contract of every estimator: scikit-learn's, and ours on top.

Compilation takes most of the time, so tests share few shapes of tables and the models fitted to
them.
"""

from __future__ import annotations

import copy
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from nkcme import crps_scorer, load, log_density_scorer
from nkcme.distributions.base import Distribution
from nkcme.errors import NkcmeError, TrainingError
from nkcme.estimators import ESTIMATORS
from support.tiny_estimators import every_estimator, small_recipe, tiny

N = 40
NAMES = ["first", "second"]
ALPHA = (0.1, 0.5, 0.9)


@cache
def data() -> SimpleNamespace:
    """The tables and targets of this file."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=N)
    return SimpleNamespace(
        X=X,
        y=y,
        both=np.c_[y, X[:, 1] + 0.1 * rng.normal(size=N)],
        weight=rng.integers(0, 4, N),
        order=rng.permutation(N),
        frames={
            "pandas": pd.DataFrame(X, columns=NAMES),
            "polars": pl.DataFrame(X, schema=NAMES),
        },
        mixed=pd.DataFrame(
            {
                "size": np.where(X[:, 0] > 1, np.nan, X[:, 0]),
                "flag": X[:, 1] > 0,
                "town": pd.Categorical(np.where(X[:, 1] > 0.5, "Bern", "Ulm")),
            }
        ),
    )


#: Enough training for scikit-learn's checks to see that something was learned.
TRAINED: dict[str, dict[str, Any]] = {
    "CARD": {"mean_epochs": 300, "epochs": 300, "n_diffusion_steps": 30, "learning_rate": 0.01},
    "DeepFeatureCME": {"epochs": 200, "bandwidth": 0.3},
    "KernelCME": {"bandwidth": 0.3},
    "MDN": {"epochs": 200, "learning_rate": 0.01, "validation_fraction": 0.0},
    "NKCME": {
        "n_atoms": 20,
        "weight_decay": 0.01,
        "recipe": small_recipe(
            network_steps=100, steps=100, n_trees=20, width=16, n_folds=2, n_repeats=1
        ),
    },
    "SplineFlow": {"epochs": 100, "learning_rate": 0.01},
}

#: Estimators whose fit is the solution of an equation, without random draws.
DETERMINISTIC = {"KernelCME"}


# No check is expected to fail. Columns in another order are matched by name; scikit-learn's own
# estimators refuse them, but the checks for others do not ask for that.
@parametrize_with_checks([tiny(name, **TRAINED[name]) for name in ESTIMATORS])
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


@cache
def fitted(name: str, target: str = "flat") -> Any:
    d = data()
    return tiny(name).fit(d.X, {"flat": d.y, "column": d.y[:, None], "both": d.both}[target])


@cache
def fitted_to_mixed(name: str) -> Any:
    return tiny(name).fit(data().mixed, data().y)


def predictions(model: Any, table: Any = None) -> dict[str, np.ndarray]:
    """The predictions of every method for a table."""
    table = data().X if table is None else table
    given = {
        "mean": model.predict(table),
        "variance": model.predict_var(table),
        "samples": model.sample(table, 5, random_state=3),
    }
    if model.n_outputs_ == 1:
        given["quantiles"] = model.predict_quantiles(table, ALPHA)
        given["interval"] = model.predict_interval(table, 0.8)
        given["density"] = model.predict_dist(table).pdf(np.linspace(-2, 2, 9), grid=True)
    if hasattr(model.predict_dist(table), "herd"):
        given["herd"] = model.sample(table, 4, method="herd")
    return given


def assert_same(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> None:
    assert ours.keys() == theirs.keys()
    for method, values in ours.items():
        np.testing.assert_array_equal(values, theirs[method], err_msg=method)


# --- shapes and values ----------------------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize(
    ("target", "shape", "n_outputs"),
    [("flat", (N,), 1), ("column", (N, 1), 1), ("both", (N, 2), 2)],
)
def test_predictions_have_the_shape_of_the_target(name, target, shape, n_outputs):
    model = fitted(name, target)
    assert model.n_outputs_ == n_outputs
    row = (N,) if n_outputs == 1 else shape  # of what a distribution gives
    given = predictions(model)
    assert given["mean"].shape == given["variance"].shape == shape
    assert given["samples"].shape == (5, *row)
    if "herd" in given:
        assert given["herd"].shape == (4, *row)
    if n_outputs == 1:
        assert given["quantiles"].shape == (N, len(ALPHA))
        assert given["interval"].shape == (N, 2)
        assert model.predict_quantiles(data().X, 0.5).shape == (N,)
    for method, values in given.items():
        assert np.isfinite(values).all(), method
    dist = model.predict_dist(data().X)
    assert isinstance(dist, Distribution)
    assert len(dist) == N
    assert dist.mean().shape == row
    assert len(dist[[3, 1]]) == 2
    assert model.predict(data().X[:1]).shape == (1, *shape[1:])


@every_estimator
def test_predictions_are_those_of_the_distribution(name):
    model, dist = fitted(name), fitted(name).predict_dist(data().X)
    given = predictions(model)
    np.testing.assert_array_equal(given["mean"], dist.mean())
    np.testing.assert_array_equal(given["variance"], dist.var())
    np.testing.assert_array_equal(given["quantiles"], dist.ppf(ALPHA))
    np.testing.assert_allclose(given["interval"], given["quantiles"][:, [0, 2]])
    if name != "CARD":  # its `sample` runs the diffusion again
        np.testing.assert_array_equal(given["samples"], dist.rvs(5, 3))


@every_estimator
def test_score_is_r_squared(name):
    d = data()
    for target, y in (("flat", d.y), ("both", d.both)):
        model = fitted(name, target)
        assert model.score(d.X, y) == r2_score(y, model.predict(d.X))
    weight = np.arange(N)
    expected = r2_score(d.y, fitted(name).predict(d.X), sample_weight=weight)
    assert fitted(name).score(d.X, d.y, sample_weight=weight) == expected


@every_estimator
def test_long_tables_are_predicted_in_blocks_with_the_same_result(name, monkeypatch):
    model = fitted(name)
    whole = predictions(model)
    monkeypatch.setattr("nkcme.estimators.predictions.BLOCK_ROWS", 7)
    for method, values in predictions(model).items():
        if method != "samples":  # blocks share one generator, so the samples differ
            np.testing.assert_allclose(values, whole[method], rtol=1e-4, atol=1e-5)


# --- what a fit depends on ------------------------------------------------------------------------


@every_estimator
def test_the_seed_decides_the_bits(name):
    d = data()
    again = tiny(name).fit(d.X, d.y)
    assert_same(predictions(again), predictions(fitted(name)))
    other = tiny(name, random_state=1).fit(d.X, d.y)
    assert np.array_equal(other.predict(d.X), again.predict(d.X)) == (name in DETERMINISTIC)
    rng = np.random.RandomState(5)
    samples = [again.sample(d.X, 2, random_state=seed) for seed in (5, rng, rng)]
    np.testing.assert_array_equal(samples[0], samples[1])
    assert not np.array_equal(samples[1], samples[2])


@every_estimator
def test_the_order_of_rows_and_the_form_of_weights_make_no_difference(name):
    d = data()
    for target in (d.y, d.both):
        weighted = tiny(name).fit(d.X, target, sample_weight=d.weight)
        shuffled = tiny(name).fit(d.X[d.order], target[d.order], sample_weight=d.weight[d.order])
        repeated = tiny(name).fit(d.X.repeat(d.weight, axis=0), target.repeat(d.weight, axis=0))
        assert_same(predictions(weighted), predictions(shuffled))
        assert_same(predictions(weighted), predictions(repeated))


@every_estimator
def test_weights_do_not_change_which_rows_are_held_out(name):
    if "validation_fraction" not in tiny(name).get_params():
        pytest.skip(f"{name} has no validation_fraction: it holds no rows out")
    d = data()
    model = tiny(name, validation_fraction=0.25)
    weighted = clone(model).fit(d.X, d.y, sample_weight=d.weight + 1)
    repeated = clone(model).fit(d.X.repeat(d.weight + 1, axis=0), d.y.repeat(d.weight + 1))
    assert_same(predictions(weighted), predictions(repeated))


@every_estimator
def test_a_refit_replaces_everything(name):
    d = data()
    frame = d.frames["pandas"]
    model = copy.deepcopy(fitted(name, "both")).fit(frame, d.y)
    assert_same(predictions(model, frame), predictions(fitted(name)))
    assert model.n_outputs_ == 1
    model.fit(d.X, d.y)
    assert not hasattr(model, "feature_names_in_")


@every_estimator
def test_a_clone_is_unfitted_and_fits_alike(name):
    copied = clone(fitted(name))
    assert copied.get_params() == fitted(name).get_params()
    assert not [attribute for attribute in vars(copied) if attribute.endswith("_")]
    assert_same(predictions(copied.fit(data().X, data().y)), predictions(fitted(name)))


@every_estimator
@pytest.mark.parametrize("error", [TrainingError("the loss is nan"), KeyboardInterrupt()], ids=repr)
def test_a_fit_that_raises_changes_nothing(name, error, monkeypatch):
    """The failure comes late, when the table is encoded already; its units differ."""

    def fail(self, datasets):
        raise error

    d = data()
    fresh, model = tiny(name), copy.deepcopy(fitted(name))
    before = vars(model).copy()
    monkeypatch.setattr(type(model), "_train", fail)
    with pytest.raises(type(error)):
        model.fit(1e3 * d.X, 1e6 + d.both)
    assert vars(model) == before
    with pytest.raises(type(error)):
        fresh.fit(d.X, d.y)
    with pytest.raises(NotFittedError):
        fresh.predict(d.X)
    monkeypatch.undo()
    assert_same(predictions(model), predictions(fitted(name)))


@every_estimator
def test_parameters_are_checked_before_the_table_is_read(name):
    """And so a refit with a bad parameter keeps the model."""
    model = copy.deepcopy(fitted(name))
    before = vars(model).copy()
    with pytest.raises(NkcmeError, match="standardize must be"):
        model.set_params(standardize="yes").fit("no table", None)
    assert vars(model) == before | {"standardize": "yes"}


@every_estimator
def test_fit_many_is_close_to_separate_fits(name):
    d = data()
    datasets = [(d.X, d.y), (d.X + 1, d.y * 100), (-d.X, np.square(d.y))]
    # Long training amplifies rounding, and groups of replicas differ in their order of summation.
    shorter = {"epochs": 20} if "epochs" in TRAINED[name] else {}
    model = tiny(name, **TRAINED[name] | shorter)
    together = model.fit_many(datasets)
    assert len({one.random_state for one in together}) == len(datasets)
    for one, (table, target) in zip(together, datasets, strict=True):
        alone = clone(one).fit(table, target)
        for method in ("predict", "predict_quantiles"):
            np.testing.assert_allclose(
                getattr(one, method)(table),
                getattr(alone, method)(table),
                atol=1e-3 * np.std(target),
            )
    with pytest.raises(ValueError, match="same encoded columns"):
        model.fit_many([(d.X, d.y), (d.X[:, :1], d.y)])


@every_estimator
def test_fit_many_takes_random_states(name):
    d = data()
    model = tiny(name, **TRAINED[name])
    given = model.fit_many([(d.X, d.y)] * 3, random_states=[5, 6, 5])
    assert [one.random_state for one in given] == [5, 6, 5]
    # Not to the bit: replicas are split over cores into groups of different sizes.
    near = partial(np.allclose, given[0].predict(d.X), atol=0.01 * np.std(d.y))
    assert near(given[2].predict(d.X))
    assert near(given[1].predict(d.X)) == (name in DETERMINISTIC)
    with pytest.raises(ValueError, match="one random state for each of 3 data sets; got 2"):
        model.fit_many([(d.X, d.y)] * 3, random_states=[5, 6])


# --- tables ---------------------------------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_are_tables_with_names(name, kind):
    d = data()
    model = tiny(name).fit(d.frames[kind], d.y)
    assert model.feature_names_in_.tolist() == NAMES
    assert model.n_features_in_ == 2
    for other in d.frames.values():
        assert_same(predictions(model, other), predictions(fitted(name)))
    series = {"pandas": pd.Series, "polars": pl.Series}[kind](d.y)
    by_series = tiny(name).fit(d.frames[kind], series)
    np.testing.assert_array_equal(by_series.predict(d.frames[kind]), model.predict(d.frames[kind]))


@every_estimator
def test_tables_of_mixed_types(name):
    model, mixed = fitted_to_mixed(name), data().mixed
    assert [column.kind for column in model.encoder_.columns] == ["numeric", "boolean", "category"]
    given = predictions(model, mixed)
    assert all(np.isfinite(values).all() for values in given.values())
    assert_same(predictions(model, pl.DataFrame(mixed)), given)


# --- with scikit-learn's tools --------------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_at_the_end_of_a_pipeline(name, output):
    d = data()
    pipeline = make_pipeline(StandardScaler(), tiny(name)).set_output(transform=output)
    pipeline.fit(d.frames["pandas"], d.y)
    assert pipeline.predict(d.frames["pandas"]).shape == (N,)
    assert pipeline[:-1].get_feature_names_out().tolist() == NAMES
    assert np.isfinite(crps_scorer(pipeline, d.frames["pandas"], d.y))


@every_estimator
@pytest.mark.parametrize("scorer", [crps_scorer, log_density_scorer])
def test_in_a_grid_search_with_our_scorers(name, scorer):
    d = data()
    pipeline = make_pipeline("passthrough", tiny(name))
    step = pipeline.steps[-1][0]
    search = GridSearchCV(
        pipeline, {f"{step}__random_state": [0, 1]}, scoring=scorer, cv=2, error_score="raise"
    )
    search.fit(d.X, d.y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert search.best_score_ == scores.max()
    assert search.predict(d.X).shape == (N,)
    assert search.score(d.X, d.y) == scorer(search.best_estimator_, d.X, d.y)


@every_estimator
def test_scorers_prefer_the_better_model(name):
    d = data()
    worse = tiny(name).fit(d.X, d.y[d.order] + 3.0)
    better = tiny(name, **TRAINED[name]).fit(d.X, d.y)
    for scorer in (crps_scorer, log_density_scorer):
        assert scorer(better, d.X, d.y) > scorer(worse, d.X, d.y)


@every_estimator
def test_inside_another_estimator(name):
    model = TransformedTargetRegressor(tiny(name), func=np.arcsinh, inverse_func=np.sinh)
    assert np.isfinite(model.fit(data().X, data().y).predict(data().X)).all()


# --- files ----------------------------------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize("target", ["flat", "column", "both"])
def test_a_saved_model_predicts_the_same(name, target, tmp_path):
    model = fitted(name, target)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert (again.n_features_in_, again.n_outputs_) == (model.n_features_in_, model.n_outputs_)
    assert_same(predictions(again), predictions(model))


@every_estimator
def test_a_saved_model_knows_its_columns(name, tmp_path):
    model, mixed = fitted_to_mixed(name), data().mixed
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.feature_names_in_, model.feature_names_in_)
    reordered = mixed[["town", "flag", "size"]]
    assert_same(predictions(again, reordered), predictions(model, mixed))
