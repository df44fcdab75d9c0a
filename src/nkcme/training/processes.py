"""Several processes that train together: joining them, and what they exchange beside gradients."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import jax
import numpy as np

from nkcme.errors import TrainingError
from nkcme.training.process_watch import ProcessWatch, watch_processes

#: Seconds that processes wait for each other to start, and to end.
_START_SECONDS = 120
_END_SECONDS = 10

#: The watch of this process, once it has joined others.
_watch: ProcessWatch | None = None


def join(coordinator: str, n_processes: int, process_id: int) -> ProcessWatch:
    """Join the processes of a run, and watch them from now on; at a second call, nothing changes.

    Raises
    ------
    TrainingError
        If JAX was used before, or the others do not start.
    """
    global _watch
    if _watch is not None:
        return _watch
    try:
        with threads_that_do_not_preempt():
            jax.distributed.initialize(
                coordinator,
                n_processes,
                process_id,
                initialization_timeout=_START_SECONDS,
                shutdown_timeout_seconds=_END_SECONDS,
            )
            jax.devices()  # starts the thread that messages arrive in
    except Exception as error:  # of several types, by what failed
        raise TrainingError(
            f"process {process_id} cannot join the {n_processes} processes at {coordinator} "
            f"({' '.join(str(error).split())[:160]}); start all of them, each before it uses JAX"
        ) from error
    host = coordinator.rpartition(":")[0]
    _watch = watch_processes(host, n_processes, process_id, _agreed)
    return _watch


@contextmanager
def threads_that_do_not_preempt() -> Iterator[None]:
    """Threads started within do not interrupt others of their core, on Linux.

    The thread in which messages of other processes arrive (that of gloo, on CPUs) polls without a
    pause while another thread sends. Where both share a core it interrupted the sender, and polled
    until its slice of time ended: 2.6 ms for a message that takes 0.1 ms.
    """
    if not hasattr(os, "SCHED_BATCH") or os.sched_getscheduler(0) != os.SCHED_OTHER:
        yield
        return
    with suppress(OSError):  # a container may forbid it, and messages are slower
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _agreed(port: int) -> int:
    """The number that the first process has."""
    return int(from_first(np.array(port, np.int32)))


def is_first() -> bool:
    """Whether this is the process that writes files."""
    return jax.process_index() == 0


def from_first(array: np.ndarray) -> np.ndarray:
    """The array of the first process; those of the others have its shape and type."""
    if jax.process_count() == 1:
        return array
    from jax.experimental.multihost_utils import broadcast_one_to_all

    return np.asarray(broadcast_one_to_all(array))


def gathered(data: bytes) -> list[bytes]:
    """The bytes of every process, in their order."""
    if jax.process_count() == 1:
        return [data]
    from jax.experimental.multihost_utils import process_allgather

    sizes = np.asarray(process_allgather(np.array(len(data), np.int32)))
    padded = np.zeros(int(sizes.max()), np.uint8)
    padded[: len(data)] = np.frombuffer(data, np.uint8)
    rows: Any = np.asarray(process_allgather(padded))
    return [row[:size].tobytes() for row, size in zip(rows, sizes.tolist(), strict=True)]
