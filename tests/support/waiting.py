"""Waiting for an event of another process or thread."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], limit: float = 300.0) -> None:
    """Return once the condition holds; the limit is generous, for machines that are busy."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, f"the condition did not hold within {limit:g} s"
        time.sleep(0.01)
