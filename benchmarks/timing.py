"""Wall-clock time of a piece of work."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

_Result = TypeVar("_Result")


def timed(work: Callable[[], _Result]) -> tuple[_Result, float]:
    """The result of a call and the seconds it took."""
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def seconds_of(work: Callable[[], Any]) -> float:
    """The seconds that a call took."""
    return timed(work)[1]
