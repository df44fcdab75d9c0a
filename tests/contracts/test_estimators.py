"""What every estimator must do: scikit-learn's contract to the letter, and our own on top.

Compiling takes most of the time, so tests share few shapes of tables and what was fitted to them.
"""

from __future__ import annotations

import copy
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from nkcme import crps_scorer, load, log_density_scorer
from nkcme.distributions.base import Distribution
from nkcme.estimators import ESTIMATORS
from support.tiny_estimators import every_estimator, tiny

N = 40
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
Y = X[:, 0] + 0.3 * RNG.normal(size=N)
BOTH = np.c_[Y, X[:, 1] + 0.1 * RNG.normal(size=N)]
NAMES = ["first", "second"]
FRAMES = {
    "pandas": pd.DataFrame(X, columns=NAMES),
    "polars": pl.DataFrame(X, schema=NAMES),
}
EVERYTHING = pd.DataFrame(
    {
        "size": np.where(X[:, 0] > 1, np.nan, X[:, 0]),
        "flag": X[:, 1] > 0,
        "town": pd.Categorical(np.where(X[:, 1] > 0.5, "Bern", "Ulm")),
    }
)
ALPHA = (0.1, 0.5, 0.9)

#: Enough training for scikit-learn's checks to see that something was learned.
TRAINED: dict[str, dict[str, Any]] = {
    "CARD": {"mean_epochs": 300, "epochs": 300, "n_diffusion_steps": 30, "learning_rate": 0.01},
    "DeepFeatureCME": {"epochs": 200, "bandwidth": 0.3},
    "KernelCME": {"bandwidth": 0.3},
    "MDN": {"epochs": 200, "learning_rate": 0.01, "validation_fraction": 0.0},
    "NKCME": {"n_atoms": 20, "epochs": 100, "weight_decay": 0.01},
    "SplineFlow": {"epochs": 100, "learning_rate": 0.01},
}

#: Estimators whose fit to so few rows is the solution of an equation.
NOTHING_DRAWN = {"KernelCME"}


# No check is expected to fail. That a reordered table is put right by name and not refused, which
# scikit-learn holds its own estimators to, is not among the checks for others.
@parametrize_with_checks([tiny(name, **TRAINED[name]) for name in ESTIMATORS])
def test_scikit_learn_finds_its_contract_kept(estimator, check):
    check(estimator)


@cache
def fitted(name: str, target: str = "flat") -> Any:
    return tiny(name).fit(X, {"flat": Y, "column": Y[:, None], "both": BOTH}[target])


@cache
def fitted_to_everything(name: str) -> Any:
    return tiny(name).fit(EVERYTHING, Y)


def answers(model: Any, table: Any = X) -> dict[str, np.ndarray]:
    """What every method says of a table."""
    given = {
        "mean": model.predict(table),
        "variance": model.predict_var(table),
        "draws": model.sample(table, 5, random_state=3),
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
    for question, answer in ours.items():
        np.testing.assert_array_equal(answer, theirs[question], err_msg=question)


# ---------------------------------------------------------------------------- shapes and values


@every_estimator
@pytest.mark.parametrize(
    ("target", "shape", "n_outputs"),
    [("flat", (N,), 1), ("column", (N, 1), 1), ("both", (N, 2), 2)],
)
def test_answers_have_the_shape_of_the_target(name, target, shape, n_outputs):
    model = fitted(name, target)
    assert model.n_outputs_ == n_outputs
    row = (N,) if n_outputs == 1 else shape  # of the distribution's own answers
    given = answers(model)
    assert given["mean"].shape == given["variance"].shape == shape
    assert given["draws"].shape == (5, *row)
    if "herd" in given:
        assert given["herd"].shape == (4, *row)
    if n_outputs == 1:
        assert given["quantiles"].shape == (N, len(ALPHA))
        assert given["interval"].shape == (N, 2)
        assert model.predict_quantiles(X, 0.5).shape == (N,)
    for question, answer in given.items():
        assert np.isfinite(answer).all(), question
    dist = model.predict_dist(X)
    assert isinstance(dist, Distribution)
    assert len(dist) == N
    assert dist.mean().shape == row
    assert len(dist[[3, 1]]) == 2
    assert model.predict(X[:1]).shape == (1, *shape[1:])


@every_estimator
def test_answers_are_those_of_the_distribution(name):
    model, dist = fitted(name), fitted(name).predict_dist(X)
    given = answers(model)
    np.testing.assert_array_equal(given["mean"], dist.mean())
    np.testing.assert_array_equal(given["variance"], dist.var())
    np.testing.assert_array_equal(given["quantiles"], dist.ppf(ALPHA))
    np.testing.assert_allclose(given["interval"], given["quantiles"][:, [0, 2]])
    np.testing.assert_array_equal(given["draws"], dist.rvs(5, 3))
    np.testing.assert_allclose(dist.cdf(given["quantiles"]), np.tile(ALPHA, (N, 1)), atol=1e-6)


@every_estimator
def test_score_is_r_squared(name):
    for target, y in (("flat", Y), ("both", BOTH)):
        model = fitted(name, target)
        assert model.score(X, y) == r2_score(y, model.predict(X))
    weight = np.arange(N)
    expected = r2_score(Y, fitted(name).predict(X), sample_weight=weight)
    assert fitted(name).score(X, Y, sample_weight=weight) == expected


@every_estimator
def test_long_tables_are_streamed_and_answered_as_in_one_piece(name, monkeypatch):
    model = fitted(name)
    whole = answers(model)
    monkeypatch.setattr("nkcme.estimators.base.BLOCK_ROWS", 7)
    for question, answer in answers(model).items():
        if question != "draws":  # blocks share one generator, so the draws are others
            np.testing.assert_allclose(answer, whole[question], rtol=1e-4, atol=1e-5)


# ------------------------------------------------------------------------ the same, and not


@every_estimator
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(name):
    again = tiny(name).fit(X, Y)
    assert_same(answers(again), answers(fitted(name)))
    other = tiny(name, random_state=1).fit(X, Y)
    # Where nothing is drawn, the seed must make no difference.
    assert np.array_equal(other.predict(X), again.predict(X)) == (name in NOTHING_DRAWN)
    rng = np.random.RandomState(5)
    draws = [again.sample(X, 2, random_state=seed) for seed in (5, rng, rng)]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[1], draws[2])


@every_estimator
def test_neither_the_order_of_rows_nor_the_form_of_weights_makes_a_difference(name):
    weight = RNG.integers(0, 4, N)
    order = RNG.permutation(N)
    for target in (Y, BOTH):
        weighted = tiny(name).fit(X, target, sample_weight=weight)
        shuffled = tiny(name).fit(X[order], target[order], sample_weight=weight[order])
        repeated = tiny(name).fit(X.repeat(weight, axis=0), target.repeat(weight, axis=0))
        assert_same(answers(weighted), answers(shuffled))
        assert_same(answers(weighted), answers(repeated))


@every_estimator
def test_held_out_rows_are_the_same_however_rows_are_weighted(name):
    if "validation_fraction" not in tiny(name).get_params():
        pytest.skip(f"{name} has no validation_fraction: it holds no rows out")
    weight = RNG.integers(1, 4, N)
    model = tiny(name, validation_fraction=0.25)
    weighted = clone(model).fit(X, Y, sample_weight=weight)
    repeated = clone(model).fit(X.repeat(weight, axis=0), Y.repeat(weight))
    assert_same(answers(weighted), answers(repeated))


@every_estimator
def test_refitting_forgets(name):
    model = copy.deepcopy(fitted(name, "both")).fit(FRAMES["pandas"], Y)
    assert_same(answers(model, FRAMES["pandas"]), answers(fitted(name)))
    assert model.n_outputs_ == 1
    model.fit(X, Y)
    assert not hasattr(model, "feature_names_in_")


@every_estimator
def test_a_clone_is_unfitted_and_fits_alike(name):
    copied = clone(fitted(name))
    assert copied.get_params() == fitted(name).get_params()
    assert not [attribute for attribute in vars(copied) if attribute.endswith("_")]
    assert_same(answers(copied.fit(X, Y)), answers(fitted(name)))


@every_estimator
def test_many_fits_at_once_are_close_to_one_after_the_other(name):
    datasets = [(X, Y), (X + 1, Y * 100), (-X, np.square(Y))]
    # Training makes more of what rounding makes differ, and of MDN's likelihood the most.
    model = tiny(name, **TRAINED[name] | ({"epochs": 50} if name == "MDN" else {}))
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
        model.fit_many([(X, Y), (X[:, :1], Y)])


@every_estimator
def test_many_fits_take_the_random_states_they_are_given(name):
    model = tiny(name, **TRAINED[name])
    given = model.fit_many([(X, Y), (X, Y), (X, Y)], random_states=[5, 6, 5])
    assert [one.random_state for one in given] == [5, 6, 5]
    # Not to the bit: replicas are split over cores, and the parts are not of one size.
    near = partial(np.allclose, given[0].predict(X), atol=0.01 * np.std(Y))
    assert near(given[2].predict(X))
    assert near(given[1].predict(X)) == (name == "KernelCME")  # which draws nothing
    with pytest.raises(ValueError, match="one random state for each of 3 data sets; got 2"):
        model.fit_many([(X, Y)] * 3, random_states=[5, 6])


# -------------------------------------------------------------------------------- tables


@every_estimator
@pytest.mark.parametrize("kind", FRAMES)
def test_frames_are_tables_with_names(name, kind):
    model = tiny(name).fit(FRAMES[kind], Y)
    assert model.feature_names_in_.tolist() == NAMES
    assert model.n_features_in_ == 2
    for other in FRAMES.values():
        assert_same(answers(model, other), answers(fitted(name)))
    series = {"pandas": pd.Series, "polars": pl.Series}[kind](Y)
    np.testing.assert_array_equal(
        tiny(name).fit(FRAMES[kind], series).predict(FRAMES[kind]), model.predict(FRAMES[kind])
    )


@every_estimator
def test_tables_of_everything(name):
    model = fitted_to_everything(name)
    assert [column.kind for column in model.encoder_.columns] == ["numeric", "boolean", "category"]
    given = answers(model, EVERYTHING)
    assert all(np.isfinite(answer).all() for answer in given.values())
    assert_same(answers(model, pl.DataFrame(EVERYTHING)), given)


# -------------------------------------------------------------------- among scikit-learn's tools


@every_estimator
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_a_pipeline_whose_steps_give_frames(name, output):
    pipeline = make_pipeline(StandardScaler(), tiny(name)).set_output(transform=output)
    pipeline.fit(FRAMES["pandas"], Y)
    assert pipeline.predict(FRAMES["pandas"]).shape == (N,)
    assert pipeline[:-1].get_feature_names_out().tolist() == NAMES
    np.testing.assert_allclose(
        pipeline.predict(FRAMES["pandas"]), fitted(name).predict(X), rtol=1e-3, atol=1e-4
    )
    assert np.isfinite(crps_scorer(pipeline, FRAMES["pandas"], Y))


@every_estimator
@pytest.mark.parametrize("scorer", [crps_scorer, log_density_scorer])
def test_a_grid_search_with_our_scorers(name, scorer):
    pipeline = make_pipeline("passthrough", tiny(name))
    step = pipeline.steps[-1][0]
    search = GridSearchCV(
        pipeline, {f"{step}__random_state": [0, 1]}, scoring=scorer, cv=2, error_score="raise"
    )
    search.fit(X, Y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert search.best_score_ == scores.max()
    assert search.predict(X).shape == (N,)
    assert search.score(X, Y) == scorer(search.best_estimator_, X, Y)


@every_estimator
def test_scorers_prefer_the_better_model(name):
    worse = tiny(name).fit(X, RNG.permutation(Y) + 3.0)
    better = tiny(name, **TRAINED[name]).fit(X, Y)
    for scorer in (crps_scorer, log_density_scorer):
        assert scorer(better, X, Y) > scorer(worse, X, Y)


@every_estimator
def test_inside_another_estimator(name):
    model = TransformedTargetRegressor(tiny(name), func=np.arcsinh, inverse_func=np.sinh)
    assert np.isfinite(model.fit(X, Y).predict(X)).all()


# ---------------------------------------------------------------------------------- files


@every_estimator
@pytest.mark.parametrize("target", ["flat", "column", "both"])
def test_a_saved_model_gives_the_answers_it_gave(name, target, tmp_path):
    model = fitted(name, target)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert (again.n_features_in_, again.n_outputs_) == (model.n_features_in_, model.n_outputs_)
    assert_same(answers(again), answers(model))


@every_estimator
def test_a_saved_model_knows_its_columns(name, tmp_path):
    model = fitted_to_everything(name)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.feature_names_in_, model.feature_names_in_)
    mixed_up = EVERYTHING[["town", "flag", "size"]]
    assert_same(answers(again, mixed_up), answers(model, EVERYTHING))
