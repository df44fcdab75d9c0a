"""KernelCME against its closed form, against a linear Gaussian model, and by brute force."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from nkcme import KernelCME
from nkcme.errors import ModelFileError, NkcmeError
from nkcme.estimators import kernel_cme as kernel

SLOPE, DEVIATION = np.array([1.0, -0.5]), 0.6
NEW = np.array([[0.0, 0.0], [0.8, 0.3], [-0.5, 1.0]])


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """The systems are small. On a busy machine most of the time is spent waiting for threads."""
    with threadpool_limits(1):
        yield


def linear_gaussian(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """y given x is normal with mean x'b and standard deviation s; values are exact in float32."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).astype(np.float32).astype(np.float64)
    y = X @ SLOPE + DEVIATION * rng.normal(size=n)
    return X, y.astype(np.float32).astype(np.float64)


def plain(**changes: object) -> KernelCME:
    """All parameters given, without standardisation."""
    given = {"input_bandwidth": 1.5, "regularization": 0.3, "bandwidth": 0.4}
    return KernelCME(**given | {"standardize": False, "random_state": 0} | changes)


def squared(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sum(np.square(a[:, None] - b[None]), axis=-1)


# --- the closed form ----------------------------------------------------------------------------


def test_weights_are_those_of_the_closed_form():
    X, y = linear_gaussian(150)
    dist = plain().fit(X, y).predict_dist(NEW)
    gram = np.exp(-squared(X, X) / (2 * 1.5**2))
    near = np.exp(-squared(X, NEW) / (2 * 1.5**2))
    beta = np.linalg.solve(gram + 0.3 * np.eye(150), near).T
    order = np.argsort(y)
    np.testing.assert_array_equal(dist.atoms[:, 0], y[order])
    np.testing.assert_allclose(
        dist.weights, (beta / beta.sum(axis=1, keepdims=True))[:, order], atol=1e-8
    )


def test_the_embedding_converges_to_the_true_one():
    """E[k(Y, y) | x], the smoothed density, is normal with variance s^2 + sigma^2."""
    points = np.linspace(-3, 3, 61)
    new = np.random.default_rng(1).uniform(-1, 1, size=(50, 2))
    sigma = 0.4
    mean, variance = new @ SLOPE, DEVIATION**2 + sigma**2
    truth = norm.pdf(points, mean[:, None], np.sqrt(variance))
    errors = []
    for n in (100, 400, 1600):
        dist = (
            plain(regularization=1.0, input_bandwidth=1.0)
            .fit(*linear_gaussian(n))
            .predict_dist(new)
        )
        errors.append(
            [
                np.sqrt(np.mean(np.square(error)))
                for error in (
                    dist.pdf(points, grid=True) - truth,
                    dist.mean() - mean,
                    dist.var() - variance,
                )
            ]
        )
    density, location, spread = np.array(errors).T
    assert density[2] < 0.04 * truth.max()
    assert location[2] < 0.06
    assert spread[2] < 0.08
    for error in (density, location, spread):
        assert error[2] < error[1] < error[0]
        assert error[2] < error[0] / 2


def test_whole_weights_are_repetitions_and_fractional_weights_are_relative():
    X, y = linear_gaussian(60)
    weight = np.random.default_rng(1).integers(1, 4, 60)
    for changes in ({}, {"n_inducing": 20}, {"input_bandwidth": "auto", "regularization": "auto"}):
        repeated = plain(**changes).fit(X.repeat(weight, axis=0), y.repeat(weight))
        weighted = plain(**changes).fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(weighted.predict(NEW), repeated.predict(NEW))
    half = plain().fit(X, y, sample_weight=np.full(60, 0.5))
    np.testing.assert_allclose(half.predict(NEW), plain().fit(X, y).predict(NEW), rtol=1e-10)


def test_condensed_targets_keep_means_exactly_and_densities_closely():
    X, y = linear_gaussian(400)
    exact, condensed = plain().fit(X, y), plain(n_atoms=100).fit(X, y)
    dist = condensed.predict_dist(NEW)
    assert dist.n_atoms <= 100
    ridge = exact.predict_dist(NEW).embedding_mean()
    np.testing.assert_allclose(dist.embedding_mean(), ridge, atol=1e-10)
    points = np.linspace(-3, 3, 31)
    np.testing.assert_allclose(
        dist.pdf(points, grid=True), exact.predict_dist(NEW).pdf(points, grid=True), atol=5e-3
    )


# --- parameters chosen by "auto" ----------------------------------------------------------------


def test_auto_minimises_the_leave_one_out_error(monkeypatch):
    X, y = linear_gaussian(25)
    n = len(X)
    monkeypatch.setattr(kernel, "REGULARIZATIONS", np.array([0.01, 0.3, 10.0]))
    monkeypatch.setattr(kernel, "BANDWIDTH_MULTIPLES", np.array([0.3, 1.0, 3.0]))
    model = plain(input_bandwidth="auto", regularization="auto").fit(X, y)
    k_y = np.exp(-squared(y[:, None], y[:, None]) / (2 * 0.4**2))
    distance = np.sqrt(squared(X, X))
    median = np.median(distance[np.triu_indices(n, 1)])
    scores = {}
    for multiple in kernel.BANDWIDTH_MULTIPLES:
        gram = np.exp(-np.square(distance) / (2 * (multiple * median) ** 2))
        for regularization in kernel.REGULARIZATIONS:
            total = 0.0
            for i in range(n):
                rest = np.arange(n) != i
                system = gram[np.ix_(rest, rest)] + regularization * np.eye(n - 1)
                beta = np.linalg.solve(system, gram[rest, i])
                total += k_y[i, i] - 2 * beta @ k_y[rest, i] + beta @ k_y[np.ix_(rest, rest)] @ beta
            scores[multiple * median, regularization] = total
    best = min(scores, key=scores.__getitem__)
    assert (model.input_bandwidth_, model.regularization_) == pytest.approx(best)
    # Only one of the two is chosen where the other is given.
    given = {"regularization": 10.0, "input_bandwidth": "auto"}
    expected = min((s, b) for (b, r), s in scores.items() if r == 10.0)[1]
    assert plain(**given).fit(X, y).input_bandwidth_ == pytest.approx(expected)
    expected = min((s, r) for (b, r), s in scores.items() if b == 3.0 * median)[1]
    given = {"input_bandwidth": 3.0 * median, "regularization": "auto"}
    assert plain(**given).fit(X, y).regularization_ == pytest.approx(expected)


def test_auto_uses_a_random_subset_of_many_rows(monkeypatch):
    X, y = linear_gaussian(300)
    whole = KernelCME(random_state=0).fit(X, y)
    monkeypatch.setattr(kernel, "LEAVE_ONE_OUT_ROWS", 100)
    subset = KernelCME(random_state=0).fit(X, y)
    assert 0.2 < subset.regularization_ / whole.regularization_ < 5
    assert 0.4 < subset.input_bandwidth_ / whole.input_bandwidth_ < 2.5
    r_squared = subset.score(*linear_gaussian(500, seed=1))
    ceiling = 1 - DEVIATION**2 / (SLOPE @ SLOPE + DEVIATION**2)
    assert r_squared == pytest.approx(ceiling, abs=0.05)


# --- many rows ----------------------------------------------------------------------------------


def test_too_many_rows_are_an_error_that_suggests_n_inducing():
    X, y = linear_gaussian(60)
    with pytest.raises(NkcmeError, match=r"60 distinct rows are more than max_rows=50.*n_inducing"):
        plain(max_rows=50).fit(X, y)
    plain(max_rows=50, n_inducing=20).fit(X, y)
    plain(max_rows=30).fit(X[:30].repeat(9, axis=0), y[:30].repeat(9))


def test_with_all_rows_inducing_the_solution_is_exact():
    X, y = linear_gaussian(200)
    weight = np.random.default_rng(1).uniform(0.2, 2.0, 200)
    for bandwidth in (0.5, 5.0):  # well conditioned, and numerically singular
        exact = plain(input_bandwidth=bandwidth).fit(X, y, weight).predict_dist(NEW)
        every = plain(input_bandwidth=bandwidth, n_inducing=500).fit(X, y, weight)
        np.testing.assert_allclose(every.predict_dist(NEW).weights, exact.weights, atol=1e-6)


def test_few_random_inducing_rows_are_close_to_the_exact_solution(monkeypatch):
    monkeypatch.setattr("nkcme.estimators.closed_form.ridge.BLOCK_ROWS", 128)
    X, y = linear_gaussian(1000)
    exact = plain().fit(X, y).predict(NEW)
    models = [plain(n_inducing=60, random_state=seed).fit(X, y) for seed in (0, 1)]
    one, other = (model.predict(NEW) for model in models)
    np.testing.assert_allclose(one, exact, atol=0.02)
    assert not np.array_equal(one, other)
    assert models[0]._operator.shape[0] == 60


def test_jitter_is_added_with_a_warning_only_when_needed():
    X, y = linear_gaussian(100)
    model = plain(regularization=1e-25, input_bandwidth=50.0)
    with pytest.warns(UserWarning, match="KernelCME added a jitter of"):
        model.fit(X, y)
    assert 0 < model.jitter_ < 1e-8
    assert np.isfinite(model.predict(NEW)).all()
    assert plain().fit(X, y).jitter_ == 0.0


# --- errors and edge cases ----------------------------------------------------------------------


def test_validation_rows_are_an_error():
    X, y = linear_gaussian(30)
    with pytest.raises(NkcmeError, match="no use for X_val"):
        plain().fit(X, y, X_val=X, y_val=y)


def test_far_from_all_rows_the_prediction_stays_in_the_range_of_y():
    X, y = linear_gaussian(50)
    dist = plain(input_bandwidth=0.1).fit(X, y).predict_dist(np.full((1, 2), 1e5))
    assert np.isfinite(dist.mean()).all()
    assert y.min() <= dist.mean()[0] <= y.max()


@pytest.fixture(scope="module")
def fitted():
    return plain().fit(*linear_gaussian(30))


@pytest.mark.parametrize(
    ("changes", "arrays"),
    [
        ({"bandwidth": 0.0}, {}),
        ({"bandwidth": float("nan")}, {}),
        ({"input_bandwidth": "auto"}, {}),
        ({"jitter": -1.0}, {}),
        ({}, {"atoms": np.zeros((3, 1))}),
        ({}, {"atoms": np.zeros(())}),
        ({}, {"atoms": np.zeros((0, 1)), "operator": np.zeros((30, 0))}),
        ({}, {"operator": np.full((30, 30), np.nan)}),
        ({}, {"anchors": np.zeros((30, 5))}),
        ({}, {"anchors": np.zeros((30, 2), np.int64)}),
        ({}, {"more": np.zeros(3)}),
    ],
)
def test_a_file_with_values_that_do_not_fit_is_an_error(changes, arrays, fitted):
    model = copy.copy(fitted)
    config, kept = model._learned()
    model._relearn(config, kept)
    with pytest.raises(ModelFileError):
        model._relearn(config | changes, kept | arrays)
