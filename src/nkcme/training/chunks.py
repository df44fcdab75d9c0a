"""Training in chunks of steps, and all that happens between two chunks.

A chunk is a compiled program that reads nothing back from the device until it ends. After each
chunk the host checks the loss, extends the history, writes the checkpoint, moves the progress bar
and stops if Ctrl-C was pressed. `run_in_chunks` is the one place that does this, for estimators
(`nkcme.training.loop`) and for agents (`nkcme.rl.loop`, `nkcme.rl.host_loop`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from nkcme.errors import TrainingError
from nkcme.training.interrupts import Interrupts
from nkcme.training.named_arrays import named_arrays, tree_from_checkpoint
from nkcme.training.replicas import concatenated

PyTree = Any
Values = Mapping[str, np.ndarray]

#: What the names of the state's arrays begin with in a checkpoint.
_STATE = "state"


class Checkpoint(Protocol):
    """A place that keeps the state of a run; see `nkcme.model_files.CheckpointFile`.

    ``str(checkpoint)`` is its path, for messages.
    """

    def __str__(self) -> str: ...

    def load(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None: ...

    def save(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None: ...


class Progress(Protocol):
    """A listener that gets the steps done and named values after each chunk."""

    def update(self, step: int, values: dict[str, float]) -> None: ...


class ChunkedRun(Protocol):
    """A training run, as `run_in_chunks` drives it."""

    #: A replica in messages: "replica", "agent".
    replica_name: str
    #: What to do when the loss diverges, for the message.
    divergence_advice: str

    def start(self) -> None:
        """Make the initial states and compile. Ctrl-C during this stops after the first chunk."""

    def chunk_lengths(self, done: int) -> Iterable[int]:
        """Return the lengths, in steps, of the chunks after ``done`` steps.

        They are read one at a time, so a generator may end the run early.
        """

    def run_chunk(self, done: int, length: int) -> Values:
        """Train for ``length`` steps; return values per replica, "loss" among them."""

    def record(self, done: int, values: Values) -> dict[str, float]:
        """Add the values of a chunk to the history; return those for the progress bar."""


class ResumableRun(ChunkedRun, Protocol):
    """A run with a state that can be written to a checkpoint."""

    #: One pytree per group of replicas; each leaf has a leading replica axis.
    states: list[PyTree]

    def history_arrays(self) -> dict[str, np.ndarray]:
        """Return what a checkpoint holds beside the states."""

    def restore_history(self, arrays: dict[str, np.ndarray]) -> None:
        """Set the history from all arrays of a checkpoint."""


class RunCheckpoint:
    """The checkpoint of one run, which a fingerprint of its data and parameters identifies."""

    def __init__(self, run: ResumableRun, file: Checkpoint, fingerprint: str):
        self._run = run
        self._file = file
        self._fingerprint = fingerprint

    def restore(self) -> int:
        """Set the states and the history of the run, if there is a checkpoint; return its step."""
        if (found := self._file.load()) is None:
            return 0
        config, arrays = found
        where = str(self._file)
        if config.get("fingerprint") != self._fingerprint:
            raise TrainingError(
                f"the checkpoint {where} is of another run (other data, parameters or seed): give "
                "another path, or delete this one to start afresh"
            )
        restored, first = [], 0
        for state in self._run.states:
            last = first + len(jax.tree.leaves(state)[0])
            replicas = slice(first, last)
            restored.append(
                tree_from_checkpoint(state, arrays, _STATE, replicas=replicas, where=where)
            )
            first = last
        self._run.states = restored
        self._run.restore_history(arrays)
        return int(config["step"])

    def save(self, done: int) -> None:
        """Write the states and the history after ``done`` steps."""
        arrays = named_arrays(concatenated(self._run.states), _STATE) | self._run.history_arrays()
        self._file.save({"fingerprint": self._fingerprint, "step": done}, arrays)


class End(NamedTuple):
    """How a run ended: the steps done, and whether Ctrl-C was pressed."""

    done: int
    stop_requested: bool


def run_in_chunks(
    run: ChunkedRun, *, checkpoint: RunCheckpoint | None = None, progress: Progress | None = None
) -> End:
    """Start a run, restore its checkpoint and train until its chunks or Ctrl-C end it."""
    with Interrupts() as interrupts:
        run.start()
        done = 0 if checkpoint is None else checkpoint.restore()
        for length in run.chunk_lengths(done):
            values = run.run_chunk(done, length)
            done += length
            refuse_divergence(run, values["loss"], done)
            shown = run.record(done, values)
            if checkpoint is not None:
                checkpoint.save(done)
            if progress is not None:
                progress.update(done, shown)
            if interrupts.requested:
                break
        return End(done, interrupts.requested)


def refuse_divergence(run: ChunkedRun, values: np.ndarray, done: int, name: str = "loss") -> None:
    """Raise TrainingError where a value per replica is not finite."""
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise TrainingError(
            f"the {name} of {run.replica_name} {bad[0]} is {values[bad[0]]} after {done} steps: "
            f"{run.divergence_advice}"
        )


def near_divisor(n_steps: int, most: int) -> int:
    """Return a length of at most ``most`` steps for equal chunks of a run, if one is near it."""
    most = min(most, n_steps)
    return next((c for c in range(most, most // 2, -1) if n_steps % c == 0), most)


def equal_chunks(n_steps: int, length: int, done: int) -> list[int]:
    """Return the lengths of the chunks after ``done`` steps; the last may be shorter."""
    whole, rest = divmod(n_steps - done, length)
    return [length] * whole + ([rest] if rest else [])
