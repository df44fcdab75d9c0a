"""DeepFeatureCME: its loss against the formula, its solution against that of KernelCME."""

from __future__ import annotations

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nkcme import DeepFeatureCME, KernelCME
from nkcme.errors import ModelFileError, NkcmeError
from nkcme.estimators import deep_feature_cme
from nkcme.networks import SpectralLinear

N = 200


def two_branches(n, seed):
    """y = +-|x_0| + 0.2 e, with both signs equally likely."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    sign = np.where(rng.uniform(size=n) < 0.5, 1.0, -1.0)
    return x, sign * np.abs(x[:, 0]) + 0.2 * rng.normal(size=n)


def small(**changes):
    given = {"hidden": (16, 12), "epochs": 20, "batch_size": 50, "random_state": 0}
    return DeepFeatureCME(**given | {"bandwidth": 0.4} | changes)


@pytest.fixture(scope="module")
def data():
    return two_branches(N, 0)


@pytest.fixture(scope="module")
def fitted(data):
    return small().fit(*data)


def test_training_minimises_the_loss_of_the_features(fitted, data):
    """K_Y has no density factor, features are after the activation, the bandwidth is fixed."""
    task = fitted._task(fitted._spec(2, 1, 10, N))
    x, y = (jnp.asarray(v[:20].reshape(20, -1), jnp.float32) for v in data)
    psi = np.asarray(fitted.model_(x), np.float64)
    assert (psi >= 0).all()
    k_y = np.exp(-0.5 * np.square(y - y.T) / fitted.bandwidth_**2)
    inverse = np.linalg.inv(psi.T @ psi + fitted.regularization * np.eye(psi.shape[1]))
    np.testing.assert_allclose(
        task.objectives[0].loss(fitted.model_, (x, y), jax.random.key(0)),
        -np.trace(k_y @ psi @ inverse @ psi.T) / len(psi),
        rtol=1e-4,  # the loss is in single precision
    )
    assert task.objectives[0].trainable(fitted.model_).bandwidth is False


@pytest.mark.parametrize("weights", ["none", "whole", "fractional"])
def test_it_is_kernel_cme_with_the_kernel_of_its_features(weights, data, monkeypatch):
    rng = np.random.default_rng(1)
    weight = {
        "none": None,
        "whole": rng.integers(1, 4, N),
        "fractional": rng.uniform(0.1, 1.0, N),
    }[weights]
    model = small().fit(*data, weight)

    def features(x):
        psi = deep_feature_cme._features(model.model_, x.astype(np.float32))
        return psi.astype(np.float64)

    monkeypatch.setattr(
        "nkcme.estimators.kernel_cme.gaussian", lambda a, b, bandwidth: features(a) @ features(b).T
    )
    dual = KernelCME(input_bandwidth=1.0, regularization=0.1, bandwidth=0.4).fit(*data, weight)
    new, _ = two_branches(30, 2)
    ours, expected = model.predict_dist(new), dual.predict_dist(new)
    np.testing.assert_array_equal(ours.atoms, expected.atoms)
    np.testing.assert_allclose(ours.weights, expected.weights, atol=1e-6)


def test_blocks_of_rows_and_condensed_targets_change_little(fitted, data, monkeypatch):
    x, y = data
    monkeypatch.setattr("nkcme.estimators.closed_form.ridge.BLOCK_ROWS", 64)
    condensed = small(n_atoms=100).fit(x, y)
    assert condensed.predict_dist(x).n_atoms <= 100
    ours, whole = (model.predict_dist(x).embedding_mean() for model in (condensed, fitted))
    np.testing.assert_allclose(ours, whole, atol=1e-5)
    points = np.linspace(-3, 3, 31)
    np.testing.assert_allclose(
        condensed.predict_dist(x).pdf(points, grid=True),
        fitted.predict_dist(x).pdf(points, grid=True),
        atol=5e-3,
    )


def test_training_finds_features_that_show_both_branches(data):
    untrained = small(bandwidth=0.3, epochs=1, learning_rate=1e-8).fit(*data)
    model = small(bandwidth=0.3, epochs=200, learning_rate=5e-3).fit(*data)
    assert model.history_["loss"][-1] < model.history_["loss"][0] - 0.05
    dist = model.predict_dist([[2.0, 0.0]])
    at_the_branches, between = dist.pdf([[-2.0, 2.0]]).min(), dist.pdf([0.0])[0]
    assert at_the_branches > 2 * abs(between)
    new, y = two_branches(500, 3)
    crps = [m.predict_dist(new).crps(y).mean() for m in (untrained, model)]
    assert crps[1] < crps[0]


def test_the_bandwidth_is_given_or_the_median_distance(fitted, data):
    def median(y):
        return np.median(np.abs(y[:, None] - y[None])[np.triu_indices(N, 1)])

    x, y = data
    assert fitted.bandwidth_ == np.float32(0.4)
    unscaled = small(bandwidth="median", standardize=False, epochs=1).fit(x, y)
    assert unscaled.bandwidth_ == pytest.approx(median(y), rel=1e-5)
    targets = (y, np.square(y))
    models = small(bandwidth="median", epochs=1).fit_many([(x, target) for target in targets])
    for model, target in zip(models, targets, strict=True):
        assert model.bandwidth_ == pytest.approx(median(target) / target.std(), rel=1e-5)


def test_spectral_norm_of_minus_one_normalises_the_layer_of_the_features(data):
    model = small(spectral_norm=(-1,), epochs=200, learning_rate=5e-3).fit(*data)
    layers = model.model_.network.layers
    assert [isinstance(layer, SpectralLinear) for layer in layers] == [False, True]
    assert layers[-1].linear.weight.shape == (12, 16)
    weight = np.asarray(layers[-1].linear.weight)
    estimate = np.asarray(layers[-1].u) @ weight @ np.asarray(layers[-1].v)
    assert np.linalg.norm(weight, 2) / estimate == pytest.approx(1.0, abs=0.05)


def test_validation_rows_are_an_error(data):
    with pytest.raises(NkcmeError, match="no use for X_val"):
        small().fit(*data, X_val=data[0], y_val=data[1])


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
def test_a_file_with_arrays_that_do_not_fit_is_an_error(changes, fitted):
    model = copy.copy(fitted)
    config, arrays = model._learned()
    model._relearn(config, arrays)
    with pytest.raises(ModelFileError):
        model._relearn(config, arrays | changes)
