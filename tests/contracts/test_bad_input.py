"""What every estimator does with bad input: a one-line error that helps, or a documented meaning.

Most tables have 40 rows and encode to 2 columns, so that few programs are compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from nkcme.estimators import ESTIMATORS
from support.tiny_estimators import every_estimator, tiny

N = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = X[:, 0] + 0.3 * RNG.normal(size=N)
FRAME = pd.DataFrame(X, columns=["a", "b"])
TOWNS = pd.DataFrame({"town": np.array(["Bern", "Ulm"] * (N // 2), object)})


def refusal(action: Any, *arguments: Any, **options: Any) -> str:
    """The one line with which something is refused, by a ValueError of ours or of scikit-learn."""
    with pytest.raises(ValueError) as caught:
        action(*arguments, **options)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message


def with_one(values: np.ndarray, bad: float) -> np.ndarray:
    values = values.copy()
    values[3] = bad
    return values


def check_sane(model: Any, table: Any = X, shape: tuple[int, ...] = (N,)) -> np.ndarray:
    """Whatever was fitted, what is asked of it is finite, of the right shape and in order."""
    mean = model.predict(table)
    assert mean.shape == shape
    assert np.isfinite(mean).all()
    variance = model.predict_var(table)
    assert variance.shape == shape
    assert (variance >= 0).all()
    quantiles = model.predict_quantiles(table, [0.05, 0.5, 0.95])
    assert quantiles.shape == (len(mean), 3)
    assert np.isfinite(quantiles).all()
    assert (np.diff(quantiles, axis=1) >= 0).all()
    assert np.isfinite(model.sample(table, 2, random_state=0)).all()
    return mean


# ------------------------------------------------------------------------------- size and shape


@every_estimator
@pytest.mark.parametrize(
    ("table", "target", "words"),
    [
        (X[:0], Y[:0], "y is empty"),
        (FRAME[:0], Y[:0], "pass at least one row"),
        (pl.DataFrame(FRAME)[:0], Y, "X is empty"),
        ([], [], "y is empty"),
        (X[:, :0], Y, "0 feature(s) (shape=(40, 0))"),
        (FRAME[[]], Y, "pass at least one of each"),
        ([[1.0, 2.0], [3.0]], [1.0, 2.0], "rows of equal length"),
        (X, np.zeros((N, 0)), "y is empty"),
        (X[:1], Y[:1], "at least 2 rows"),
        (FRAME[:1], Y[:1], "at least 2 rows"),
        (X, Y[:-1], "X has 40 rows and y has 39"),
        (X[:, 0], Y, "Reshape your data"),
        (X, Y.reshape(2, N // 2, 1), "2-D"),
        (X, None, "pass one y a row"),
        (X, 3.0, "2-D"),
    ],
)
def test_too_little_or_ill_shaped(name, table, target, words):
    assert words in refusal(tiny(name).fit, table, target)


@every_estimator
def test_nothing_is_predicted_for_no_rows(name):
    for table in (FRAME, X):
        assert "X is empty: 0 sample" in refusal(tiny(name).fit(table, Y).predict, table[:0])


@every_estimator
def test_fewer_rows_than_a_batch_and_rows_that_are_all_alike(name):
    if "batch_size" in tiny(name).get_params():
        check_sane(tiny(name, batch_size=1000).fit(X, Y))
    alike = tiny(name).fit(X[[0, 0]], Y[[0, 0]])
    np.testing.assert_allclose(alike.predict(X), Y[0], rtol=1e-5)


@every_estimator
def test_a_target_of_one_column_keeps_its_two_dimensions(name):
    flat = tiny(name).fit(X, Y).predict(X)
    mean = check_sane(tiny(name).fit(X, Y[:, None]), shape=(N, 1))
    np.testing.assert_array_equal(mean[:, 0], flat)


# ------------------------------------------------------------------------------- values of y


@every_estimator
@pytest.mark.parametrize("value", [0.0, 3.0, -1e38, 1e-38])
def test_a_constant_target_is_predicted_with_next_to_no_width(name, value):
    model = tiny(name).fit(X, np.full(N, value))
    check_sane(model)
    atol = 1e-49  # a constant of zero has no size to compare with
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-5, atol=atol)
    np.testing.assert_allclose(model.predict_interval(X), value, rtol=1e-5, atol=atol)


@every_estimator
@pytest.mark.parametrize(
    ("target", "words"),
    [
        (with_one(Y, np.nan), ["missing", "row 3", "drop these rows"]),
        (with_one(Y, np.inf), ["infinite", "row 3", "replace or drop"]),
        (with_one(Y, -np.inf), ["infinite", "row 3", "replace or drop"]),
        (np.array(["low", "high"] * (N // 2)), ["y is text", "'low'", "convert it"]),
        ([str(value) for value in Y], ["y is text", "convert it"]),
        (pd.Series([*Y[:-1], "n/k"]), ["y is text", "'n/k' in row 39"]),
        (pd.Series(pd.date_range("2026-01-01", periods=N)), ["dates", "convert it to numbers"]),
        (Y + 1j, ["Complex data not supported"]),
    ],
)
def test_a_target_that_is_no_finite_number_is_refused(name, target, words):
    message = refusal(tiny(name).fit, X, target)
    assert [word for word in words if word not in message] == []


@every_estimator
@pytest.mark.parametrize("size", [1e38, 1e-38, 1e300, 1e-300])
def test_any_magnitude_is_learned_alike(name, size):
    mean = check_sane(tiny(name).fit(X, Y * size))
    plain = tiny(name).fit(X, Y)
    np.testing.assert_allclose(mean / size, plain.predict(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        tiny(name).fit(X * size, Y).predict(X * size), plain.predict(X), rtol=1e-4, atol=1e-5
    )


def test_magnitudes_that_were_not_to_be_standardised_train_or_say_what_to_do():
    model = tiny("NKCME", standardize=False)
    assert "extreme values" in refusal(model.fit, X, Y * 1e38)
    check_sane(model.fit(X, Y * 1e-38))


@pytest.mark.parametrize("outlier", [1e4, -1e30])
def test_one_extreme_outlier_costs_resolution_and_no_more(outlier):
    """Atoms lie evenly over the range of y, so the rest is known to a cell or two of that range."""
    n_atoms = 10
    recipe = {"learning_rate": 0.05, "weight_decay": 1e-3, "bandwidth_floor": 1.0}
    model = tiny("NKCME", epochs=200, **recipe).fit(X, with_one(Y, outlier))
    check_sane(model)
    lower, upper = model.predict_interval(np.delete(X, 3, axis=0)).T
    rest = np.delete(Y, 3)
    assert np.mean((lower <= rest) & (rest <= upper)) > 0.8
    spacing = abs(outlier) / (n_atoms - 1)
    assert np.median(upper - lower) < spacing
    assert np.median(np.abs([lower, upper])) < spacing / 2


# -------------------------------------------------------------------------------- values of X


@every_estimator
@pytest.mark.parametrize("fill", [7.0, np.nan])
def test_a_column_without_variation_or_values_teaches_nothing(name, fill):
    model = tiny(name).fit(np.c_[X[:, 0], np.full(N, fill)], Y)
    mean = check_sane(model, np.c_[X[:, 0], np.full(N, fill)])
    np.testing.assert_array_equal(model.predict(np.c_[X[:, 0], X[:, 1]]), mean)


@every_estimator
def test_bad_values_in_a_table_are_refused_by_column_and_row(name):
    bad = X.copy()
    bad[3, 1] = np.inf
    for fit in (lambda X: tiny(name).fit(X, Y), tiny(name).fit(X, Y).predict):
        message = refusal(fit, bad)
        assert "column 1 of X" in message
        assert "row 3" in message
        assert "replace or drop" in message
    dates = FRAME.assign(b=pd.date_range("2026-01-01", periods=N))
    assert "'b' of X holds dates" in refusal(tiny(name).fit, dates, Y)
    text = FRAME.assign(b="some")
    assert "'b' of X held numbers" in refusal(tiny(name).fit(FRAME, Y).predict, text)


@every_estimator
def test_missing_values_at_predict_time_stand_at_the_mean(name):
    model = tiny(name).fit(FRAME, Y)
    mean = check_sane(model, FRAME.assign(b=np.nan))
    at_the_mean = model.predict(FRAME.assign(b=X[:, 1].mean()))
    np.testing.assert_allclose(mean, at_the_mean, rtol=1e-4, atol=1e-5)


@every_estimator
@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pd.DataFrame(X, columns=["a", "a"]), "repeats the column 'a'; give each column its own"),
        (pd.DataFrame(X, columns=["a", 1]), "make them all text"),
        (pl.LazyFrame({"a": X[:, 0]}), "collect()"),
        (np.ma.masked_array(X, X > 1), "filled"),
    ],
)
def test_a_table_with_odd_columns_is_refused(name, table, words):
    assert words in refusal(tiny(name).fit, table, Y)


@every_estimator
def test_an_unseen_category_is_none_of_the_known(name):
    model = tiny(name).fit(TOWNS, Y)
    check_sane(model, TOWNS)
    mean = check_sane(model, TOWNS.assign(town="Rom"))
    assert len(set(mean)) == 1
    np.testing.assert_array_equal(model.predict(TOWNS.assign(town="Wien")), mean)


@every_estimator
def test_columns_at_predict_time_go_by_name(name):
    model = tiny(name).fit(FRAME, Y)
    mean = check_sane(model, FRAME)
    np.testing.assert_array_equal(model.predict(FRAME[["b", "a"]]), mean)
    np.testing.assert_array_equal(model.predict(pl.DataFrame(FRAME[["b", "a"]])), mean)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        np.testing.assert_array_equal(model.predict(X), mean)  # by position
    assert "lacks column 'b'" in refusal(model.predict, FRAME[["a"]])
    assert "unknown column 'c'" in refusal(model.predict, FRAME.assign(c=1.0))
    renamed = refusal(model.predict, FRAME.rename(columns={"b": "B"}))
    assert "lacks column 'b' and has the unknown column 'B'" in renamed
    assert "the 2 columns the model was fitted on" in renamed
    unnamed = tiny(name).fit(X, Y)
    assert "expecting 2 features" in refusal(unnamed.predict, X[:, :1])
    assert "expecting 2 features" in refusal(unnamed.predict, X[:, [0, 1, 1]])


# ------------------------------------------------------------------- weights and validation


@every_estimator
@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.zeros(N), "zero"),
        (np.r_[-1.0, np.ones(N - 1)], "of at least 0"),
        (np.r_[np.nan, np.ones(N - 1)], "NaN"),
        (np.r_[np.inf, np.ones(N - 1)], "infinity"),
        (np.ones(N - 1), "expected (40,)"),
        (np.ones((N, 2)), "1D"),
        (np.eye(1, N)[0], "at least 2 rows"),
        (["heavy"] * N, "heavy"),
    ],
)
def test_bad_weights_are_refused(name, weight, words):
    assert words in refusal(tiny(name).fit, X, Y, sample_weight=weight)


@every_estimator
def test_rows_of_weight_zero_are_absent(name):
    n_absent = 10
    weight = np.r_[np.zeros(n_absent), np.ones(N)]
    odd = np.r_[np.full(n_absent, 1e30), Y]
    weighted = tiny(name).fit(np.r_[X[:n_absent] * 1e9, X], odd, sample_weight=weight)
    np.testing.assert_array_equal(weighted.predict(X), tiny(name).fit(X, Y).predict(X))


@every_estimator
@pytest.mark.parametrize(
    ("validation", "words"),
    [
        ({"X_val": X}, "X_val and y_val together"),
        ({"y_val": Y}, "X_val and y_val together"),
        ({"X_val": X, "y_val": Y[:-1]}, "X_val has 40 rows and y_val 39"),
        ({"X_val": X, "y_val": np.c_[Y, Y]}, "y has 1 outputs and y_val 2"),
        ({"X_val": X[:, :1], "y_val": Y}, "expecting 2 features"),
        ({"X_val": X, "y_val": with_one(Y, np.nan)}, "missing"),
        ({"X_val": X[:0], "y_val": Y[:0]}, "empty"),
    ],
)
def test_bad_validation_is_refused(name, validation, words):
    assert words in refusal(tiny(name).fit, X, Y, **validation)


# ------------------------------------------------------------------------------- parameters

#: What an estimator says of parameters that cannot be meant: (parameter, value, words).
Cases = list[tuple[str, Any, str]]

#: What all that learn by steps have in common.
STEPS: Cases = [
    *(("epochs", value, "whole number of at least 1") for value in (-1, 0, 1.5, "3", True)),
    *(("batch_size", value, "whole number of at least 1") for value in (0, "a")),
    *(("hidden", value, "list of whole numbers") for value in (8, "8", None, ((8,), (8,)))),
    *(("hidden", value, "whole number of at least 1") for value in ((8, -1), (2.5,))),
    *(("activation", value, "relu") for value in ("swoosh", 3)),
    *(("schedule", value, "cosine") for value in ("linear", None)),
    *(("learning_rate", value, "above 0") for value in (0, "fast", np.inf)),
    *(("weight_decay", value, "at least 0") for value in (-1, "x")),
    *(("beta2", value, "below 1") for value in (1.0, "x")),
    *(("validation_fraction", value, "below 1") for value in (1.0, -0.1, "a")),
    *(("verbose", value, "True, False") for value in ("loud", None, 3)),
    ("checkpoint", 3, "path"),
    ("checkpoint", "/proc/nkcme/c", "check the path"),
]
#: What all have in common.
ALL: Cases = [
    *(("standardize", value, "True or False") for value in ("no", None, 3)),
    *(("random_state", value, "seed") for value in ("a", 1.5)),
    ("random_state", -1, "between 0 and"),
]
PATIENCE: Cases = [("patience", value, "whole number of at least 1") for value in (0, 1.5)]
SPECTRAL_NORM: Cases = [
    *(("spectral_norm", value, "list of whole numbers") for value in (1, None)),
    ("spectral_norm", ("a",), "whole number"),
    ("spectral_norm", (7,), "layers from -2 to 1"),
]
#: What those have in common whose weights are on training targets, condensed.
CONDENSED: Cases = [
    *(("bandwidth", value, '"median" or a number above 0') for value in (0, -1, "auto", True)),
    *(("n_atoms", value, "whole number of at least 2") for value in (1, 2.5, "10", None)),
    *(("reading", value, "atomic") for value in ("loud", "auto", None)),
]
BAD_PARAMETERS: dict[str, Cases] = {
    "CARD": [
        *STEPS,
        *ALL,
        *(("mean_epochs", value, "whole number of at least 1") for value in (0, "x")),
        *(("mean_fraction", value, "at most 1") for value in (0, 1.1, "x", None)),
        *(("noise_hidden", value, "list of whole numbers") for value in (8, "8", None)),
        *(("noise_hidden", value, "whole number of at least 1") for value in ((8, -1), (2.5,))),
        ("noise_hidden", (), "at least one layer"),
        *(("n_draws", value, "whole number of at least 1") for value in (0, 2.5, None)),
        *(("n_diffusion_steps", value, "whole number of at least 1") for value in (0, "x")),
    ],
    "DeepFeatureCME": [
        *(case for case in STEPS if case[0] != "validation_fraction"),
        *ALL,
        *SPECTRAL_NORM,
        *CONDENSED,
        ("hidden", (), "must have a layer"),
        *(("regularization", value, "above 0") for value in (0, -1, "auto", None)),
    ],
    "KernelCME": [
        *ALL,
        *CONDENSED,
        *(("input_bandwidth", value, '"auto" or a number above 0') for value in (0, "x", None)),
        *(("regularization", value, '"auto" or a number above 0') for value in (0, "x", np.nan)),
        *(("n_inducing", value, "whole number of at least 1") for value in (0, 2.5, "10")),
        *(("max_rows", value, "whole number of at least 1") for value in (0, None)),
    ],
    "MDN": [
        *STEPS,
        *ALL,
        *PATIENCE,
        *SPECTRAL_NORM,
        *(("n_components", value, "whole number of at least 1") for value in (0, 2.5, None)),
    ],
    "NKCME": [
        *STEPS,
        *ALL,
        *PATIENCE,
        *SPECTRAL_NORM,
        *(("n_atoms", value, "whole number of at least 1") for value in (0, -5, 2.5, "10")),
        ("bandwidth_period", 0, "whole number of at least 1"),
        *(("n_members", value, "whole number of at least 1") for value in (0, 1.5)),
        *(("center", value, "none") for value in ("median", 3, None, [], ["tree"])),
        *(("recalibrate", value, "True, False or") for value in (1, "yes", None)),
        *(("atoms", value, "quantile") for value in ("random", None)),
        *(("kernel", value, "gaussian") for value in ("cubic", 3, None, ["gaussian"])),
        *(("head", value, "simplex") for value in ("tail", None, ["simplex"])),
        *(("bandwidth_update", value, "joint") for value in ("never", ["joint"])),
        *(("reading", value, "atomic") for value in ("loud", np.array(["auto"]))),
        *(("bandwidth", value, "above 0") for value in (0, -1, "1", np.nan, None, True)),
        *(("bandwidth_floor", value, "at least 0") for value in (-1, "x")),
        ("bandwidth_learning_rate", "x", "above 0"),
    ],
    "SplineFlow": [
        *STEPS,
        *ALL,
        *PATIENCE,
        *(("n_layers", value, "whole number of at least 1") for value in (0, 2.5, None)),
        *(("n_bins", value, "whole number of at least 2") for value in (1, "8", None)),
        *(("tail_bound", value, "above 0") for value in (0, -3.0, np.inf, "3", None)),
        *(("hidden", value, "one width") for value in ((8, 9), ())),
        ("weight_decay", None, "at least 0"),
    ],
}


@pytest.mark.parametrize(
    ("name", "parameter", "value", "words"),
    [(name, *case) for name, cases in BAD_PARAMETERS.items() for case in cases],
)
def test_a_parameter_that_cannot_be_meant_is_refused_with_what_can(name, parameter, value, words):
    message = refusal(tiny(name, **{parameter: value}).fit, X, Y)
    assert words in message
    if parameter not in ("random_state", "checkpoint"):  # others see these two, in their words
        assert message.startswith((parameter, f"each of {parameter}"))
        assert message.endswith(f"got {value!r}") or len(np.shape(value))


def test_every_parameter_has_a_bad_value():
    for name in ESTIMATORS:
        tried = {parameter for parameter, _, _ in BAD_PARAMETERS[name]}
        assert tried == set(tiny(name).get_params())


def test_one_atom_is_the_middle_of_the_range():
    model = tiny("NKCME", n_atoms=1).fit(X, Y)
    mean = check_sane(model)
    np.testing.assert_allclose(mean, 0.5 * (Y.min() + Y.max()), rtol=1e-5)


# ------------------------------------------------------------------------------- questions


@every_estimator
@pytest.mark.parametrize(
    "method",
    [
        *("predict", "predict_dist", "predict_quantiles", "predict_interval", "predict_var"),
        *("sample", "save", "score"),
    ],
)
def test_asking_before_fitting_says_to_fit(name, method, tmp_path):
    arguments = {"save": (tmp_path / "model",), "score": (X, Y)}.get(method, (X,))
    with pytest.raises(NotFittedError, match="Call 'fit'") as caught:
        getattr(tiny(name), method)(*arguments)
    assert "\n" not in str(caught.value)


@every_estimator
def test_questions_without_an_answer_are_refused(name):
    model = tiny(name).fit(X, Y)
    for levels in ([0.5, 1.5], -0.1, np.nan, [[0.5]]):
        assert "from 0 to 1" in refusal(model.predict_quantiles, X, levels)
    for coverage in (0.0, 1.0, 95, np.nan):
        assert "between 0 and 1" in refusal(model.predict_interval, X, coverage)
    assert '"independent" or "herd"' in refusal(model.sample, X, method="best")
    assert "must be a whole number of at least 0" in refusal(model.sample, X, -1)
    several = tiny(name).fit(X, np.c_[Y, Y])
    assert "one output only" in refusal(several.predict_interval, X)
