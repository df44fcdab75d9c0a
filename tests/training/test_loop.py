"""The training loop on problems with known answers; no estimator is involved."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nkcme.errors import TrainingError
from nkcme.model_files import CheckpointFile
from nkcme.training import minibatches, steps
from nkcme.training.loop import Objective, Plan, Rows, Task, Trained, train
from nkcme.training.minibatches import minibatches_of
from support.training_runs import Killed, Listener, MemoryCheckpoint


def keys(n, seed=0):
    return np.asarray(jax.random.key_data(jax.random.split(jax.random.key(seed), n)))


def only(*names):
    return lambda model: {name: name in names for name in model}


def leaves(trained: Trained):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(trained.models)]


def assert_same_bits(a: Trained, b: Trained):
    for ours, theirs in zip(leaves(a), leaves(b), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert a.n_steps == b.n_steps
    ours, theirs = a.history.as_arrays(), b.history.as_arrays()
    assert set(ours) == set(theirs)
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name])


# --- a regression in which minibatches, noise and validation all matter --------------------------


def _init(key, constant):
    return {"x": constant + jax.random.normal(key, (3,)), "steps": jnp.zeros(())}


def _loss(model, batch, key):
    noise = 0.1 * jax.random.normal(key, (3,))
    return jnp.mean(jnp.square(batch @ (model["x"] + noise) - 1.0))


REGRESSION = Task(
    init=_init,
    objectives=(Objective(_loss, only("x"), optax.adam(0.05)),),
    advance=lambda model: model | {"steps": model["steps"] + 1.0},
    monitor=lambda model: {"size": jnp.linalg.norm(model["x"])},
    validation=lambda model, batch: jnp.square(batch @ model["x"] - 1.0),
)
FOLDS = Rows.of([np.arange(0, 30), np.arange(25, 32), np.arange(5, 35)])
HELD_OUT = Rows.of([np.arange(30, 40), np.arange(32, 36), np.arange(35, 40)])


def make_table():
    return np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)


def regression(seed=0, task=REGRESSION, **options):
    return train(
        task,
        np.zeros((3, 3), np.float32),
        make_table(),
        FOLDS,
        Plan(60, 5, chunk_steps=10),
        keys(3, seed),
        validation_rows=HELD_OUT,
        **options,
    )


@pytest.fixture(scope="module")
def uninterrupted():
    return regression()


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not(uninterrupted):
    assert_same_bits(regression(), uninterrupted)
    other = regression(seed=1)
    assert not np.any(np.asarray(other.models["x"]) == np.asarray(uninterrupted.models["x"]))


def test_the_user_may_have_configured_double_precision(uninterrupted):
    jax.config.update("jax_enable_x64", True)
    try:
        assert_same_bits(regression(), uninterrupted)
    finally:
        jax.config.update("jax_enable_x64", False)


def test_the_history_has_one_entry_per_chunk_and_one_value_per_replica(uninterrupted):
    history = uninterrupted.history.as_arrays()
    np.testing.assert_array_equal(history["step"], [10, 20, 30, 40, 50, 60])
    assert set(history) == {"step", "loss", "size", "validation"}
    assert history["loss"].shape == (6, 3)
    # The loss is the mean over the chunk, and it falls.
    assert np.all(history["loss"][-1] < history["loss"][0])
    assert not uninterrupted.interrupted
    assert uninterrupted.n_steps == 60


@pytest.mark.parametrize("died_after", [1, 6])
def test_a_killed_run_resumes_to_the_same_bits(uninterrupted, died_after):
    memory = MemoryCheckpoint(die_after=died_after)
    with pytest.raises(Killed):
        regression(checkpoint=memory, fingerprint="mine")
    start = memory.saved[-1]
    assert start[0] == {"fingerprint": "mine", "step": 10 * died_after}
    resumed = regression(checkpoint=MemoryCheckpoint(start), fingerprint="mine")
    assert_same_bits(resumed, uninterrupted)
    # Neither the donated buffers of later chunks nor the resumed run wrote into the saved arrays.
    for (_, saved), copy in zip(memory.saved, memory.copies, strict=True):
        for name, array in saved.items():
            np.testing.assert_array_equal(array, copy[name])


def test_a_run_may_be_killed_after_every_chunk(uninterrupted, tmp_path):
    path = tmp_path / "run.ckpt"

    class Dying(CheckpointFile):
        def save(self, config, arrays):
            super().save(config, arrays)
            raise Killed

    for _ in range(6):
        with pytest.raises(Killed):
            regression(checkpoint=Dying(path), fingerprint="mine")
    assert_same_bits(regression(checkpoint=CheckpointFile(path), fingerprint="mine"), uninterrupted)
    # The checkpoint of a finished run gives its result without another step.
    assert_same_bits(regression(checkpoint=Dying(path), fingerprint="mine"), uninterrupted)


def test_a_checkpoint_without_all_arrays_of_the_state_is_refused():
    memory = MemoryCheckpoint(die_after=1)
    with pytest.raises(Killed):
        regression(checkpoint=memory, fingerprint="mine")
    config, arrays = memory.saved[0]
    damaged = {name: a for name, a in arrays.items() if "best_score" not in name}
    with pytest.raises(TrainingError, match="other versions"):
        regression(checkpoint=MemoryCheckpoint((config, damaged)), fingerprint="mine")


def test_ctrl_c_ends_the_run_with_a_state_to_resume(uninterrupted):
    memory, listener = MemoryCheckpoint(), Listener(press_after=2)
    stopped = regression(checkpoint=memory, progress=listener)
    assert stopped.interrupted
    assert stopped.n_steps == 20
    assert listener.steps == [10, 20]
    assert set(listener.updates[0][1]) == {"loss", "size", "validation"}
    assert_same_bits(regression(checkpoint=MemoryCheckpoint(memory.saved[-1])), uninterrupted)


def test_ctrl_c_in_the_last_chunk_interrupts_nothing(uninterrupted):
    result = regression(progress=Listener(press_after=6))
    assert not result.interrupted
    assert_same_bits(result, uninterrupted)


def test_a_replica_makes_the_same_draws_alone_and_among_others(uninterrupted):
    """The compiler may order the sums of three replicas otherwise than those of one, so the
    arithmetic agrees up to rounding in single precision."""
    alone = train(
        REGRESSION,
        jnp.zeros((1, 3)),
        make_table(),
        Rows(*(a[1:2] for a in FOLDS)),
        Plan(60, 5, chunk_steps=10),
        keys(3)[1:2],
        validation_rows=Rows(*(a[1:2] for a in HELD_OUT)),
    )
    np.testing.assert_allclose(alone.models["x"][0], uninterrupted.models["x"][1], rtol=1e-4)
    np.testing.assert_allclose(
        alone.history.as_arrays()["loss"][:, 0],
        uninterrupted.history.as_arrays()["loss"][:, 1],
        rtol=1e-4,
    )


def test_the_program_compiled_at_the_start_is_the_one_that_runs(caplog):
    first, plan = Rows(*(a[:1] for a in FOLDS)), Plan(77, 7, chunk_steps=11)  # no other test's
    jax.config.update("jax_log_compiles", True)  # of all threads, which a context is not
    try:
        with caplog.at_level("WARNING", "jax"):
            train(REGRESSION, jnp.zeros((1, 3)), make_table(), first, plan, keys(1))
    finally:
        jax.config.update("jax_log_compiles", False)
    chunks = [m for m in caplog.messages if m.startswith("Compiling jit(run_steps)")]
    assert len(chunks) == 1


def test_the_length_of_chunks_does_not_change_the_path(uninterrupted):
    first = Rows(*(a[:1] for a in FOLDS))
    plan = Plan(60, 5, chunk_steps=30)
    final = train(REGRESSION, jnp.zeros((1, 3)), make_table(), first, plan, keys(3)[:1])
    assert final.history.step == [30, 60]
    assert float(final.models["steps"][0]) == 60.0
    size = uninterrupted.history.values["size"][-1][0]
    np.testing.assert_allclose(np.linalg.norm(final.models["x"][0]), size, rtol=1e-4)


def with_loss(loss):
    """The regression as another task, which is compiled again."""
    return REGRESSION._replace(objectives=(Objective(loss, only("x"), optax.adam(0.05)),))


def test_training_the_same_task_again_traces_nothing():
    traces = []

    def loss(model, batch, key):
        traces.append(1)
        return _loss(model, batch, key)

    task = with_loss(loss)

    def run(seed, table, rows=FOLDS):
        rows = Rows(*(a[:2] for a in rows))
        return train(task, jnp.zeros((2, 3)), table, rows, Plan(30, 5, 10), keys(2, seed))

    table = make_table()
    run(0, table)
    once = len(traces)
    assert once > 0
    run(1, 2.0 * table)
    assert len(traces) == once
    # Neither does a table of about the same size; its padding is never drawn.
    longer = np.concatenate([table, np.full((7, 3), np.nan, np.float32)])
    fewer = Rows.of([np.arange(0, 20), np.arange(25, 32)])
    assert all(np.isfinite(leaf).all() for leaf in leaves(run(1, longer, fewer)))
    assert len(traces) == once
    # Nor one of any other size: the program sees minibatches only.
    run(1, np.resize(table, (40_000, 3)))
    assert len(traces) == once


def test_minibatches_are_gathered_in_pieces_where_they_are_large(monkeypatch):
    whole = regression()
    bytes_of_a_step = 4 * 3 * 5 * 3  # at most three replicas with five rows of three columns
    monkeypatch.setattr(minibatches, "_MAX_GATHERED", 4 * bytes_of_a_step)
    pieces = regression()
    for ours, theirs in zip(leaves(pieces), leaves(whole), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    # The loss of a chunk is a mean of means.
    losses = (one.history.as_arrays()["loss"] for one in (pieces, whole))
    np.testing.assert_allclose(*losses, rtol=1e-5)


def test_an_optimizer_may_depend_on_the_constant_of_its_replica():
    """Gradient descent on x^2 / 2 with two learning rates: x is (1 - rate)^10."""
    task = Task(
        init=lambda key, rate: {"x": jnp.ones(())},
        objectives=(Objective(lambda m, b, k: 0.5 * m["x"] ** 2, only("x"), optax.sgd),),
    )
    rates = np.array([0.1, 0.5], np.float32)
    rows = Rows.of([np.arange(4)] * 2)
    trained = train(task, rates, np.zeros(4, np.float32), rows, Plan(10, 2), keys(2))
    np.testing.assert_allclose(trained.models["x"], (1.0 - rates) ** 10, rtol=1e-5)


def test_a_chunk_is_one_program_that_never_calls_the_host():
    state = steps.start_compiled(REGRESSION, keys(2), keys(2), jnp.zeros((2, 3)))
    own = minibatches_of(make_table(), 5)
    drawn = own.of_steps(10, np.asarray(state.key), own.rows(FOLDS, slice(0, 2)), 0)
    inputs = jnp.zeros((2, 3)), *drawn
    text = steps.run_steps.lower(REGRESSION, state, *inputs, 0).as_text()
    assert "stablehlo.while" in text  # the scan
    for word in ("callback", "infeed", "outfeed", "recv", "send"):
        assert word not in text
    start = jnp.zeros((), jnp.int32)
    with jax.transfer_guard_device_to_host("disallow"):
        steps.run_steps(REGRESSION, state, *inputs, start)


# --- losses with a known minimum -----------------------------------------------------------------


def test_a_quadratic_is_minimised_in_every_replica():
    curvature = jnp.diag(jnp.array([1.0, 4.0]))

    def loss(model, batch, key):
        gap = model["x"] - model["centre"]
        return 0.5 * gap @ curvature @ gap

    task = Task(
        init=lambda key, centre: {"x": jax.random.normal(key, (2,)), "centre": centre},
        objectives=(Objective(loss, only("x"), optax.sgd(0.2)),),
    )
    centres = jnp.array([[1.0, -2.0], [0.0, 5.0], [-3.0, 0.5]])
    rows = Rows.of([np.arange(4)] * 3)
    result = train(task, centres, np.zeros(4, np.float32), rows, Plan(200, 2), keys(3))
    np.testing.assert_allclose(result.models["x"], centres, atol=1e-4)
    np.testing.assert_array_equal(result.models["centre"], centres)
    assert result.history.step == [100, 200]


def test_minibatches_hold_the_rows_of_their_replica():
    """With this loss and a rate of one, a gradient step counts the rows of the minibatch."""

    def count(model, batch, key):
        return -jnp.sum(model["count"][batch])

    task = Task(
        init=lambda key, constant: {"count": jnp.zeros(12)},
        objectives=(Objective(count, only("count"), optax.sgd(1.0)),),
    )
    folds = [np.arange(5), np.array([5, 9]), np.array([11])]
    plan = Plan(100, 20)
    result = train(task, (), np.arange(12), Rows.of(folds), plan, keys(3))
    for fold, row in zip(folds, np.asarray(result.models["count"]), strict=True):
        assert set(np.flatnonzero(row)) == set(fold)
        assert row.sum() == 100 * 20


# --- objectives ----------------------------------------------------------------------------------


def test_objectives_are_applied_in_order_on_one_minibatch_and_each_at_its_period():
    def count(name):
        return lambda model, batch, key: -jnp.sum(model[name][batch])

    def sees_the_first(model, batch, key):
        return -jnp.sum(model["a"]) * model["c"]

    sgd = optax.sgd(1.0)
    task = Task(
        init=lambda key, c: {"a": jnp.zeros(12), "b": jnp.zeros(12), "c": c, "d": c},
        objectives=(
            Objective(count("a"), only("a"), sgd),
            Objective(count("b"), only("b"), sgd),
            Objective(sees_the_first, only("c"), sgd),
            Objective(lambda m, b, k: -m["d"], only("d"), sgd, every=4),
        ),
    )
    rows = Rows.of([np.arange(12)])
    result = train(task, jnp.zeros(1), np.arange(12), rows, Plan(18, 3, chunk_steps=9), keys(1))
    np.testing.assert_array_equal(result.models["a"], result.models["b"])
    # In step t the sum of "a" is already 3 t when "c" is updated.
    assert float(result.models["c"][0]) == 3 * 18 * 19 / 2
    assert float(result.models["d"][0]) == 4  # steps 4, 8, 12 and 16 of 18


def test_objectives_with_windows_are_applied_one_after_the_other():
    sgd = optax.sgd(1.0)
    task = Task(
        init=lambda key, constant: {"a": jnp.zeros(()), "b": jnp.zeros(())},
        objectives=(
            Objective(lambda m, b, k: 3.0 - m["a"], only("a"), sgd, window=(0, 7)),
            # The first has stopped at seven when this one begins.
            Objective(lambda m, b, k: -m["b"] * m["a"], only("b"), sgd, window=(7, 12)),
        ),
    )
    rows = Rows.of([np.arange(40)] * 2)
    trained = train(task, (), make_table(), rows, Plan(15, 5, chunk_steps=3), keys(2))
    np.testing.assert_array_equal(trained.models["a"], 7.0)
    np.testing.assert_array_equal(trained.models["b"], 5 * 7.0)
    # The loss is that of the objective in its window: 3 - 0, 3 - 1, 3 - 2; at the end it is zero.
    loss = trained.history.as_arrays()["loss"][:, 0]
    np.testing.assert_allclose(loss[[0, 4]], [2.0, 0.0], atol=1e-6)


# --- the plan ------------------------------------------------------------------------------------


@given(st.integers(1, 200_000), st.none() | st.integers(1, 5000))
def test_chunks_cover_the_steps_wherever_a_run_resumes(n_steps, chunk_steps):
    plan = Plan(n_steps, 1, chunk_steps)
    chunks = plan.chunks()
    assert sum(chunks) == n_steps
    assert min(chunks) >= 1
    assert len(set(chunks[:-1])) <= 1  # at most two programs
    if chunk_steps is not None:
        assert max(chunks) <= chunk_steps
    for i in {0, len(chunks) // 2, len(chunks)}:
        assert plan.chunks(sum(chunks[:i])) == chunks[i:]


def test_equal_chunks_are_preferred():
    assert set(Plan(100_000, 50).chunks()) == {2000}
    assert Plan(1030, 50, chunk_steps=110).chunks() == [103] * 10
    assert Plan(7, 50).chunks() == [7]
    assert Plan(0, 50).chunks() == []


# --- a judge -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "least_steps", "kept", "n_steps"),
    [
        ([5.0, 4.0, 3.0, 2.0], 0, 32, 32),  # better at every mark
        ([5.0, 4.0, 4.5, 2.0], 0, 8, 16),  # worse after 16 steps: the end
        ([5.0, 4.0, 3.9, 2.0], 0, 16, 16),  # better by less than 10 %: kept, and the end
        ([5.0, 6.0, 3.0, 2.0], 9, 32, 32),  # worse after 8 steps, which is too early to end
        ([5.0, 6.0, 7.0, 2.0], 9, 4, 16),  # the best state is kept, from early marks too
    ],
)
def test_a_judge_ends_training_and_the_best_state_is_kept(scores, least_steps, kept, n_steps):
    marks = (4, 8, 16, 32)
    found = dict(zip(marks, scores, strict=True))
    plan = Plan(32, 5, patience=1, marks=marks, least_gain=0.1, least_steps=least_steps)
    judge = lambda models, done, best: np.full(3, found[done])  # noqa: E731
    start = np.zeros((3, 3), np.float32)
    trained = train(REGRESSION, start, make_table(), FOLDS, plan, keys(3), judge=judge)
    assert trained.n_steps == n_steps
    np.testing.assert_array_equal(trained.models["steps"], kept)
