"""Starting the processes that fit a model together, on this machine or on a Ray cluster."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import nkcme
from nkcme.estimators.nkcme.worker import HELD_OUT, MODEL
from nkcme.estimators.nkcme.worker_processes import (
    free_port,
    raise_failure,
    shares_of_cores,
    start_worker,
    wait_for_all,
)
from nkcme.estimators.saving import as_json
from nkcme.training.cluster import Cluster
from nkcme.training.progress import wants_progress

if TYPE_CHECKING:
    from nkcme.estimators.nkcme.estimator import NKCME


class Launched(NamedTuple):
    """What processes that fitted a model together left behind."""

    model: NKCME
    held_out: Any  # a pyarrow table


def fit_in_processes(
    model: NKCME, files: Sequence[Path], target: str, cluster: Cluster
) -> Launched:
    """Fit a model in other processes.

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
        if cluster.ray is None:
            _run_here(job, place, cluster.processes, wants_progress(model.verbose))
        else:
            from nkcme.estimators.nkcme.ray_placement import run_on_ray

            run_on_ray(job, place, cluster)
        from pyarrow.parquet import read_table

        held_out = read_table(place / HELD_OUT) if (place / HELD_OUT).exists() else None
        fitted: Any = nkcme.load(place / MODEL)
        return Launched(fitted, held_out)


def _absolute(value: Any) -> Any:
    """A parameter with paths that are the same for every process."""
    return os.path.abspath(value) if isinstance(value, os.PathLike) else value


def _run_here(job: dict[str, Any], place: Path, n: int, shows_progress: bool) -> None:
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
