"""Validation: the score, the best state, and when training stops."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from nkcme.errors import TrainingError
from nkcme.training.loop import Objective, Plan, Rows, Task, train
from nkcme.training.validation import pairwise_sum, validation_score
from support.training_runs import MemoryCheckpoint

N_STEPS = 40

#: x grows by one per step; after x steps the score is score[x] and the loss loss[x].
WALK = Task(
    init=lambda key, constant: {"x": jnp.zeros(()), **constant},
    objectives=(
        Objective(
            lambda m, batch, key: -m["x"] + jax.lax.stop_gradient(m["loss"][m["x"].astype(int)]),
            lambda m: {name: name == "x" for name in m},
            optax.sgd(1.0),
        ),
    ),
    validation=lambda m, batch: jnp.broadcast_to(m["score"][m["x"].astype(int)], batch.shape),
)


def walk(scores, n_steps=N_STEPS, patience=None, loss=None, **options):
    """Train one replica per row of ``scores`` (replicas, N_STEPS + 1)."""
    scores = np.asarray(scores, np.float32)
    loss = np.zeros_like(scores) if loss is None else np.asarray(loss, np.float32)
    rows = Rows.of([np.arange(3)] * len(scores))
    return train(
        WALK,
        {"score": scores, "loss": loss},
        np.zeros(3, np.float32),
        rows,
        Plan(n_steps, 2, chunk_steps=1, patience=patience),
        np.asarray(jax.random.key_data(jax.random.split(jax.random.key(0), len(scores)))),
        validation_rows=rows,
        **options,
    )


def valleys(*lowest):
    """Scores that fall until the given step and rise after it, for each replica."""
    return np.abs(np.arange(N_STEPS + 1) - np.array(lowest)[:, None])


def test_the_best_state_by_validation_is_returned():
    result = walk(valleys(3, 17))
    np.testing.assert_array_equal(result.models["x"], [3.0, 17.0])
    assert result.n_steps == N_STEPS
    scores = result.history.as_arrays()["validation"]
    np.testing.assert_allclose(scores, valleys(3, 17)[:, 1:].T, rtol=1e-6)


@pytest.mark.parametrize("patience", [1, 5])
def test_training_stops_when_the_patience_of_every_replica_has_run_out(patience):
    result = walk(valleys(3, 17), patience=patience)
    np.testing.assert_array_equal(result.models["x"], [3.0, 17.0])
    assert result.n_steps == 17 + patience
    assert not result.interrupted


def test_a_replica_out_of_patience_keeps_its_best_however_long_others_train():
    # Two valleys, the second deeper: with a patience of 4 it is never reached, even if another
    # replica keeps the run going beyond it.
    first, second = valleys(3)[0], valleys(12)[0] - 0.5
    scores = np.minimum(first, second)
    alone = walk([scores], patience=4)
    assert (float(alone.models["x"][0]), alone.n_steps) == (3.0, 7)
    together = walk([scores, valleys(8)[0]], patience=4)
    np.testing.assert_array_equal(together.models["x"], [3.0, 8.0])


def test_the_checkpoint_of_a_run_that_stopped_early_does_not_train_further():
    memory = MemoryCheckpoint()
    stopped = walk(valleys(3, 5), patience=2, checkpoint=memory)
    rest = MemoryCheckpoint(memory.saved[-1])
    again = walk(valleys(3, 5), patience=2, checkpoint=rest)
    assert rest.saved == []
    assert again.n_steps == stopped.n_steps == 7
    np.testing.assert_array_equal(again.models["x"], stopped.models["x"])


def test_a_loss_that_is_not_finite_names_its_replica():
    loss = np.zeros((2, N_STEPS + 1))
    loss[1, 2] = np.inf
    with pytest.raises(TrainingError, match="loss of replica 1 is inf after 3 steps: lower the"):
        walk(valleys(3, 5), loss=loss)


def test_scores_that_are_never_finite_are_refused():
    nothing = np.full((1, N_STEPS + 1), np.nan)
    with pytest.raises(TrainingError, match="best validation score of replica 0 is inf"):
        walk(nothing)
    # A state without a finite score is never the best one.
    sometimes = np.arange(N_STEPS + 1.0)
    sometimes[:3] = np.nan
    np.testing.assert_array_equal(walk([sometimes]).models["x"], [3.0])


def test_the_score_is_the_weighted_mean_over_many_rows():
    """Single precision and 30,000 rows: the error is that of a few roundings, on any CPU."""
    n = 30_000
    values = np.random.default_rng(0).uniform(1.0, 3.0, n).astype(np.float32)
    weights = np.random.default_rng(1).uniform(0.0, 2.0, n)
    table = jnp.asarray(values)
    rows = Rows.of([np.arange(n), np.arange(10)], [weights, np.ones(10)])
    score = jax.jit(jax.vmap(lambda *row: validation_score(lambda m, b: b, (), table, *row)))
    known = [np.average(values, weights=weights), np.mean(values[:10], dtype=np.float64)]
    np.testing.assert_allclose(score(rows.index, rows.total), known, rtol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 7, 256, 100_001])
def test_pairwise_sums_are_accurate(n):
    values = np.random.default_rng(n).uniform(0.0, 1.0, n).astype(np.float32)
    known = np.sum(values, dtype=np.float64)
    np.testing.assert_allclose(jax.jit(pairwise_sum)(values), known, rtol=1e-6)
