"""How long programs take to compile: the part of a fit that a cache on disk can save."""

from __future__ import annotations

import threading
import time
from functools import cache
from types import TracebackType
from typing import Any

#: The events of JAX that make a program: tracing, lowering, and compiling or reading it from disk.
_EVENTS = (
    "/jax/core/compile/jaxpr_trace_duration",
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)

_lock = threading.Lock()
_running: list[CompilationClock] = []


class CompilationClock:
    """The seconds within its context in which at least one thread was making a program.

    Programs of all threads of the process count, also those of other fits at the same time.
    """

    def __init__(self) -> None:
        self._intervals: list[tuple[float, float]] = []

    def __enter__(self) -> CompilationClock:
        _listen()
        with _lock:
            _running.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with _lock:
            _running.remove(self)

    @property
    def seconds(self) -> float:
        """The length of the union of all intervals: threads overlap, and events contain others."""
        total, until = 0.0, float("-inf")
        for start, end in sorted(self._intervals):
            total += max(end - max(start, until), 0.0)
            until = max(until, end)
        return total


@cache
def _listen() -> None:
    """Listen to JAX's events, once for the process: JAX has no way to end it."""
    import jax  # slow to import, and no part of what imports this module

    jax.monitoring.register_event_duration_secs_listener(_on_event)


def _on_event(event: str, duration_secs: float, **_: Any) -> None:
    if event in _EVENTS:
        now = time.perf_counter()
        with _lock:
            for clock in _running:
                clock._intervals.append((now - duration_secs, now))
