"""What is called between two chunks of training: the progress bar and callbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from nkcme.rl.result import Result
from nkcme.training.chunks import Progress

#: Is called with the steps done, the scores of the last chunk ("return" and "loss", one value per
#: agent) and the agents as they are. Training ends where it returns True.
Callback = Callable[[int, dict[str, np.ndarray], Result], object]


class WatchedRun(Protocol):
    """A run that `Watching` can watch."""

    #: The means of the last chunk, one value per agent.
    scores: dict[str, np.ndarray]
    #: Set where the run is to end.
    stopped: bool

    def result(self, done: int) -> Result:
        """Return the agents after ``done`` steps; later steps do not change them."""


class Watching:
    """A listener of a run, which calls another listener and the callbacks."""

    def __init__(self, run: WatchedRun, progress: Progress | None, callbacks: Sequence[Callback]):
        self._run, self._progress, self._callbacks = run, progress, callbacks

    def update(self, step: int, values: dict[str, float]) -> None:
        """Pass the steps done and the values on."""
        if self._progress is not None:
            self._progress.update(step, values)
        if self._callbacks:
            agents = self._run.result(step)
            # Each is called, also where an earlier one ends the run.
            answers = [callback(step, self._run.scores, agents) for callback in self._callbacks]
            self._run.stopped = any(answer is True for answer in answers)


def until_stopped(run: WatchedRun, lengths: Sequence[int]) -> Iterator[int]:
    """Yield the lengths of chunks until a callback has ended the run."""
    for length in lengths:
        if run.stopped:
            return
        yield length
