"""NKCME on tables at the edge: what floats can hold, and what a table can lack."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from nkcme import NKCME, TableError, TrainingError, presets

N = 90
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = X[:, 0] + 0.3 * RNG.normal(size=N)
WEIGHT = RNG.integers(0, 3, N).astype(float)


def fit(X=X, y=Y, sample_weight=None, **options):
    """A small model; what the defaults take from n is fixed, so that only the table matters."""
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


def answers(model, X=X):
    dist = model.predict_dist(X)
    return [
        model.predict(X),
        model.predict_quantiles(X, [0.05, 0.5, 0.95]),
        dist.std(),
        dist.mode(),
        dist.rvs(3, random_state=0),
    ]


@pytest.mark.parametrize("power", [125, -125, 1000, -1000])
def test_the_units_of_y_change_nothing_but_the_units(model, power):
    """y near 1e38, 1e-38, 1e301 and 1e-301. A power of two rounds nothing, so bits are compared."""
    scale = 2.0**power
    scaled = fit(y=scale * Y)
    for ours, theirs in zip(answers(scaled), answers(model), strict=True):
        np.testing.assert_array_equal(ours, scale * theirs)
    dist, one = scaled.predict_dist(X), model.predict_dist(X)
    np.testing.assert_array_equal(dist.crps(scale * Y), scale * one.crps(Y))
    np.testing.assert_allclose(dist.cdf(scale * Y), one.cdf(Y), rtol=1e-12)
    np.testing.assert_allclose(dist.pdf(scale * Y) * scale, one.pdf(Y), rtol=1e-12)
    assert np.all(scaled.predict_var(X) >= 0)  # 1e301 squared is infinite, not an error


def test_far_from_zero_nothing_is_lost(model):
    moved = fit(y=1e8 + Y)
    np.testing.assert_allclose(moved.predict(X) - 1e8, model.predict(X), atol=1e-3)
    np.testing.assert_allclose(moved.predict_var(X), model.predict_var(X), rtol=1e-2)


@pytest.mark.parametrize("value", [0.0, 3.7, -1e30])
def test_a_constant_y_is_predicted(value):
    constant = fit(y=np.full(N, value))
    assert np.all(np.abs(constant.predict(X) - value) <= 0.2 * constant.scaler_.scale)
    low, high = constant.predict_interval(X, 0.99).T
    assert np.all((low <= value) & (value <= high))


@pytest.mark.parametrize("extreme", [1e6, 1e30, -1e300])
def test_one_extreme_outlier_breaks_nothing(extreme):
    y = Y.copy()
    y[3] = extreme
    with_outlier = fit(y=y)
    for answer in answers(with_outlier):
        assert np.all(np.isfinite(answer))
    assert np.all(np.diff(with_outlier.predict_quantiles(X), axis=1) >= 0)
    assert np.all(np.isfinite(with_outlier.predict_dist(X).crps(y)))


def test_unstandardised_y_beyond_single_precision_is_refused_with_advice():
    with pytest.raises(TrainingError, match="look for extreme values in the table"):
        fit(y=3e38 * Y / np.abs(Y).max(), standardize=False)


def test_one_atom_is_the_middle_of_the_range():
    one = fit(n_atoms=1)
    np.testing.assert_allclose(one.predict(X), 0.5 * (Y.min() + Y.max()), rtol=1e-5)
    np.testing.assert_array_equal(one.predict_var(X), 0.0)
    assert np.all(np.isfinite(one.sample(X, 2, method="herd")))


def test_a_constant_column_is_as_none_at_all(model):
    for value in (5.0, 1e300):
        constant = fit(X=np.column_stack([X[:, 0], np.full(N, value)]))
        elsewhere = np.column_stack([X[:, 0], np.full(N, -7.0)])
        np.testing.assert_array_equal(
            constant.predict(np.column_stack([X[:, 0], np.full(N, value)])),
            constant.predict(elsewhere),
        )


def test_fewer_rows_than_a_batch_are_enough():
    few = fit(X[:5], Y[:5], batch_size=64, epochs=100)
    assert few.n_steps_ == 100
    np.testing.assert_allclose(few.predict(X[:5]), Y[:5], atol=1.0)
    with pytest.raises(TableError, match="at least 2 rows"):
        fit(X[:1], Y[:1])


def test_rows_of_weight_zero_are_as_absent_in_validation_too():
    weight = (np.arange(N) % 3 > 0).astype(float)
    options = {"validation_fraction": 0.3, "epochs": 60}
    zero = fit(sample_weight=weight, **options)
    absent = fit(X[weight > 0], Y[weight > 0], **options)
    assert zero.n_steps_ == absent.n_steps_
    np.testing.assert_allclose(zero.predict(X), absent.predict(X), rtol=1e-9)


def test_a_row_of_weight_two_counts_as_two():
    copies = np.repeat(np.arange(N), WEIGHT.astype(int))
    weighted = fit(sample_weight=WEIGHT, epochs=60)
    copied = fit(X[copies], Y[copies], epochs=weighted.n_steps_ // (len(copies) // 32))
    assert weighted.n_steps_ == copied.n_steps_
    np.testing.assert_allclose(weighted.predict(X), copied.predict(X), rtol=1e-9)


def test_one_row_to_learn_from_and_one_to_validate_on():
    weight = np.zeros(N)
    weight[[5, 6]] = 1e-300
    two = fit(sample_weight=weight, validation_fraction=0.3, epochs=60)
    between = two.predict(X)
    assert np.all((between >= Y[[5, 6]].min()) & (between <= Y[[5, 6]].max()))
    with pytest.raises(TableError, match="at least 2 rows"):
        fit(sample_weight=np.eye(N)[5])


def test_a_bandwidth_may_start_very_wide():
    wide = fit(bandwidth=1000.0)
    assert 900 < wide.history_["bandwidth"][0] < 1100
    assert np.all(np.isfinite(wide.predict(X)))


def test_validation_tables_must_have_the_outputs_of_training():
    with pytest.raises(TableError, match="y has 1 outputs and y_val 2"):
        NKCME().fit(X, Y, X_val=X, y_val=np.column_stack([Y, Y]))


def test_a_program_in_double_precision_gets_the_same_bits(model):
    jax.config.update("jax_enable_x64", True)
    try:
        for ours, theirs in zip(answers(fit()), answers(model), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    finally:
        jax.config.update("jax_enable_x64", False)
