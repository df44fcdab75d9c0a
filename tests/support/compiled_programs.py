"""The programs that JAX compiles within a context."""

from __future__ import annotations

from functools import cache
from typing import Any, Self

import jax

_running: list[CompiledPrograms] = []


class CompiledPrograms:
    """``names`` are those of the programs that were compiled, or read from the cache on disk."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __enter__(self) -> Self:
        _listen()
        _running.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _running.remove(self)


@cache
def _listen() -> None:
    def on_event(event: str, duration_secs: float, **details: Any) -> None:
        if event.endswith("/backend_compile_duration"):
            for one in _running:
                one.names.append(str(details.get("fun_name", "?")))

    jax.monitoring.register_event_duration_secs_listener(on_event)
