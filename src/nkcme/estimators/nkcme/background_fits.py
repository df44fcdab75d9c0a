"""Calls that run in threads while the caller does something else.

After threads nothing remains: no processes, semaphores or folders, neither after a fit nor after
the process was killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

from sklearn import config_context, get_config
from threadpoolctl import threadpool_limits

Job = TypeVar("Job")
Result = TypeVar("Result")


class BackgroundFits(Generic[Result]):
    """The results of a function for many jobs, which threads compute meanwhile.

    Each job has one thread of OpenMP and of linear algebra, because the threads of several jobs
    would wait for each other, and the caller's configuration of scikit-learn.
    """

    def __init__(self, work: Callable[[Job], Result], jobs: Iterable[Job], n_threads: int):
        config = get_config()

        def configured(job: Job) -> Result:
            with config_context(**config):
                return work(job)

        # Linear algebra counts threads for the process, so the number is restored at the end;
        # OpenMP counts them for each thread that calls it.
        self._limits = threadpool_limits(1, "blas")
        pool = ThreadPoolExecutor(n_threads, "nkcme-fit", threadpool_limits, (1, "openmp"))
        self._futures: list[Future[Result]] = [pool.submit(configured, job) for job in jobs]
        pool.shutdown(wait=False)  # each thread ends when no job is left

    def results(self) -> list[Result]:
        """Wait for all results, in the order of the jobs; the first error ends the rest."""
        try:
            return [future.result() for future in self._futures]
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Start no more jobs, and wait for those that are running."""
        for future in self._futures:
            future.cancel()
        wait(self._futures)
        self._limits.restore_original_limits()
