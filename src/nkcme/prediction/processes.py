"""Work on worker processes of this machine, each on one thread."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from nkcme.errors import NkcmeError

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Workers that may die, by a signal or for lack of memory, before the work is given up.
MAX_DEATHS = 5


def run_in_processes(
    work: Callable[[Item], Result], items: Sequence[Item], n_workers: int
) -> Iterator[Result]:
    """``work(item)`` of each item, as they are finished.

    The items of a worker that died are worked on again, so ``work`` must be repeatable.
    """
    left, deaths = dict(enumerate(items)), 0
    while left:
        # Not forked: see nkcme.forking.
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(n_workers, context, initializer=_use_one_thread)
        try:
            futures = {pool.submit(work, item): number for number, item in left.items()}
            for future in as_completed(futures):
                result = future.result()
                del left[futures[future]]
                yield result
        except BrokenProcessPool as error:
            deaths += 1
            if deaths > MAX_DEATHS:
                raise NkcmeError(
                    f"worker processes died {deaths} times, as for lack of memory, with "
                    f"{len(left)} units left; use fewer --workers and start again: what is "
                    "finished stays"
                ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _use_one_thread() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a worker without a traceback
