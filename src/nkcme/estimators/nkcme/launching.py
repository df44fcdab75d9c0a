"""Starting the processes that fit a model together, on this machine or on a Ray cluster."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import nkcme
from nkcme import errors
from nkcme.errors import NkcmeError, ProcessLostError
from nkcme.estimators.saving import as_json
from nkcme.training.cluster import Cluster

if TYPE_CHECKING:
    from nkcme.estimators.nkcme.estimator import NKCME

#: The names of files that processes leave beside that of their job.
MODEL, HELD_OUT, FAILURE = "model", "held-out.parquet", "failure-{}.json"

#: Runs the processes of a job; what they leave is in a folder then.
Runner = Callable[[dict[str, Any], Path], None]

#: Seconds that processes have to end by themselves once one has failed.
END_SECONDS = 20.0

_POLL_SECONDS = 0.1


class Launched(NamedTuple):
    """What processes that fitted a model together left behind."""

    model: NKCME
    held_out: Any  # a pyarrow table


def fit_in_processes(
    model: NKCME, files: Sequence[Path], target: str, cluster: Cluster, run: Runner
) -> Launched:
    """Fit a model in other processes, which ``run`` starts.

    Raises
    ------
    ProcessLostError
        If a process dies; the others are ended.
    NkcmeError
        What `fit` raises in one of them.
    """
    with tempfile.TemporaryDirectory(prefix="nkcme-") as folder:
        place = Path(folder)
        job = {
            "parameters": {
                name: as_json(name, _absolute(value))
                for name, value in model.get_params(deep=False).items()
            },
            "files": [os.path.abspath(file) for file in files],
            "target": target,
            "processes": cluster.processes,
        }
        run(job, place)
        from pyarrow.parquet import read_table

        held_out = read_table(place / HELD_OUT) if (place / HELD_OUT).exists() else None
        fitted: Any = nkcme.load(place / MODEL)
        return Launched(fitted, held_out)


def _absolute(value: Any) -> Any:
    """A parameter with paths that are the same for every process."""
    return os.path.abspath(value) if isinstance(value, os.PathLike) else value


def free_port(host: str = "127.0.0.1") -> int:
    """A port that nothing listens on."""
    with socket.create_server((host, 0)) as server:
        return int(server.getsockname()[1])


def shares_of_cores(n_processes: int) -> list[list[int]]:
    """The cores of each process on this machine; empty where they cannot be chosen."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    cores = sorted(os.sched_getaffinity(0))
    if n_processes > len(cores):
        return [[cores[i % len(cores)]] for i in range(n_processes)]
    return [cores[i::n_processes] for i in range(n_processes)]


def start_worker(job_file: Path, process_id: int, *, shows_errors: bool) -> subprocess.Popen[bytes]:
    """Start one process. It ends with this one, and does not get its Ctrl-C."""
    root = str(Path(nkcme.__file__).parents[1])
    known = os.environ.get("PYTHONPATH")
    path = root if known is None else os.pathsep.join([root, known])
    return subprocess.Popen(
        [sys.executable, "-m", "nkcme.estimators.nkcme.worker", str(job_file), str(process_id)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=None if shows_errors else subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )


def run_here(n: int, shows_progress: bool, job: dict[str, Any], place: Path) -> None:
    """Run n processes of a job on this machine."""
    here = {"coordinator": f"127.0.0.1:{free_port()}", "cores": shares_of_cores(n)}
    file = place / "job.json"
    file.write_text(json.dumps({**job, **here}), encoding="utf-8")
    running = [start_worker(file, i, shows_errors=shows_progress and i == 0) for i in range(n)]
    try:
        statuses = wait_for_all(running)
    finally:
        for process in running:
            process.kill()
            process.communicate()  # which closes its standard input, too
    raise_failure(place, statuses)


def wait_for_all(running: Sequence[subprocess.Popen[bytes]]) -> list[tuple[int, int | None]]:
    """The number and the exit status of each process, in the order in which they ended.

    Once one has failed, the others have a few seconds to end; None is the status of those that do
    not.
    """
    ended: dict[int, int] = {}
    deadline = float("inf")
    while len(ended) < len(running) and time.monotonic() < deadline:
        for number, process in enumerate(running):
            status = process.poll()
            if number not in ended and status is not None:
                ended[number] = status
                if status:
                    deadline = min(deadline, time.monotonic() + END_SECONDS)
        time.sleep(_POLL_SECONDS)
    late = [(number, None) for number in range(len(running)) if number not in ended]
    return [*ended.items(), *late]


def raise_failure(place: Path, statuses: Sequence[tuple[int, int | None]]) -> None:
    """Raise for processes that failed: what `fit` raised in one of them, or that one died."""
    failed = [(number, status) for number, status in statuses if status != 0]
    if not failed:
        return
    for number, _ in statuses:
        file = place / FAILURE.format(number)
        if file.exists():
            content = json.loads(file.read_text(encoding="utf-8"))
            if content["kind"] != "lost":
                raise _error_of(content)
    # Of the first that ended, unless it ended because another one had.
    own = [(i, s) for i, s in failed if not (place / FAILURE.format(i)).exists()] or failed
    number, status = own[0]
    how = "was lost" if status is None else f"ended with status {status}"
    how = f"ended by signal {-status}" if status is not None and status < 0 else how
    name = f"process {number}{', the coordinator,' if number == 0 else ''}"
    raise ProcessLostError(
        f"{name} of {len(statuses)} {how}, and the others with it; fit again with the same "
        "checkpoint to continue"
    )


def _error_of(content: dict[str, str]) -> NkcmeError:
    kind = getattr(errors, content["kind"], NkcmeError)
    return kind(content["message"])
