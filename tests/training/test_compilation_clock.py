"""The time that programs take to compile, by JAX's own events."""

from __future__ import annotations

import time

import jax
import numpy as np
import pytest

from nkcme.training import compilation_clock
from nkcme.training.compilation_clock import CompilationClock


def test_only_compiling_counts():
    x = np.ones(3, np.float32)
    with CompilationClock() as clock:
        program = jax.jit(lambda x: x + 1.0)
        program(x)
        first = clock.seconds
        time.sleep(0.01)
        program(x)
    assert first > 0.0
    assert clock.seconds == first
    jax.jit(lambda x: x + 2.0)(x)
    assert clock.seconds == first


def test_times_that_overlap_count_once(monkeypatch):
    now = iter([3.0, 4.0, 10.0])
    monkeypatch.setattr(compilation_clock.time, "perf_counter", lambda: next(now))
    with CompilationClock() as clock:
        for seconds in (2.0, 2.0, 1.0):  # 1 to 3, 2 to 4, 9 to 10
            compilation_clock._on_event(compilation_clock._EVENTS[0], seconds)
        compilation_clock._on_event("/jax/something/else", 1.0)
    assert clock.seconds == pytest.approx(4.0)
