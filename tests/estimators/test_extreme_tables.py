"""NKCME on extreme tables: values at the limits of floats, constants, outliers, very few rows."""

from __future__ import annotations

from functools import cache

import jax
import numpy as np
import pytest

from nkcme import NKCME, TableError, TrainingError, presets

N = 90


@cache
def table():
    """X (N, 2) and y (N,)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    return X, X[:, 0] + 0.3 * rng.normal(size=N)


def fit(X=None, y=None, sample_weight=None, **options):
    """A small model. Parameters that default to a function of n are fixed."""
    X = table()[0] if X is None else X
    y = table()[1] if y is None else y
    options = (
        presets.QUICK
        | {
            "n_atoms": 20,
            "hidden": (12,),
            "batch_size": 32,
            "weight_decay": 1e-4,
            "bandwidth_floor": 1.0,
            "random_state": 0,
            "verbose": False,
        }
        | options
    )
    if "epochs" not in options:
        n = N if sample_weight is None else np.sum(np.asarray(sample_weight) > 0)
        options["epochs"] = 120 // max(n // options["batch_size"], 1)
    return NKCME(**options).fit(X, y, sample_weight)


@pytest.fixture(scope="module")
def model():
    return fit()


def predictions(model):
    X, _ = table()
    dist = model.predict_dist(X)
    return [
        model.predict(X),
        model.predict_quantiles(X, [0.05, 0.5, 0.95]),
        dist.std(),
        dist.mode(),
        dist.rvs(3, random_state=0),
    ]


# --- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [125, -125, 1000, -1000])
def test_the_units_of_y_change_only_the_units_of_predictions(model, power):
    """y near 1e38, 1e-38, 1e301 and 1e-301. Powers of two are exact, so bits are compared."""
    scale, (X, y) = 2.0**power, table()
    scaled = fit(y=scale * y)
    for ours, expected in zip(predictions(scaled), predictions(model), strict=True):
        np.testing.assert_array_equal(ours, scale * expected)
    dist, unscaled = scaled.predict_dist(X), model.predict_dist(X)
    np.testing.assert_array_equal(dist.crps(scale * y), scale * unscaled.crps(y))
    np.testing.assert_allclose(dist.cdf(scale * y), unscaled.cdf(y), rtol=1e-12)
    np.testing.assert_allclose(dist.pdf(scale * y) * scale, unscaled.pdf(y), rtol=1e-12)
    assert np.all(scaled.predict_var(X) >= 0)  # 1e301 squared is infinite, which is no error


def test_a_large_offset_of_y_loses_no_precision(model):
    X, y = table()
    shifted = fit(y=1e8 + y)
    np.testing.assert_allclose(shifted.predict(X) - 1e8, model.predict(X), atol=1e-3)
    np.testing.assert_allclose(shifted.predict_var(X), model.predict_var(X), rtol=1e-2)


@pytest.mark.parametrize("value", [0.0, 3.7, -1e30])
def test_a_constant_y_is_predicted(value):
    X, _ = table()
    constant = fit(y=np.full(N, value))
    assert np.all(np.abs(constant.predict(X) - value) <= 0.2 * constant.scaler_.scale)
    low, high = constant.predict_interval(X, 0.99).T
    assert np.all((low <= value) & (value <= high))


@pytest.mark.parametrize("extreme", [1e6, 1e30, -1e300])
def test_predictions_are_finite_with_an_extreme_outlier(extreme):
    X, y = table()
    y = y.copy()
    y[3] = extreme
    with_outlier = fit(y=y)
    for prediction in predictions(with_outlier):
        assert np.all(np.isfinite(prediction))
    assert np.all(np.diff(with_outlier.predict_quantiles(X), axis=1) >= 0)
    assert np.all(np.isfinite(with_outlier.predict_dist(X).crps(y)))


def test_unstandardised_y_beyond_single_precision_is_an_error():
    _, y = table()
    with pytest.raises(TrainingError, match="look for extreme values in the table"):
        fit(y=3e38 * y / np.abs(y).max(), standardize=False)


def test_a_constant_column_has_no_effect():
    X, _ = table()

    def with_constant(value):
        return np.column_stack([X[:, 0], np.full(N, value)])

    for value in (5.0, 1e300):
        constant = fit(X=with_constant(value))
        np.testing.assert_array_equal(
            constant.predict(with_constant(value)), constant.predict(with_constant(-7.0))
        )


def test_a_program_in_double_precision_gets_the_same_bits(model):
    jax.config.update("jax_enable_x64", True)
    try:
        for ours, expected in zip(predictions(fit()), predictions(model), strict=True):
            np.testing.assert_array_equal(ours, expected)
    finally:
        jax.config.update("jax_enable_x64", False)


# --- rows and weights ---------------------------------------------------------------------------


def test_fewer_rows_than_a_batch_are_enough():
    X, y = table()
    few = fit(X[:5], y[:5], batch_size=64, epochs=100)
    assert few.n_steps_ == 100
    np.testing.assert_allclose(few.predict(X[:5]), y[:5], atol=1.0)
    with pytest.raises(TableError, match="at least 2 rows"):
        fit(X[:1], y[:1])


def test_rows_of_weight_zero_count_as_absent_in_validation_too():
    X, y = table()
    weight = (np.arange(N) % 3 > 0).astype(float)
    options = {"validation_fraction": 0.3, "epochs": 60}
    zero = fit(sample_weight=weight, **options)
    absent = fit(X[weight > 0], y[weight > 0], **options)
    assert zero.n_steps_ == absent.n_steps_
    np.testing.assert_allclose(zero.predict(X), absent.predict(X), rtol=1e-9)


def test_one_row_to_train_on_and_one_to_validate_on():
    X, y = table()
    weight = np.zeros(N)
    weight[[5, 6]] = 1e-300
    two = fit(sample_weight=weight, validation_fraction=0.3, epochs=60)
    between = two.predict(X)
    assert np.all((between >= y[[5, 6]].min()) & (between <= y[[5, 6]].max()))
    with pytest.raises(TableError, match="at least 2 rows"):
        fit(sample_weight=np.eye(N)[5])


def test_validation_tables_must_have_the_outputs_of_training():
    X, y = table()
    with pytest.raises(TableError, match="y has 1 outputs and y_val 2"):
        NKCME().fit(X, y, X_val=X, y_val=np.column_stack([y, y]))


# --- parameters ---------------------------------------------------------------------------------


def test_one_atom_is_the_middle_of_the_range():
    X, y = table()
    one = fit(n_atoms=1, reading="atomic")
    np.testing.assert_allclose(one.predict(X), 0.5 * (y.min() + y.max()), rtol=1e-5)
    width = one.bandwidth_ * one.scaler_.scale[0]  # of the one bin
    np.testing.assert_allclose(one.predict_var(X), width**2 / 12, rtol=1e-6)
    assert np.all(np.isfinite(one.sample(X, 2, method="herd")))


def test_the_bandwidth_may_start_very_wide():
    wide = fit(bandwidth=1000.0)
    assert 900 < wide.history_["bandwidth"][0] < 1100
    assert np.all(np.isfinite(wide.predict(table()[0])))
