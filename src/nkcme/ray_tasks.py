"""Work on a Ray cluster. The only module that imports Ray."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from nkcme.errors import NkcmeError

Item = TypeVar("Item")
Result = TypeVar("Result")

#: How often Ray starts a task again whose worker or node was lost.
MAX_RETRIES = 5

#: How long the head of a cluster may take to answer.
ANSWER_SECONDS = 10


def run_on_ray(
    work: Callable[[Item], Result], items: Sequence[Item], address: str
) -> Iterator[Result]:
    """``work(item)`` of each item, as they are finished, each on one core of a cluster.

    The items of a worker or node that was lost are worked on again, so ``work`` must be
    repeatable. An error of ``work`` is raised here, and what was not begun is cancelled.

    Parameters
    ----------
    work : callable
        All nodes must be able to import it.
    items : sequence
    address : str
        As in ``ray://head:10001``, ``head:6379``, or ``auto`` for the cluster of this machine.
    """
    with connected(address) as ray:
        task = ray.remote(num_cpus=1, max_retries=MAX_RETRIES)(_call)
        waiting = [task.remote(work, item) for item in items]
        try:
            while waiting:
                finished, waiting = ray.wait(waiting)
                for reference in finished:
                    yield _result(ray, reference)
        finally:
            if ray.is_initialized():  # else Ray would start a cluster here, to cancel them on
                for reference in waiting:
                    ray.cancel(reference)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """The module ``ray``, connected to a cluster; a connection that was there is used and kept."""
    try:
        import ray
    except ImportError as error:
        raise NkcmeError(
            "--cluster needs Ray, which is not installed; run pip install 'nkcme[ray]'"
        ) from error
    if ray.is_initialized():
        yield ray
        return
    _need_answer(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        raise NkcmeError(f"no Ray cluster answers at {address}: {_reason(error)}") from error
    try:
        yield ray
    except ConnectionError as error:
        if ray.is_initialized():
            raise
        raise NkcmeError(
            f"the connection to the Ray cluster at {address} was lost ({_reason(error)}); start "
            "again: what is finished, or in a checkpoint, stays"
        ) from error
    finally:
        ray.shutdown()


def _need_answer(address: str) -> None:
    """Refuse an address where nothing listens, for which Ray itself waits for many minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        if address.startswith("ray://"):
            raise NkcmeError(f"the address of a Ray client must be ray://HOST:PORT; got {address}")
        return  # "auto" and "local"
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise NkcmeError(
            f"no Ray cluster answers at {address} ({error}); check the address of its head"
        ) from error


def _call(work: Callable[[Item], Result], item: Item) -> Result:
    """Ray names a task by its function, which must be one of a module and not a partial one."""
    return work(item)


def _result(ray: Any, reference: Any) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:  # its text is the traceback of the worker
        raise error.cause from error
    except ray.exceptions.RayError as error:
        raise NkcmeError(
            f"a task was lost {MAX_RETRIES + 1} times, the last with: {_reason(error)}; start "
            "again: what is finished stays"
        ) from error


def _reason(error: Exception) -> str:
    """One line of an error of Ray: the first, or the last where a traceback follows."""
    lines = (str(error).strip() or type(error).__name__).splitlines()
    return lines[-1 if lines[0].endswith(":") else 0][:200]
