"""Several processes that train together: joining them, and what they exchange beside gradients."""

from __future__ import annotations

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
        jax.distributed.initialize(
            coordinator,
            n_processes,
            process_id,
            initialization_timeout=_START_SECONDS,
            shutdown_timeout_seconds=_END_SECONDS,
        )
    except Exception as error:  # of several types, by what failed
        raise TrainingError(
            f"process {process_id} cannot join the {n_processes} processes at {coordinator} "
            f"({' '.join(str(error).split())[:160]}); start all of them, each before it uses JAX"
        ) from error
    host = coordinator.rpartition(":")[0]
    _watch = watch_processes(host, n_processes, process_id, _agreed)
    return _watch


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
