"""The engine on problems whose answers are known; no estimator is needed to test it."""

from __future__ import annotations

import os
import signal
import threading

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from nkcme.errors import TrainingError
from nkcme.model_files import CheckpointFile
from nkcme.training import loop as training
from nkcme.training.interrupts import Interrupts
from nkcme.training.loop import Objective, Plan, Rows, Task, Trained, train


def keys(n, seed=0):
    return jax.random.split(jax.random.key(seed), n)


def everything(model):
    return jax.tree.map(lambda _: True, model)


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


class Memory:
    """A checkpoint that remembers everything it was ever given."""

    def __init__(self, start=None, die_after=None):
        self.start, self.die_after = start, die_after
        self.saved, self.copies = [], []

    def load(self):
        return self.start

    def save(self, config, arrays):
        self.saved.append((config, arrays))
        self.copies.append({name: array.copy() for name, array in arrays.items()})
        if len(self.saved) == self.die_after:
            raise _Killed


class _Killed(Exception):
    pass


# --- a regression whose minibatches, noise and validation all matter ---------------------------


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
TABLE = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
FOLDS = Rows.of([np.arange(0, 30), np.arange(25, 32), np.arange(5, 35)])
HELD_OUT = Rows.of([np.arange(30, 40), np.arange(32, 36), np.arange(35, 40)])


def regression(n_steps=60, seed=0, **options):
    plan = Plan(n_steps, 5, chunk_steps=10, patience=options.pop("patience", None))
    return train(
        REGRESSION,
        np.zeros((3, 3), np.float32),
        TABLE,
        FOLDS,
        plan,
        keys(3, seed),
        validation_rows=HELD_OUT,
        **options,
    )


@pytest.fixture(scope="module")
def uninterrupted():
    return regression()


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(uninterrupted):
    assert_same_bits(regression(), uninterrupted)
    other = regression(seed=1)
    assert not np.any(np.asarray(other.models["x"]) == np.asarray(uninterrupted.models["x"]))


def test_a_program_in_double_precision_gets_the_same_bits(uninterrupted):
    jax.config.update("jax_enable_x64", True)
    try:
        assert_same_bits(regression(), uninterrupted)
    finally:
        jax.config.update("jax_enable_x64", False)


def test_history_has_an_entry_a_chunk_and_a_value_a_replica(uninterrupted):
    history = uninterrupted.history.as_arrays()
    np.testing.assert_array_equal(history["step"], [10, 20, 30, 40, 50, 60])
    assert set(history) == {"step", "loss", "size", "validation"}
    assert history["loss"].shape == (6, 3)
    # The loss is the mean over the chunk, and it falls.
    assert np.all(history["loss"][-1] < history["loss"][0])
    assert not uninterrupted.interrupted
    assert uninterrupted.n_steps == 60


@pytest.mark.parametrize("died_after", [1, 3, 6])
def test_a_run_that_died_after_any_chunk_resumes_to_the_same_bits(uninterrupted, died_after):
    memory = Memory(die_after=died_after)
    with pytest.raises(_Killed):
        regression(checkpoint=memory, fingerprint="mine")
    start = memory.saved[-1]
    assert start[0] == {"fingerprint": "mine", "step": 10 * died_after}
    resumed = regression(checkpoint=Memory(start), fingerprint="mine")
    assert_same_bits(resumed, uninterrupted)
    # Neither the donated buffers of later chunks nor the resumed run wrote into what was saved.
    for (_, saved), copy in zip(memory.saved, memory.copies, strict=True):
        for name, array in saved.items():
            np.testing.assert_array_equal(array, copy[name])


def test_a_run_may_die_again_and_again(uninterrupted, tmp_path):
    path = tmp_path / "run.ckpt"

    class Dying(CheckpointFile):
        def save(self, config, arrays):
            super().save(config, arrays)
            raise _Killed

    for _ in range(6):
        with pytest.raises(_Killed):
            regression(checkpoint=Dying(path), fingerprint="mine")
    assert_same_bits(regression(checkpoint=CheckpointFile(path), fingerprint="mine"), uninterrupted)
    # Once finished, the checkpoint gives the finished run without another step.
    assert_same_bits(regression(checkpoint=Dying(path), fingerprint="mine"), uninterrupted)


def test_a_checkpoint_of_another_run_is_refused():
    memory = Memory(die_after=1)
    with pytest.raises(_Killed):
        regression(checkpoint=memory, fingerprint="theirs")
    with pytest.raises(TrainingError, match="of another run"):
        regression(checkpoint=Memory(memory.saved[0]), fingerprint="mine")
    config, arrays = memory.saved[0]
    for damage in (
        {name: a for name, a in arrays.items() if "best_score" not in name},
        {name: a[:2] for name, a in arrays.items()},
    ):
        with pytest.raises(TrainingError, match="other versions"):
            regression(checkpoint=Memory((config, damage)), fingerprint="theirs")


def test_a_replica_alone_follows_the_path_it_had_in_company(uninterrupted):
    """Draws and noise are its own; arithmetic may differ in the last digits, for the compiler may
    order the sums of three replicas otherwise than those of one."""
    alone = train(
        REGRESSION,
        jnp.zeros((1, 3)),
        TABLE,
        Rows(FOLDS.index[1:2], FOLDS.total[1:2]),
        Plan(60, 5, chunk_steps=10),
        keys(3)[1:2],
        validation_rows=Rows(HELD_OUT.index[1:2], HELD_OUT.total[1:2]),
    )
    np.testing.assert_allclose(alone.models["x"][0], uninterrupted.models["x"][1], rtol=1e-5)
    np.testing.assert_allclose(
        alone.history.as_arrays()["loss"][:, 0],
        uninterrupted.history.as_arrays()["loss"][:, 1],
        rtol=1e-5,
    )


def test_what_was_compiled_ahead_is_what_runs(caplog):
    """One program for all chunks, not one that is made ready and another that is used."""
    first, plan = Rows(*(a[:1] for a in FOLDS)), Plan(77, 7, chunk_steps=11)  # no other test's
    jax.config.update("jax_log_compiles", True)  # of all threads, which a context is not
    try:
        with caplog.at_level("WARNING", "jax"):
            train(REGRESSION, jnp.zeros((1, 3)), TABLE, first, plan, keys(1))
    finally:
        jax.config.update("jax_log_compiles", False)
    chunks = [m for m in caplog.messages if m.startswith("Compiling jit(_run_chunk)")]
    assert len(chunks) == 1


def test_chunks_of_another_length_walk_the_same_path(uninterrupted):
    first = Rows(*(a[:1] for a in FOLDS))
    plan = Plan(60, 5, chunk_steps=30)
    final = train(REGRESSION, jnp.zeros((1, 3)), TABLE, first, plan, keys(3)[:1])
    assert final.history.step == [30, 60]
    assert float(final.models["steps"][0]) == 60.0
    size = uninterrupted.history.values["size"][-1][0]
    np.testing.assert_allclose(np.linalg.norm(final.models["x"][0]), size, rtol=1e-5)


def test_drawing_a_few_batches_at_once_draws_the_same(uninterrupted, monkeypatch):
    monkeypatch.setattr(training, "_DRAWN_AT_ONCE", 7)
    jax.clear_caches()
    assert_same_bits(regression(), uninterrupted)
    jax.clear_caches()


def test_training_the_same_task_again_traces_nothing():
    traces = []

    def loss(model, batch, key):
        traces.append(1)
        return _loss(model, batch, key)

    task = REGRESSION._replace(objectives=(Objective(loss, only("x"), optax.adam(0.05)),))

    def run(seed, table, rows=FOLDS):
        return train(
            task,
            jnp.zeros((2, 3)),
            table,
            Rows(*(a[:2] for a in rows)),
            Plan(30, 5, 10),
            keys(2, seed),
        )

    run(0, TABLE)
    once = len(traces)
    assert once > 0
    run(1, 2.0 * TABLE)
    assert len(traces) == once
    # Nor does a table of about the size, whose draws are its own.
    longer = np.concatenate([TABLE, np.full((7, 3), np.nan, np.float32)])
    fewer = Rows.of([np.arange(0, 20), np.arange(25, 32)])
    assert all(np.isfinite(leaf).all() for leaf in leaves(run(1, longer, fewer)))
    assert len(traces) == once


def test_a_chunk_is_one_program_that_never_calls_the_host():
    state = training._start(REGRESSION, keys(2), jnp.zeros((2, 3)))
    rows = Rows(*(jnp.asarray(a[:2]) for a in FOLDS))
    table = jnp.asarray(TABLE)
    text = training._run_chunk.lower(REGRESSION, 5, 10, state, table, rows, 0).as_text()
    assert "stablehlo.while" in text  # the scan
    for word in ("callback", "infeed", "outfeed", "recv", "send"):
        assert word not in text
    start = jnp.zeros((), jnp.int32)
    with jax.transfer_guard_device_to_host("disallow"):
        training._run_chunk(REGRESSION, 5, 10, state, table, rows, start)


# --- a loss that is known ----------------------------------------------------------------------


def test_a_quadratic_is_brought_to_its_minimiser_in_every_replica():
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
    np.testing.assert_allclose(result.models["x"], centres, atol=1e-5)
    np.testing.assert_array_equal(result.models["centre"], centres)
    assert result.history.step == [100, 200]


# --- what is drawn: with this loss and a rate of one, a gradient step adds up the rows drawn -----


def _count(model, batch, key):
    return -jnp.sum(model["count"][batch])


def counting(n_rows, *others, every=1):
    first = Objective(_count, only("count"), optax.sgd(1.0), every)
    return Task(
        init=lambda key, constant: {"count": jnp.zeros(n_rows), "b": jnp.zeros(()), "c": constant},
        objectives=(first, *others),
    )


COUNTING = counting(12)


def count(rows, table, n_steps=200, batch=50, seed=0):
    n = rows.index.shape[0]
    plan = Plan(n_steps, batch, chunk_steps=100)
    table = np.resize(table, 12)  # one shape, so one program
    result = train(COUNTING, jnp.zeros(n), table, rows, plan, keys(n, seed))
    counts = np.asarray(result.models["count"])
    np.testing.assert_array_equal(counts.sum(axis=1), n_steps * batch)
    return counts


def test_folds_of_unequal_size_draw_their_own_rows_only_and_uniformly():
    folds = [np.arange(5), np.array([5, 9]), np.arange(6, 12), np.array([11])]
    counts = count(Rows.of(folds), np.arange(12))
    for fold, row in zip(folds, counts, strict=True):
        assert set(np.flatnonzero(row)) == set(fold)
        if len(fold) > 1:
            assert stats.chisquare(row[fold]).pvalue > 1e-3


def test_rows_come_in_proportion_to_their_weights_and_never_at_weight_zero():
    weight = np.array([0.0, 1.0, 2.5, 0.0, 1e-3, 7.0, 0.0])
    counts = count(Rows.of([np.arange(7)], [weight]), np.arange(7))[0]
    drawn = weight > 0
    assert not np.any(counts[:7][~drawn])
    expected = weight[drawn] / weight.sum() * counts.sum()
    assert stats.chisquare(counts[:7][drawn], expected).pvalue > 1e-3


def test_a_row_of_weight_two_is_drawn_as_two_copies_of_it():
    weight = np.array([2.0, 1.0, 0.0, 3.0, 0.0, 0.0, 1.0])
    weighted = count(Rows.of([np.arange(7)], [weight]), np.arange(7))
    copied = count(Rows.of([np.arange(7)]), [0, 0, 1, 3, 3, 3, 6])
    np.testing.assert_array_equal(weighted, copied)


@given(hnp.arrays(int, st.integers(1, 60), elements=st.integers(0, 50)))
def test_integer_weights_are_copies_to_the_last_draw(weights):
    if not weights.any():
        weights[0] = 1
    ids = np.repeat(np.arange(len(weights)), weights)
    weighted, copied = Rows.of([np.arange(len(weights))], [weights]), Rows.of([ids])
    ends = np.cumsum(weights[weights > 0]) - 1
    np.testing.assert_array_equal(weighted.total[0, : len(ends)], copied.total[0, ends])
    assert weighted.total[0, len(ends) - 1] == copied.total[0, -1] == 2**32 - 1
    assert np.all(np.diff(copied.total[0].astype(np.int64)) >= 0)


@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=8))
def test_weights_of_any_magnitude_make_a_table(weights):
    total = Rows.of([np.arange(len(weights))], [np.array(weights)]).total[0].astype(np.float64)
    share = np.array(weights) / max(weights)
    np.testing.assert_allclose(total, np.cumsum(share) / share.sum() * 2.0**32, atol=2.0)


def test_the_topmost_draw_belongs_to_the_replica_too(monkeypatch):
    """Padding must not send it to somebody else's row, nor to one of weight zero."""
    rows = Rows.of([np.arange(4), np.array([7, 8, 9])], [np.array([1, 1, 1, 0]), np.ones(3)])
    for bits, expected in ((2**32 - 1, [2, 9]), (0, [0, 7])):
        monkeypatch.setattr(
            jax.random, "bits", lambda key, shape, dtype, b=bits: jnp.full(shape, b, dtype)
        )
        for index, total, row in zip(rows.index, rows.total, expected, strict=True):
            drawn = training.draw(jnp.asarray(index), jnp.asarray(total), jax.random.key(0), 3)
            np.testing.assert_array_equal(drawn, row)


def test_rows_without_weight_are_refused():
    with pytest.raises(TrainingError, match="replica 1 has no row of positive weight"):
        Rows.of([np.arange(2), np.arange(2)], [np.ones(2), np.zeros(2)])


# --- objectives ---------------------------------------------------------------------------------


def test_objectives_are_applied_in_order_on_one_minibatch_each_at_its_period():
    def other_count(model, batch, key):
        return -jnp.sum(model["b"][batch])

    def sees_the_first(model, batch, key):
        return -jnp.sum(model["count"]) * model["c"]

    sgd = optax.sgd(1.0)
    task = Task(
        init=lambda key, c: {"count": jnp.zeros(12), "b": jnp.zeros(12), "c": c, "d": c},
        objectives=(
            Objective(_count, only("count"), sgd),
            Objective(other_count, only("b"), sgd),
            Objective(sees_the_first, only("c"), sgd),
            Objective(lambda m, b, k: -m["d"], only("d"), sgd, every=4),
        ),
    )
    rows = Rows.of([np.arange(12)])
    result = train(task, jnp.zeros(1), np.arange(12), rows, Plan(18, 3, chunk_steps=9), keys(1))
    np.testing.assert_array_equal(result.models["count"], result.models["b"])
    assert float(result.models["c"][0]) == 3 * 18 * 19 / 2  # after its own step, the first moved
    assert float(result.models["d"][0]) == 4  # steps 4, 8, 12 and 16 of 18


# --- validation ---------------------------------------------------------------------------------


def test_objectives_with_windows_take_turns_in_one_run():
    sgd = optax.sgd(1.0)
    task = Task(
        init=lambda key, constant: {"a": jnp.zeros(()), "b": jnp.zeros(())},
        objectives=(
            Objective(lambda m, b, k: 3.0 - m["a"], only("a"), sgd, window=(0, 7)),
            # One a step up, and only once the first has come to rest at seven.
            Objective(lambda m, b, k: -m["b"] * m["a"], only("b"), sgd, window=(7, 12)),
        ),
    )
    trained = train(
        task, (), TABLE, Rows.of([np.arange(40)] * 2), Plan(15, 5, chunk_steps=3), keys(2)
    )
    np.testing.assert_array_equal(trained.models["a"], 7.0)
    np.testing.assert_array_equal(trained.models["b"], 5 * 7.0)
    # The loss that is told is that of whose turn it is: 3 - 0, 3 - 1, 3 - 2; at rest it is zero.
    told = trained.history.as_arrays()["loss"][:, 0]
    np.testing.assert_allclose(told[[0, 4]], [2.0, 0.0])


def walking(valley):
    """x walks by one a step; ``valley(x, constant)`` is its validation score."""
    return Task(
        init=lambda key, constant: {"x": jnp.zeros(()), "c": constant},
        objectives=(Objective(lambda m, b, k: -m["x"], only("x"), optax.sgd(1.0)),),
        validation=lambda m, b: jnp.broadcast_to(valley(m["x"], m["c"]), b.shape),
    )


VALLEY = walking(lambda x, c: jnp.abs(x - c))


def walk(task, constants, n_steps=40, patience=None, **options):
    n = len(constants)
    rows = Rows.of([np.arange(3)] * n)
    plan = Plan(n_steps, 2, chunk_steps=1, patience=patience)
    return train(
        task,
        jnp.array(constants),
        np.zeros(3),
        rows,
        plan,
        keys(n),
        validation_rows=rows,
        **options,
    )


def test_the_state_that_validated_best_comes_back():
    result = walk(VALLEY, [3.0, 17.0])
    np.testing.assert_array_equal(result.models["x"], [3.0, 17.0])
    assert result.n_steps == 40
    scores = result.history.as_arrays()["validation"]
    np.testing.assert_allclose(scores[:, 0], np.abs(np.arange(1, 41) - 3.0), rtol=1e-6)


@pytest.mark.parametrize("patience", [1, 5])
def test_training_stops_when_every_replica_has_lost_patience(patience):
    result = walk(VALLEY, [3.0, 17.0], patience=patience)
    np.testing.assert_array_equal(result.models["x"], [3.0, 17.0])
    assert result.n_steps == 17 + patience
    assert not result.interrupted


def test_a_replica_out_of_patience_keeps_its_best_whatever_its_neighbours_do():
    # Two valleys, at 3 and, deeper, at 12: with a patience of 4 the second is never reached,
    # even when a neighbour keeps the run going beyond it.
    task = walking(lambda x, c: jnp.minimum(jnp.abs(x - c), jnp.abs(x - c - 9.0) - 0.5))
    alone = walk(task, [3.0], patience=4)
    assert (float(alone.models["x"][0]), alone.n_steps) == (3.0, 7)
    together = walk(task, [3.0, 8.0], n_steps=30, patience=4)
    np.testing.assert_array_equal(together.models["x"], [3.0, 8.0])


def test_an_early_stopped_run_resumed_from_its_checkpoint_does_no_more():
    memory = Memory()
    stopped = walk(VALLEY, [3.0, 5.0], patience=2, checkpoint=memory)
    again = walk(VALLEY, [3.0, 5.0], patience=2, checkpoint=Memory(memory.saved[-1]))
    assert_same_bits(again, stopped)


def test_validation_is_the_weighted_mean_over_many_rows():
    n = 30_000
    values = np.random.default_rng(0).uniform(1.0, 3.0, n).astype(np.float32)
    weights = np.random.default_rng(1).uniform(0.0, 2.0, n)
    task = Task(
        init=lambda key, c: {"x": c},
        objectives=(Objective(lambda m, b, k: m["x"], everything, optax.sgd(0.0)),),
        validation=lambda m, b: b,
    )
    result = train(
        task,
        jnp.zeros(2),
        values,
        Rows.of([np.arange(5)] * 2),
        Plan(1, 1),
        keys(2),
        validation_rows=Rows.of([np.arange(n), np.arange(10)], [weights, np.ones(10)]),
    )
    known = [np.average(values, weights=weights), np.mean(values[:10])]
    np.testing.assert_allclose(result.history.values["validation"][0], known, rtol=1e-6)


def test_a_loss_that_is_not_finite_stops_training_and_says_whose():
    task = walking(lambda x, c: x)
    task = task._replace(
        objectives=(
            Objective(lambda m, b, k: m["x"] / (m["c"] - m["x"]), only("x"), optax.sgd(0.0)),
        )
    )
    with pytest.raises(TrainingError, match=r"loss of replica 1 is (nan|inf) after 1 steps"):
        walk(task, [1.0, 0.0])


def test_validation_that_is_never_finite_is_refused_and_not_the_first_state_given_back():
    with pytest.raises(TrainingError, match="best validation score of replica 0 is inf"):
        walk(walking(lambda x, c: x * jnp.nan), [0.0], n_steps=3)
    # Now and then it may be: such a state is just not the best.
    result = walk(walking(lambda x, c: jnp.where(x < 3, jnp.nan, x)), [0.0], n_steps=6)
    np.testing.assert_array_equal(result.models["x"], [3.0])


# --- the plan ------------------------------------------------------------------------------------


@given(st.integers(1, 200_000), st.none() | st.integers(1, 5000))
def test_chunks_cover_the_steps_exactly_wherever_a_run_resumes(n_steps, chunk_steps):
    plan = Plan(n_steps, 1, chunk_steps)
    chunks = plan.chunks()
    assert sum(chunks) == n_steps
    assert min(chunks) >= 1
    assert len(set(chunks[:-1])) <= 1  # at most two programs
    if chunk_steps is not None:
        assert max(chunks) <= chunk_steps
    for i in {0, len(chunks) // 2, len(chunks)}:
        assert plan.chunks(sum(chunks[:i])) == chunks[i:]


def test_equal_chunks_are_preferred_and_no_steps_make_no_chunks():
    assert set(Plan(100_000, 50).chunks()) == {2000}
    assert Plan(1030, 50, chunk_steps=110).chunks() == [103] * 10
    assert Plan(7, 50).chunks() == [7]
    assert Plan(0, 50).chunks() == []


# --- Ctrl-C --------------------------------------------------------------------------------------


class CtrlC:
    """A progress listener who presses Ctrl-C after a given number of chunks."""

    def __init__(self, after, times=1):
        self.after, self.times, self.updates = after, times, []

    def update(self, step, values):
        self.updates.append((step, values))
        if len(self.updates) == self.after:
            for _ in range(self.times):
                signal.raise_signal(signal.SIGINT)


def test_the_first_ctrl_c_ends_after_the_chunk_with_a_state_to_resume(uninterrupted):
    before = signal.getsignal(signal.SIGINT)
    memory, listener = Memory(), CtrlC(after=2)
    stopped = regression(checkpoint=memory, progress=listener)
    assert stopped.interrupted
    assert stopped.n_steps == 20
    assert [step for step, _ in listener.updates] == [10, 20]
    assert set(listener.updates[0][1]) == {"loss", "size", "validation"}
    assert signal.getsignal(signal.SIGINT) is before
    assert_same_bits(regression(checkpoint=Memory(memory.saved[-1])), uninterrupted)


def test_ctrl_c_in_the_last_chunk_interrupts_nothing(uninterrupted):
    result = regression(progress=CtrlC(after=6))
    assert not result.interrupted
    assert_same_bits(result, uninterrupted)


def test_the_second_ctrl_c_is_an_ordinary_one():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        regression(progress=CtrlC(after=2, times=2))
    assert signal.getsignal(signal.SIGINT) is before


def test_outside_the_main_thread_signals_are_left_alone(uninterrupted):
    results = []
    before = signal.getsignal(signal.SIGINT)
    worker = threading.Thread(target=lambda: results.append(regression()))
    worker.start()
    worker.join()
    assert_same_bits(results[0], uninterrupted)
    assert signal.getsignal(signal.SIGINT) is before


def test_interrupts_restore_the_handler_after_an_error():
    before = signal.getsignal(signal.SIGINT)

    def fail():
        with Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGINT)
            assert interrupts.requested
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fail()
    assert signal.getsignal(signal.SIGINT) is before
