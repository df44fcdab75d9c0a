"""NKCME with several outputs: joint samples, joint density, and known dependence."""

from __future__ import annotations

import numpy as np
import pytest

from nkcme import NKCME, load, presets
from nkcme.datasets.plane import load_plane
from nkcme.errors import ModelFileError
from nkcme.metrics import energy_score
from nkcme.model_files import read_model, write_model
from support.tiny_estimators import small_recipe

SMALL = presets.QUICK | {
    "hidden": (32, 32),
    "epochs": 40,
    "random_state": 0,
    "recipe": small_recipe(),
    "verbose": False,
}


def factor_table(d: int, n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A common factor with loading x on every second output, whose correlation with the others has
    the sign of x."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    loading = np.where(np.arange(d) % 2 == 0, 1.0, x[:, None])
    return x[:, None], loading * rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, d))


@pytest.fixture(scope="module", params=[2, 3, 10])
def fitted(request):
    X, y = factor_table(request.param, n=1500)
    return NKCME(**SMALL).fit(X, y), request.param


def test_shapes_of_samples_and_densities(fitted):
    model, d = fitted
    dist = model.predict_dist(np.array([[-0.5], [0.0], [0.5]]))
    assert dist.rvs(7, random_state=0).shape == model.sample(np.zeros((3, 1)), 7).shape == (7, 3, d)
    assert dist.mean().shape == dist.std().shape == dist.mode().shape == (3, d)
    assert dist.pdf(np.zeros((3, d))).shape == dist.cdf(np.zeros((3, d))).shape == (3,)
    assert dist.pdf(np.zeros((5, d)), grid=True).shape == (3, 5)
    draws = dist.rvs(200, random_state=0)
    assert len(np.unique(draws[:, 0], axis=0)) == 200  # of a continuous distribution


def test_the_log_density_does_not_underflow(fitted):
    model, d = fitted
    dist = model.predict_dist(np.array([[-0.5], [0.5]]))
    y = np.random.default_rng(0).normal(size=(6, d))
    with np.errstate(divide="ignore"):
        expected = np.log(dist.pdf(y, grid=True))
    log_density = dist.logpdf(y, grid=True)
    np.testing.assert_allclose(log_density, np.maximum(expected, log_density), rtol=1e-6)
    far = dist.logpdf(np.full((2, d), 300.0))
    assert np.all(np.isfinite(far))
    assert np.all(far < -1000)


def test_a_correlation_that_changes_sign_with_x_is_found(fitted):
    model, d = fitted
    draws = model.sample(np.array([[-0.9], [0.9]]), 2000, random_state=0)
    for k, sign in enumerate((-1, 1)):
        correlation = np.corrcoef(draws[:, k].T)
        assert sign * correlation[0, 1] > 0.5
        if d > 2:
            assert correlation[0, 2] > 0.5


def test_moments_agree_with_samples(fitted):
    model, d = fitted
    dist = model.predict_dist(np.array([[0.3]]))
    draws = dist.rvs(20_000, random_state=0)[:, 0]
    np.testing.assert_allclose(draws.mean(axis=0), dist.mean()[0], atol=0.05)
    np.testing.assert_allclose(draws.std(axis=0), dist.std()[0], rtol=0.05)
    below = dist.cdf(np.full((1, d), 0.5))[0]
    assert np.mean(np.all(draws <= 0.5, axis=1)) == pytest.approx(below, abs=0.02)


def test_a_joint_density_integrates_to_one_in_any_units():
    X, y = factor_table(2)
    location, scale = np.array([1e4, -3.0]), np.array([200.0, 0.01])
    model = NKCME(**SMALL).fit(X, location + scale * y)
    first, second = np.linspace(-6, 6, 300), np.linspace(-6, 6, 300)
    grid = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    density = model.predict_dist([[-0.5], [0.5]]).pdf(location + scale * grid, grid=True)
    cell = np.prod(scale) * (first[1] - first[0]) * (second[1] - second[0])
    np.testing.assert_allclose(density.sum(axis=1) * cell, 1.0, atol=1e-3)
    assert density.min() >= 0


def test_the_energy_score_lies_between_the_truth_and_the_marginal():
    problem = load_plane("banana")
    model = NKCME(**SMALL).fit(*problem.make(2000, seed=0))
    X, y = problem.make(500, seed=1)
    marginal = problem.make(200, seed=2)[1][:, None]
    true = problem.sample(X[:, 0], np.random.default_rng(3), 200)
    scores = [
        energy_score(y, draws).mean()
        for draws in (true, model.sample(X, 200, random_state=0), np.repeat(marginal, 500, axis=1))
    ]
    assert scores[0] - 0.005 < scores[1] < scores[0] + 0.2 * (scores[2] - scores[0])


def test_the_ring_has_a_hole():
    ring = load_plane("ring")
    model = NKCME(**presets.QUICK, random_state=0, epochs=60, verbose=False).fit(
        *ring.make(2000, seed=0)
    )
    x = np.array([-0.6, 0.0, 0.6])
    radius = np.linalg.norm(model.sample(x[:, None], 2000, random_state=0), axis=-1)
    np.testing.assert_allclose(np.median(radius, axis=0), 1 + 0.5 * x, atol=0.1)
    assert np.mean(radius < 0.4 * (1 + 0.5 * x)) < 0.02


@pytest.mark.parametrize("center", ["none", "mean-scale", ["network"]], ids=str)
def test_a_saved_model_predicts_the_same(tmp_path, center):
    X, y = factor_table(3, n=200)
    model = NKCME(**SMALL | {"hidden": (8,), "epochs": 2, "center": center}).fit(X, y)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert (again.n_atoms, again.n_atoms_) == (None, model.n_atoms_)
    for ask in (lambda m: m.sample(X, 3, random_state=0), lambda m: m.predict_dist(X).pdf(y)):
        np.testing.assert_array_equal(ask(again), ask(model))


def test_files_without_covariances_load_and_sample_atoms(tmp_path):
    X, y = factor_table(2, n=200)
    model = NKCME(**SMALL | {"hidden": (8,), "epochs": 2, "n_atoms": 30}).fit(X, y)
    model.save(tmp_path / "m")
    config, arrays = read_model(tmp_path / "m")
    del config["learned"]["n_atoms"], arrays["model.atoms.spread"]
    write_model(tmp_path / "m", config, arrays)
    again = load(tmp_path / "m")
    draws = again.sample(X, 5, random_state=0)
    atoms = again.scaler_.location + again.scaler_.scale * np.asarray(
        again.model_.atoms.locations[0]
    )
    assert np.abs(draws[:, :, None] - atoms).max(axis=-1).min(axis=-1).max() < 1e-5
    np.testing.assert_allclose(again.predict(X), model.predict(X))


@pytest.mark.parametrize("spread", [-1.0, np.nan])
def test_covariances_that_are_not_positive_are_refused(tmp_path, spread):
    X, y = factor_table(2, n=200)
    model = NKCME(**SMALL | {"hidden": (8,), "epochs": 1, "n_atoms": 30}).fit(X, y)
    model.save(tmp_path / "m")
    config, arrays = read_model(tmp_path / "m")
    write_model(
        tmp_path / "m",
        config,
        arrays | {"model.atoms.spread": spread * arrays["model.atoms.spread"]},
    )
    with pytest.raises(ModelFileError, match=r"spread|finite"):
        load(tmp_path / "m")


def test_a_target_with_few_values_is_predicted_by_those_values():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 1)), rng.integers(0, 2, (300, 2)).astype(float)
    model = NKCME(**SMALL).fit(X, y)
    assert 0.01 < model.bandwidth_ < 10
    draws = model.sample(X[:20], 50, random_state=0)
    np.testing.assert_allclose(draws, draws.round(), atol=1e-6)
