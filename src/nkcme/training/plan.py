"""What a training run is to do, and what it has recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nkcme.training.chunks import Values, equal_chunks, near_divisor

PyTree = Any

#: ``judge(models, done, best)`` returns a score for each replica after ``done`` steps, lower is
#: better; the models of all replicas are stacked along a leading axis, and ``best`` are their best
#: scores before.
Judge = Callable[[PyTree, int, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Plan:
    """The number of steps, the size of a minibatch, the length of a chunk, and the patience."""

    n_steps: int
    batch_size: int
    chunk_steps: int | None = None  # about a twentieth of the run unless given
    patience: int | None = None  # scorings without a better one; None: never stop early
    marks: tuple[int, ...] = ()  # steps after which a judge scores all replicas
    least_gain: float = 0.0  # the share by which a judge's score must improve
    least_steps: int = 0  # before these, scores use up no patience

    def chunks(self, done: int = 0) -> list[int]:
        """Return the lengths of the chunks after ``done`` steps.

        All are equal if a length near the wanted one divides the number of steps, so that one
        program is compiled instead of two.
        """
        if done >= self.n_steps:
            return []
        if self.marks:  # one length, and so one program, for runs that end at any mark
            return equal_chunks(self.n_steps, self.marks[0], done)
        wanted = self.chunk_steps or min(max(self.n_steps // 20, 100), 2000)
        return equal_chunks(self.n_steps, near_divisor(self.n_steps, wanted), done)


@dataclass
class History:
    """One entry per chunk: the steps done, and arrays (replicas,) of loss, monitors, validation."""

    step: list[int] = field(default_factory=list)
    values: dict[str, list[np.ndarray]] = field(default_factory=dict)

    def append(self, step: int, values: Values) -> None:
        """Add the values of one chunk."""
        self.step.append(step)
        for name, value in values.items():
            self.values.setdefault(name, []).append(np.asarray(value))

    def as_arrays(self) -> dict[str, np.ndarray]:
        """Return ``step`` (entries,) and each value (entries, replicas)."""
        stacked = {name: np.stack(value) for name, value in self.values.items()}
        return {"step": np.asarray(self.step, np.int64), **stacked}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> History:
        """Restore the history of `as_arrays`."""
        values = {name: list(value) for name, value in arrays.items() if name != "step"}
        return cls([int(s) for s in arrays["step"]], values)
