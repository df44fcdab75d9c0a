"""Checkpoints in memory and a progress listener that presses Ctrl-C, for tests of both loops."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np


class Killed(Exception):
    """Stands for the death of the process."""


class MemoryCheckpoint:
    """A checkpoint that keeps everything it is given, and a copy to compare it with.

    ``start`` is what `load` returns; after ``die_after`` saves it raises `Killed`.
    """

    def __init__(self, start: Any = None, die_after: int | None = None):
        self.start, self.die_after = start, die_after
        self.saved: list[tuple[dict[str, Any], dict[str, np.ndarray]]] = []
        self.copies: list[dict[str, np.ndarray]] = []

    def __str__(self) -> str:
        return "memory"

    def load(self) -> Any:
        return self.start

    def save(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.saved.append((config, arrays))
        self.copies.append({name: array.copy() for name, array in arrays.items()})
        if len(self.saved) == self.die_after:
            raise Killed


class Listener:
    """A progress listener that presses Ctrl-C after a given number of updates."""

    def __init__(self, press_after: int | None = None, times: int = 1):
        self.press_after, self.times = press_after, times
        self.updates: list[tuple[int, dict[str, float]]] = []

    @property
    def steps(self) -> list[int]:
        return [step for step, _ in self.updates]

    def update(self, step: int, values: dict[str, float]) -> None:
        self.updates.append((step, values))
        if len(self.updates) == self.press_after:
            for _ in range(self.times):
                signal.raise_signal(signal.SIGINT)
