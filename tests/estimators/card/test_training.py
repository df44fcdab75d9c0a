"""The losses of CARD against their definitions, and which network each of them trains."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nkcme.estimators.card.training import Spec, make_task
from nkcme.training.optimizers import Descent

N, N_OUT = 30, 2


@pytest.fixture(scope="module")
def task():
    descent = Descent(1e-3, 1e-4, 0.999, "constant", 7)
    return make_task(Spec(3, N_OUT, (8,), "relu", (8,), 10, descent, descent._replace(n_steps=5)))


@pytest.fixture(scope="module")
def model(task):
    return task.init(jax.random.key(0), (jnp.full(N_OUT, -9.0), jnp.full(N_OUT, 9.0)))


@pytest.fixture(scope="module")
def batch():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(N, 3)), rng.normal(size=(N, N_OUT))
    learned = rng.uniform(size=N) < 0.6
    return tuple(jnp.asarray(a, jnp.float32) for a in (x, y, learned))


def test_the_mean_is_trained_on_its_share_of_the_rows(task, model, batch):
    x, y, learned = batch
    errors = np.square(np.asarray(jax.vmap(model.mean)(x)) - np.asarray(y)).mean(axis=1)
    loss = task.objectives[0].loss(model, batch, jax.random.key(0))
    np.testing.assert_allclose(loss, errors[np.asarray(learned) == 1].mean(), rtol=1e-5)
    none = task.objectives[0].loss(model, (x, y, 0 * learned), jax.random.key(0))
    assert none == 0.0


def test_the_noise_losses_are_squared_errors_of_standard_noise(task, model, batch):
    """A network that predicts no noise has the noise itself as its error."""
    silent = eqx.tree_at(
        lambda m: (m.noise.last.weight, m.noise.last.bias), model, replace_fn=jnp.zeros_like
    )
    key = jax.random.key(1)
    noise = jax.random.normal(jax.random.split(key)[1], (N, N_OUT))
    loss = task.objectives[1].loss(silent, batch, key)
    np.testing.assert_allclose(loss, np.square(noise).mean(), rtol=1e-5)
    scores = np.asarray(task.validation(silent, batch))
    assert scores.shape == (N,)
    np.testing.assert_allclose(scores, scores[0], rtol=1e-5)  # all rows get the same noise
    np.testing.assert_allclose(scores[0], 1.0, atol=5 * np.sqrt(2 / (32 * N_OUT)))


def test_the_mean_is_trained_first_and_then_stays_as_it_is(task, model, batch):
    mean_objective, noise_objective = task.objectives
    assert mean_objective.window == (0, 7)
    assert noise_objective.window == (7, 12)
    for objective, trained in ((mean_objective, "mean"), (noise_objective, "noise")):
        marks = objective.trainable(model)
        for name in ("mean", "noise", "low", "high"):
            assert set(jax.tree.leaves(getattr(marks, name))) == {name == trained}
        gradient = eqx.filter_grad(objective.loss)(model, batch, jax.random.key(0))
        moved = {name for name in ("mean", "noise") if _any_gradient(getattr(gradient, name))}
        assert moved == {trained}


def _any_gradient(tree):
    return any(np.any(leaf != 0) for leaf in jax.tree.leaves(tree))
