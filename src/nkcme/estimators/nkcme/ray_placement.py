"""The processes of a fit as actors of a Ray cluster, one on each core that Ray gives.

Ray only places and starts them: each actor runs the same worker as on one machine, and JAX joins
these. (Ray's own trainer for JAX does not join processes on CPUs.)
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from nkcme.estimators.nkcme.launching import (
    END_SECONDS,
    free_port,
    raise_failure,
    start_worker,
)
from nkcme.ray_tasks import connected
from nkcme.training.cluster import Cluster

_POLL_SECONDS = 1.0


class Left(NamedTuple):
    """What a worker left behind: its exit status, and files by their paths."""

    status: int
    files: dict[str, bytes]


class PlacedWorker:
    """A worker on some node of the cluster."""

    def coordinator(self) -> str:
        """The address that the other workers find this one at, with a port that is free."""
        with connected("auto") as ray:
            host = str(ray.util.get_node_ip_address())
        return f"{host}:{free_port(host)}"

    def run(self, job: dict[str, Any], process_id: int) -> Left:
        """Run one process until it ends."""
        with tempfile.TemporaryDirectory(prefix="nkcme-") as folder:
            place = Path(folder)
            (place / "job.json").write_text(json.dumps(job), encoding="utf-8")
            process = start_worker(place / "job.json", process_id, shows_errors=False)
            status = process.wait()
            process.communicate()
            files = [path for path in place.rglob("*") if path.is_file()]
            return Left(status, {str(path.relative_to(place)): path.read_bytes() for path in files})


def run_on_ray(cluster: Cluster, job: dict[str, Any], place: Path) -> None:
    """Run the processes of a job on a Ray cluster; what they leave is written to ``place``.

    Raises
    ------
    ProcessLostError
        If a process or its node is lost; the others are ended.
    """
    assert cluster.ray is not None
    with connected(cluster.ray) as ray:
        placed = ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")(PlacedWorker)
        actors = [placed.remote() for _ in range(cluster.processes)]
        try:
            job = {**job, "coordinator": ray.get(actors[0].coordinator.remote()), "cores": []}
            running = {actor.run.remote(job, i): i for i, actor in enumerate(actors)}
            statuses = _wait_for_all(ray, running, place)
        finally:
            if ray.is_initialized():  # else Ray would start a cluster here, to end them on
                for actor in actors:
                    ray.kill(actor)
    raise_failure(place, statuses)


def _wait_for_all(ray: Any, running: dict[Any, int], place: Path) -> list[tuple[int, int | None]]:
    """The number and the exit status of each process, None for those that were lost."""
    statuses: list[tuple[int, int | None]] = []
    deadline = float("inf")
    while running and time.monotonic() < deadline:
        finished, _ = ray.wait(list(running), timeout=_POLL_SECONDS)
        for reference in finished:
            number = running.pop(reference)
            try:
                left = ray.get(reference)
            except ray.exceptions.RayActorError:
                left = None
            statuses.append((number, None if left is None else left.status))
            if left is None or left.status:
                deadline = min(deadline, time.monotonic() + END_SECONDS)
            for name, content in ({} if left is None else left.files).items():
                file = place / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
    return statuses + [(number, None) for number in running.values()]
