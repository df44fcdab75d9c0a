"""Bad tables: one line that helps, or a documented meaning.

All estimators read tables with the same code. Its errors are tested once, and each estimator only
for that it uses this code and for what it computes from unusual but valid tables.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from nkcme.errors import UnknownCategoryWarning
from nkcme.estimators import ConditionalEstimator
from support.bad_input import N, X, Y, check_sane, with_one
from support.refusals import refusal as one_line
from support.tiny_estimators import every_estimator, tiny

FRAME = pd.DataFrame(X, columns=["a", "b"])
TOWNS = pd.DataFrame({"town": np.array(["Bern", "Ulm"] * (N // 2), object)})

#: Errors of this library, or of scikit-learn.
refusal = partial(one_line, error=ValueError)


@pytest.fixture
def estimator() -> ConditionalEstimator:
    """The estimator that fits fastest, for what all do with the same code."""
    return tiny("KernelCME")


@every_estimator
def test_every_estimator_refuses_bad_values_with_column_and_row(name):
    """And so reads tables with the code that the other tests run once."""
    bad = X.copy()
    bad[3, 1] = np.inf
    for read in (lambda X: tiny(name).fit(X, Y), tiny(name).fit(X, Y).predict):
        message = refusal(read, bad)
        assert "column 1 of X" in message
        assert "row 3" in message
        assert "replace or drop" in message
    assert "y has 1 missing values" in refusal(tiny(name).fit, X, with_one(Y, np.nan))
    text = FRAME.assign(b="some")
    assert "'b' of X held numbers" in refusal(tiny(name).fit(FRAME, Y).predict, text)


# --- size and shape


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
        (X, None, "pass one value per row"),
        (X, 3.0, "2-D"),
    ],
)
def test_too_few_rows_and_wrong_shapes_are_refused(table, target, words, estimator):
    assert words in refusal(estimator.fit, table, target)


def test_a_table_without_rows_is_refused_in_predict(estimator):
    for table in (FRAME, X):
        assert "X is empty: 0 sample" in refusal(estimator.fit(table, Y).predict, table[:0])


@every_estimator
def test_fewer_rows_than_a_batch_and_equal_rows_can_be_fitted(name):
    if "batch_size" in tiny(name).get_params():
        check_sane(tiny(name, batch_size=1000).fit(X, Y))
    alike = tiny(name).fit(X[[0, 0]], Y[[0, 0]])
    np.testing.assert_allclose(alike.predict(X), Y[0], rtol=1e-5)


def test_a_target_of_one_column_keeps_its_two_dimensions(estimator):
    flat = estimator.fit(X, Y).predict(X)
    mean = check_sane(estimator.fit(X, Y[:, None]), shape=(N, 1))
    np.testing.assert_array_equal(mean[:, 0], flat)


# --- values of y


@every_estimator
@pytest.mark.parametrize("value", [0.0, -1e38])
def test_a_constant_target_is_predicted_with_almost_no_width(name, value):
    model = tiny(name).fit(X, np.full(N, value))
    check_sane(model)
    atol = 1e-49  # a constant of zero has no size to compare with
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-5, atol=atol)
    np.testing.assert_allclose(model.predict_interval(X), value, rtol=1e-5, atol=atol)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (with_one(Y, np.nan), ["missing", "row 3", "drop these rows"]),
        (with_one(Y, np.inf), ["infinite", "row 3", "replace or drop"]),
        (with_one(Y, -np.inf), ["infinite", "row 3", "replace or drop"]),
        (np.array(["low", "high"] * (N // 2)), ["y is text", "'low'", "convert it"]),
        ([str(value) for value in Y], ["y is text", "convert it"]),
        (pd.Series([*Y[:-1], "n/k"]), ["y is text", "'n/k' in row 39"]),
        (
            pd.Series(pd.date_range("2026-01-01", periods=N)),
            ["y is dates", "must be numbers", "convert it"],
        ),
        (Y + 1j, ["Complex data not supported"]),
    ],
)
def test_a_target_that_is_not_finite_numbers_is_refused(target, words, estimator):
    message = refusal(estimator.fit, X, target)
    assert [word for word in words if word not in message] == []


@every_estimator
@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_any_magnitude_gives_the_same_predictions(name, size):
    mean = check_sane(tiny(name).fit(X, Y * size))
    plain = tiny(name).fit(X, Y)
    np.testing.assert_allclose(mean / size, plain.predict(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        tiny(name).fit(X * size, Y).predict(X * size), plain.predict(X), rtol=1e-4, atol=1e-5
    )


def test_extreme_magnitudes_without_standardisation_train_or_are_refused():
    model = tiny("NKCME", standardize=False)
    assert "extreme values" in refusal(model.fit, X, Y * 1e38)
    check_sane(model.fit(X, Y * 1e-38))


@pytest.mark.parametrize("outlier", [1e4, -1e30])
def test_one_extreme_outlier_only_costs_resolution(outlier):
    """Atoms lie evenly over the range of y, so all else is resolved to about their spacing."""
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


# --- values of X


@pytest.mark.parametrize("fill", [7.0, np.nan])
def test_a_column_without_variation_or_values_has_no_effect(fill, estimator):
    table = np.c_[X[:, 0], np.full(N, fill)]
    mean = check_sane(estimator.fit(table, Y), table)
    np.testing.assert_array_equal(estimator.predict(X), mean)


def test_dates_of_any_type_are_the_same_inputs(estimator):
    days = pd.date_range("2026-01-01", periods=N)
    means = [
        check_sane(estimator.fit(FRAME.assign(b=dates), Y), FRAME.assign(b=dates))
        for dates in (days, days.strftime("%Y-%m-%d"), days.strftime("%Y-%m-%dT%H:%M:%S"))
    ]
    np.testing.assert_array_equal(means[0], means[1])
    np.testing.assert_array_equal(means[0], means[2])


def test_values_missing_in_predict_are_set_to_the_mean(estimator):
    model = estimator.fit(FRAME, Y)
    mean = check_sane(model, FRAME.assign(b=np.nan))
    at_the_mean = model.predict(FRAME.assign(b=X[:, 1].mean()))
    np.testing.assert_allclose(mean, at_the_mean, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pd.DataFrame(X, columns=["a", "a"]), "repeats the column 'a'; give each column its own"),
        (pd.DataFrame(X, columns=["a", 1]), "make them all text"),
        (pl.LazyFrame({"a": X[:, 0]}), "collect()"),
        (np.ma.masked_array(X, X > 1), "filled"),
        (X + 1j, "X holds complex numbers"),
    ],
)
def test_tables_of_other_kinds_are_refused(table, words, estimator):
    assert words in refusal(estimator.fit, table, Y)


def test_an_unseen_category_counts_as_none_of_the_known_ones(estimator):
    model = estimator.fit(TOWNS, Y)
    check_sane(model, TOWNS)
    with pytest.warns(UnknownCategoryWarning, match="40 of 40 rows of 'town'.*such as 'Rom'"):
        mean = check_sane(model, TOWNS.assign(town="Rom"))
    assert len(set(mean)) == 1
    a_few = TOWNS.copy()
    a_few.loc[[3, 5], "town"] = "Wien"  # no warning, which would be an error
    np.testing.assert_array_equal(model.predict(a_few)[[3, 5]], mean[:2])


def test_columns_are_matched_by_name_in_predict(estimator):
    model = estimator.fit(FRAME, Y)
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
    unnamed = tiny("KernelCME").fit(X, Y)
    assert "expecting 2 features" in refusal(unnamed.predict, X[:, :1])
    assert "expecting 2 features" in refusal(unnamed.predict, X[:, [0, 1, 1]])


# --- weights and validation


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
def test_bad_weights_are_refused(weight, words, estimator):
    assert words in refusal(estimator.fit, X, Y, sample_weight=weight)


@every_estimator
def test_rows_of_weight_zero_are_absent(name):
    n_absent = 10
    weight = np.r_[np.zeros(n_absent), np.ones(N)]
    odd = np.r_[np.full(n_absent, 1e30), Y]
    weighted = tiny(name).fit(np.r_[X[:n_absent] * 1e9, X], odd, sample_weight=weight)
    np.testing.assert_array_equal(weighted.predict(X), tiny(name).fit(X, Y).predict(X))


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
def test_bad_validation_rows_are_refused(validation: dict[str, Any], words: str) -> None:
    assert words in refusal(tiny("MDN").fit, X, Y, **validation)
