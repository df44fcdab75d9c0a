"""The kernels of Pallas, interpreted, train as the library's loss and optax do."""

from __future__ import annotations

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from benchmarks.speed import pallas_kernels as kernels
from benchmarks.speed import steps
from benchmarks.speed.pallas_steps import (
    TRAIN,
    initial_models,
    largest_difference,
    minibatches,
    packed,
    plain_training,
)
from nkcme.objectives import rkhs_loss

N_REPLICAS, N_STEPS = 2, 4


@pytest.fixture(scope="module")
def problem():
    """Models, and their minibatches."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(N_REPLICAS, 80))
    y = np.sin(3 * X) + 0.2 * rng.normal(size=X.shape)
    X, y = jnp.asarray(X, jnp.float32), jnp.asarray(y, jnp.float32)
    return initial_models(y), minibatches(jax.random.key(2), X, y, N_STEPS)


def atoms_of(models):
    return kernels.padded_atoms(models.atoms.locations[..., 0])


def test_the_gradient_is_that_of_the_librarys_loss(problem):
    models, (x, y) = problem

    def loss(model, x, y):
        x, y = x[: kernels.BATCH, None], y[: kernels.BATCH, None]
        return rkhs_loss(model.weights(x), y, model.atoms, model.kernel)

    both = eqx.filter_jit(eqx.filter_vmap(eqx.filter_value_and_grad(loss)))
    expected_loss, expected = both(models, x[0], y[0])
    ours, gradient = kernels.losses_and_gradients(packed(models), x[0], y[0], atoms_of(models), 4)
    np.testing.assert_allclose(ours, expected_loss, rtol=1e-5)
    assert largest_difference(gradient, jnp.zeros_like(gradient), packed(expected)) < 1e-5


@pytest.mark.parametrize("method", TRAIN)
def test_training_is_that_of_the_library(problem, method, monkeypatch):
    monkeypatch.setattr(kernels, "STEPS_A_KERNEL", N_STEPS // 2)
    models, batches = problem
    start = packed(models)
    expected, expected_losses = plain_training(models, *batches)
    train = jax.jit(TRAIN[method], static_argnums=4)
    state, losses = train(kernels.initial_state(start), *batches, atoms_of(models), 4)
    assert state.n_steps == N_STEPS
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    np.testing.assert_allclose(state.parameters, expected, rtol=0, atol=1e-5)
    # Adam divides by gradients that may be near zero, hence the wider limit.
    assert largest_difference(state.parameters, start, expected) < 3e-4


def test_adamw_is_that_of_optax():
    # Single precision would not show the weight decay: a step removes 1e-8 of a parameter.
    with jax.enable_x64(True):
        parameter, gradients = jnp.linspace(-2.0, 2.0, 5), jnp.asarray([[0.3], [-1e-6], [0.0]])
        optimizer = optax.adamw(kernels.LEARNING_RATE, weight_decay=kernels.WEIGHT_DECAY)
        expected, optax_state = parameter, optimizer.init(parameter)
        ours = parameter, jnp.zeros(5), jnp.zeros(5)
        for i, gradient in enumerate(gradients + jnp.zeros(5)[None]):
            change, optax_state = optimizer.update(gradient, optax_state, expected)
            expected = optax.apply_updates(expected, change)
            ours = kernels.adamw(gradient, *ours, kernels.unbias_factors(jnp.asarray(i + 1)))
        np.testing.assert_allclose(ours[0], expected, rtol=0, atol=1e-12)


def test_the_rows_compare_to_the_library_in_the_same_process(tmp_path, monkeypatch, capsys):
    def last_json(program, arguments, flags=""):
        if program is steps._PROGRAM:
            return 3e-5
        if arguments == ("gradients", 4):
            return "error of a compiler"
        return {"seconds_a_step": 1e-5, "engine_seconds_a_step": 4e-5, "largest_difference": 0.01}

    monkeypatch.setattr(steps, "_last_json", last_json)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    steps.main(1, tmp_path)
    (file,) = tmp_path.iterdir()
    rows = {row["variant"]: row for row in json.loads(file.read_text())["variants"]}
    assert rows["default"]["times_as_fast"] == 1.0
    failed, *others = (rows[name] for name in steps._PALLAS)
    assert failed["error"] == "error of a compiler"
    assert [row["times_as_fast"] for row in others] == pytest.approx(len(others) * [4.0])
