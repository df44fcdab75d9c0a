"""DeepFeatureCME: its loss against the formula, its solve against KernelCME's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nkcme.errors import ModelFileError, NkcmeError
from nkcme.estimators import deep_feature_cme as deep_feature
from nkcme.estimators.deep_feature_cme import DeepFeatureCME, deep_feature_loss
from nkcme.estimators.kernel_cme import KernelCME
from nkcme.networks import SpectralLinear

RNG = np.random.default_rng(0)
N = 200
X = RNG.normal(size=(N, 2))
Y = np.where(RNG.uniform(size=N) < 0.5, 1.0, -1.0) * np.abs(X[:, 0]) + 0.2 * RNG.normal(size=N)


def small(**changes: object) -> DeepFeatureCME:
    given = {"hidden": (16, 12), "epochs": 20, "batch_size": 50, "random_state": 0}
    return DeepFeatureCME(**given | changes)


# ------------------------------------------------------------------------------------ the loss


def plain_loss(psi: jax.Array, k_y: jax.Array, regularization: float) -> jax.Array:
    """As the protocol writes it."""
    inverse = jnp.linalg.inv(psi.T @ psi + regularization * jnp.eye(psi.shape[1]))
    return -jnp.trace(k_y @ psi @ inverse @ psi.T) / len(psi)


@pytest.mark.parametrize("shape", [(30, 7), (7, 30), (12, 12)])
def test_the_loss_and_its_gradient_are_those_of_the_formula(shape):
    psi = np.maximum(RNG.normal(size=shape), 0.0)
    y = RNG.normal(size=(shape[0], 2))
    k_y = np.exp(-0.5 * np.sum(np.square(y[:, None] - y[None]), axis=-1))
    with jax.enable_x64(True):
        psi, k_y = jnp.asarray(psi), jnp.asarray(k_y)
        ours = jax.value_and_grad(lambda p: 3.0 * deep_feature_loss(p, k_y, 0.1))(psi)
        theirs = jax.value_and_grad(lambda p: 3.0 * plain_loss(p, k_y, 0.1))(psi)
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-10)
        np.testing.assert_allclose(ours[1], theirs[1], atol=1e-10)


@pytest.mark.parametrize("shape", [(64, 20), (20, 64), (32, 32)])
def test_single_precision_will_do(shape):
    """Training makes features large: Gram matrices of norm 1e4 to 1e5 beside a lambda of 0.1. Were
    the inverse multiplied last, the gradient would be wrong in its first digit."""
    x = RNG.normal(size=(shape[0], 1))
    psi = np.maximum(x * RNG.normal(size=shape[1]) + RNG.normal(size=shape[1]), 0.0)
    y = x + 0.3 * RNG.normal(size=x.shape)
    k_y = np.exp(-0.5 * np.square(y - y.T) / 0.1**2)
    loss = jax.value_and_grad(lambda p: deep_feature_loss(p, jnp.asarray(k_y, p.dtype), 0.1))
    for norm, tolerance in ((1e4, 0.01), (1e5, 0.1)):
        large = (psi * np.sqrt(norm) / np.linalg.norm(psi, 2)).astype(np.float32)
        single = loss(jnp.asarray(large))
        with jax.enable_x64(True):
            double = loss(jnp.asarray(large, jnp.float64))
        np.testing.assert_allclose(single[0], double[0], rtol=tolerance / 10)
        error = np.asarray(single[1]) - np.asarray(double[1])
        assert np.linalg.norm(error) < tolerance * np.linalg.norm(double[1])


@pytest.mark.parametrize("shape", [(64, 20), (20, 64)])
def test_features_beyond_single_precision_leave_the_loss_finite(shape):
    psi = jnp.asarray(np.maximum(RNG.normal(size=shape), 0.0) * 1e5, jnp.float32)
    loss = lambda p: deep_feature_loss(p, jnp.ones((shape[0], shape[0])), 0.1)  # noqa: E731
    value, gradient = jax.value_and_grad(loss)(psi)
    assert -1.001 * shape[0] <= value <= 0.0
    assert np.isfinite(gradient).all()


def test_the_task_minimises_the_loss_of_its_features():
    """K_Y has no density factor, features end in the activation, the bandwidth stays."""
    model = small().fit(X, Y)
    task = deep_feature.make_task(model._spec(2, 1, 10, N))
    x, y = (jnp.asarray(v, jnp.float32) for v in (X[:20], Y[:20, None]))
    features = model.model_(x)
    assert (features >= 0).all()
    k_y = jnp.exp(-0.5 * jnp.square(y - y.T) / model.bandwidth_**2)
    np.testing.assert_allclose(
        task.objectives[0].loss(model.model_, (x, y), jax.random.key(0)),
        plain_loss(features, k_y, model.regularization),
        rtol=1e-4,
    )
    assert task.objectives[0].trainable(model.model_).bandwidth is False


# --------------------------------------------------------------------------------- the solve


@pytest.mark.parametrize("weight", [None, RNG.integers(1, 4, N), RNG.uniform(0.1, 1.0, N)])
def test_it_is_kernel_cme_with_the_kernel_of_its_features(weight, monkeypatch):
    model = small(bandwidth=0.4).fit(X, Y, weight)

    def features(x: np.ndarray) -> np.ndarray:
        return deep_feature._features(model.model_, x.astype(np.float32)).astype(np.float64)

    monkeypatch.setattr(
        "nkcme.estimators.kernel_cme.gaussian", lambda a, b, bandwidth: features(a) @ features(b).T
    )
    dual = KernelCME(input_bandwidth=1.0, regularization=0.1, bandwidth=0.4).fit(X, Y, weight)
    new = RNG.normal(size=(30, 2))
    ours, theirs = model.predict_dist(new), dual.predict_dist(new)
    np.testing.assert_array_equal(ours.atoms, theirs.atoms)
    np.testing.assert_allclose(ours.weights, theirs.weights, atol=1e-6)


def test_rows_in_blocks_and_condensed_targets_give_the_same_answers(monkeypatch):
    model = small(bandwidth=0.4).fit(X, Y)
    monkeypatch.setattr("nkcme.estimators.closed_form.ridge.BLOCK_ROWS", 64)
    condensed = small(bandwidth=0.4, n_atoms=100).fit(X, Y)
    assert condensed.predict_dist(X).n_atoms <= 100
    np.testing.assert_allclose(condensed.predict(X), model.predict(X), atol=1e-5)
    points = np.linspace(-3, 3, 31)
    np.testing.assert_allclose(
        condensed.predict_dist(X).pdf(points, grid=True),
        model.predict_dist(X).pdf(points, grid=True),
        atol=5e-3,
    )


# ---------------------------------------------------------------------------------- training


def test_training_finds_features_that_show_both_branches():
    untrained = small(bandwidth=0.3, epochs=1, learning_rate=1e-8).fit(X, Y)
    model = small(bandwidth=0.3, epochs=200, learning_rate=5e-3).fit(X, Y)
    assert model.history_["loss"][-1] < model.history_["loss"][0] - 0.05
    dist = model.predict_dist([[2.0, 0.0]])
    at_the_branches, between = dist.pdf([[-2.0, 2.0]]).min(), dist.pdf([0.0])[0]
    assert at_the_branches > 2 * abs(between)
    fresh = RNG.normal(size=(500, 2))
    sign = np.where(RNG.uniform(size=500) < 0.5, 1.0, -1.0)
    y = sign * np.abs(fresh[:, 0]) + 0.2 * RNG.normal(size=500)
    crps = [m.predict_dist(fresh).crps(y).mean() for m in (untrained, model)]
    assert crps[1] < crps[0]


def test_the_bandwidth_is_given_or_the_median_and_stays():
    assert small(bandwidth=0.25).fit(X, Y).bandwidth_ == 0.25
    distances = np.abs(Y[:, None] - Y[None])[np.triu_indices(N, 1)]
    for standardize, unit in ((True, Y.std()), (False, 1.0)):
        model = small(standardize=standardize).fit(X, Y)
        assert model.bandwidth_ == pytest.approx(np.median(distances) / unit, rel=1e-5)
    models = small(epochs=1).fit_many([(X, Y), (X, np.square(Y))])
    for one, y in zip(models, (Y, np.square(Y)), strict=True):
        median = np.median(np.abs(y[:, None] - y[None])[np.triu_indices(N, 1)]) / y.std()
        assert one.bandwidth_ == pytest.approx(median, rel=1e-5)


def test_minus_one_normalises_the_layer_of_the_features():
    model = small(spectral_norm=(-1,), epochs=200, learning_rate=5e-3).fit(X, Y)
    layers = model.model_.network.layers
    assert [isinstance(layer, SpectralLinear) for layer in layers] == [False, True]
    assert layers[-1].linear.weight.shape == (12, 16)
    weight = np.asarray(layers[-1].linear.weight)
    divided_by = np.asarray(layers[-1].u) @ weight @ np.asarray(layers[-1].v)
    assert np.linalg.norm(weight, 2) / divided_by == pytest.approx(1.0, abs=0.05)


def test_validation_rows_are_refused():
    with pytest.raises(NkcmeError, match="no use for X_val"):
        small().fit(X, Y, X_val=X, y_val=Y)


@pytest.mark.parametrize(
    "changes",
    [
        {"solution/atoms": np.zeros((3, 1))},
        {"solution/atoms": np.zeros(())},
        {"solution/atoms": np.zeros((0, 1)), "solution/operator": np.zeros((12, 0))},
        {"solution/operator": np.full((12, N), np.inf)},
        {"solution/operator": np.zeros((11, N))},
        {"solution/more": np.zeros(3)},
        {"model.bandwidth": np.zeros((), np.float32)},
    ],
)
def test_a_file_that_does_not_fit_is_refused(changes):
    model = small(epochs=1).fit(X, Y)
    config, arrays = model._learned()
    model._relearn(config, arrays)
    with pytest.raises(ModelFileError):
        model._relearn(config, arrays | changes)
