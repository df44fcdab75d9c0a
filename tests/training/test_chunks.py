"""The protocol between chunks, on a run that counts its steps instead of training."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest

from nkcme.errors import TrainingError
from nkcme.training.chunks import RunCheckpoint, equal_chunks, run_in_chunks
from support.training_runs import Killed, Listener, MemoryCheckpoint


class CountingRun:
    """Two groups of one and two replicas; the state is the number of steps done."""

    replica_name = "replica"
    divergence_advice = "do something else"

    def __init__(self, n_steps=60, diverge_at=None, stop_at=None):
        self.n_steps, self.diverge_at, self.stop_at = n_steps, diverge_at, stop_at
        self.history = []

    def start(self):
        self.states = [{"steps": np.zeros(1, np.int32)}, {"steps": np.zeros(2, np.int32)}]

    def chunk_lengths(self, done):
        for length in equal_chunks(self.n_steps, 10, done):
            if self.stop_at is not None and self.states[0]["steps"][0] >= self.stop_at:
                return
            yield length

    def run_chunk(self, done, length):
        assert all((state["steps"] == done).all() for state in self.states)
        self.states = [{"steps": state["steps"] + length} for state in self.states]
        loss = np.array([1.0, 2.0, 3.0]) + done
        if self.diverge_at == done + length:
            loss[1] = np.nan
        return {"loss": loss}

    def record(self, done, values):
        self.history.append(done)
        return {"loss": float(values["loss"].mean())}

    def history_arrays(self):
        return {"history/step": np.array(self.history)}

    def restore_history(self, arrays):
        self.history = arrays["history/step"].tolist()


def resumed(memory, fingerprint="mine", **options):
    run = CountingRun(**options)
    return run, run_in_chunks(run, checkpoint=RunCheckpoint(run, memory, fingerprint))


def test_chunks_run_to_the_end_and_report_their_values():
    run, listener = CountingRun(), Listener()
    assert run_in_chunks(run, progress=listener) == (60, False)
    assert run.history == listener.steps == [10, 20, 30, 40, 50, 60]
    assert listener.updates[1][1] == {"loss": 12.0}


def test_a_run_can_end_its_chunks_early():
    run = CountingRun(stop_at=30)
    assert run_in_chunks(run) == (30, False)


@pytest.mark.parametrize("died_after", [1, 3, 6])
def test_a_killed_run_resumes_after_its_last_chunk(died_after):
    memory = MemoryCheckpoint(die_after=died_after)
    with pytest.raises(Killed):
        resumed(memory)
    config, arrays = memory.saved[-1]
    assert config == {"fingerprint": "mine", "step": 10 * died_after}
    assert set(arrays) == {"state['steps']", "history/step"}
    np.testing.assert_array_equal(arrays["state['steps']"], [10 * died_after] * 3)
    again = MemoryCheckpoint(memory.saved[-1])
    run, end = resumed(again)
    assert end == (60, False)
    assert run.history == [10, 20, 30, 40, 50, 60]
    assert len(again.saved) == 6 - died_after
    assert [len(state["steps"]) for state in run.states] == [1, 2]
    assert all((state["steps"] == 60).all() for state in run.states)


def test_checkpoints_of_other_runs_or_versions_are_refused():
    memory = MemoryCheckpoint(die_after=1)
    with pytest.raises(Killed):
        resumed(memory)
    config, arrays = memory.saved[0]
    with pytest.raises(TrainingError, match="the checkpoint memory is of another run"):
        resumed(MemoryCheckpoint((config, arrays)), fingerprint="theirs")
    for damaged in ({}, {"state['steps']": np.zeros(2, np.int32)}):
        with pytest.raises(TrainingError, match="other versions"):
            resumed(MemoryCheckpoint((config, damaged)))


def test_divergence_names_the_replica_and_is_not_saved():
    memory = MemoryCheckpoint()
    with pytest.raises(
        TrainingError, match="loss of replica 1 is nan after 20 steps: do something"
    ):
        resumed(memory, diverge_at=20)
    assert [config["step"] for config, _ in memory.saved] == [10]


def test_the_first_ctrl_c_ends_the_run_after_the_chunk():
    before = signal.getsignal(signal.SIGINT)
    run, listener = CountingRun(), Listener(press_after=2)
    assert run_in_chunks(run, progress=listener) == (20, True)
    assert listener.steps == [10, 20]
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_ctrl_c_raises():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run_in_chunks(CountingRun(), progress=Listener(press_after=2, times=2))
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_during_the_start_ends_the_run_after_the_first_chunk():
    class Pressed(CountingRun):
        def start(self):
            super().start()
            signal.raise_signal(signal.SIGINT)

    assert run_in_chunks(Pressed()) == (10, True)


def test_an_error_restores_the_signal_handler():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(TrainingError):
        run_in_chunks(CountingRun(diverge_at=10))
    assert signal.getsignal(signal.SIGINT) is before


def test_outside_the_main_thread_signals_are_not_caught():
    before = signal.getsignal(signal.SIGINT)
    seen, ends = [], []

    class Watching(CountingRun):
        def start(self):
            super().start()
            seen.append(signal.getsignal(signal.SIGINT))

    worker = threading.Thread(target=lambda: ends.append(run_in_chunks(Watching())))
    worker.start()
    worker.join()
    assert seen == [before]
    assert ends == [(60, False)]


@pytest.mark.parametrize(
    ("n_steps", "length", "done", "expected"),
    [(30, 10, 0, [10, 10, 10]), (35, 10, 10, [10, 10, 5]), (30, 10, 30, []), (30, 10, 25, [5])],
)
def test_equal_chunks_cover_the_remaining_steps(n_steps, length, done, expected):
    assert equal_chunks(n_steps, length, done) == expected
