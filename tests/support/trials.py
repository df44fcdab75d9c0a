"""Trivial trials for a cluster of two nodes of which one is lost."""

import os
import time
from pathlib import Path

from nkcme.errors import NkcmeError
from support.waiting import wait_until


def square_or_hang(trial: tuple[int, str]) -> dict[str, int]:
    """The square of a number; on a node other than the head, hang until the node is lost.

    The head waits until another node hangs.
    """
    import ray

    number, folder = trial
    context = ray.get_runtime_context()
    home = Path(folder)
    if context.get_node_id() != (home / "head").read_text():
        (home / f"hangs-{number}").touch()
        while True:
            time.sleep(0.1)
    wait_until(lambda: list(home.glob("hangs-*")), limit=60)
    return {"run": number, "square": number**2, "process": os.getpid()}


def refuse(number: int) -> int:
    raise NkcmeError(f"number {number} is refused")
