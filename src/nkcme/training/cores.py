"""How many cores this process may use: fewer than the machine has, where something limits it.

More threads than cores make each other wait, and where a container has a quota the system stops
all of them once it is used up.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")


def available_cores() -> int:
    """Count the cores that this process may use, at least one.

    Each of these is a limit: the cores that ``taskset`` leaves, the quota of a container,
    ``OMP_NUM_THREADS``, and joblib's context (``parallel_config(n_jobs=2)``). A worker process of
    joblib has its share of the cores in ``OMP_NUM_THREADS``; a worker thread has one core.
    """
    affinity = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    limits = [len(affinity) or os.cpu_count() or 1, *_quotas()]
    threads = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]  # a list is by nesting level
    if threads.isdecimal() and int(threads):
        limits.append(int(threads))
    limits += _jobs_of_joblib(bool(threads))
    return max(1, min(limits))


def _jobs_of_joblib(threads_are_given: bool) -> Iterator[int]:
    """The number of jobs in joblib's context, where there is one.

    Without a context the number is one, as it is in worker threads. In worker processes it is one
    too, though each has several cores: there the environment has the limit.
    """
    joblib = sys.modules.get("joblib")  # without it there is no context
    if joblib is None:
        return
    backend, n_jobs = joblib.parallel.get_active_backend()
    n_jobs = backend.effective_n_jobs(n_jobs)
    if n_jobs > 1 or (backend.nesting_level and not threads_are_given):
        yield n_jobs


def _quotas() -> Iterator[int]:
    """The cores that control groups grant to this process and to the groups it belongs to."""
    try:
        lines = _OWN_GROUPS.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):  # not on Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        own = PurePosixPath(path.lstrip("/"))
        for group in (own, *own.parents):
            quota = _quota_of_version_1(group) if controllers else _quota_of_version_2(group)
            if quota is not None:
                yield quota


def _quota_of_version_2(group: PurePosixPath) -> int | None:
    return _cores(_words(_CONTROL_GROUPS / group / "cpu.max"))


def _quota_of_version_1(group: PurePosixPath) -> int | None:
    files = (_CONTROL_GROUPS / "cpu" / group / f"cpu.cfs_{name}_us" for name in ("quota", "period"))
    return _cores([word for file in files for word in _words(file)])


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return []


def _cores(words: list[str]) -> int | None:
    """Cores from a quota and a period; None without a limit, which is "max" or negative."""
    if len(words) != 2 or not all(word.isdecimal() and int(word) for word in words):
        return None
    return math.ceil(int(words[0]) / int(words[1]))
