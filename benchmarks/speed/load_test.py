"""A load test of `nkcme serve` on the loopback interface: every answer is compared with the right
one."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_HOST = "127.0.0.1"


class Case(NamedTuple):
    """A body to send, and the answer that belongs to it."""

    body: bytes
    answer: dict[str, Any]


@contextmanager
def served(model: Path, workers: int, limit: float = 120.0) -> Iterator[int]:
    """The port of a server of the model, which is stopped at the end."""
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "nkcme", "serve", str(model), "--port", str(port)]
    with tempfile.TemporaryFile("w+") as notes:
        server = subprocess.Popen([*command, "--workers", str(workers)], stderr=notes)
        try:
            end = time.monotonic() + limit
            while not _answers(port):
                if server.poll() is not None or time.monotonic() > end:
                    notes.seek(0)
                    raise RuntimeError(
                        f"the server did not start (status {server.poll()}): {notes.read()[-500:]}"
                    )
                time.sleep(0.05)
            yield port
        finally:
            server.terminate()
            server.wait(30)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{_HOST}:{port}/health", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, TimeoutError):
        return False


def load_test(
    port: int,
    cases: list[Case],
    *,
    n_requests: int,
    n_clients: int,
    per_second: float | None,
    limit: float,
) -> dict[str, Any]:
    """Send requests and compare the answers.

    Parameters
    ----------
    per_second : float or None
        The rate at which requests are due, and from which their latency counts. None: each client
        sends the next request once it has the answer.
    limit : float
        Seconds after which requests without an answer count as lost.
    """
    return asyncio.run(_load(port, cases, n_requests, n_clients, per_second, limit))


async def _load(
    port: int,
    cases: list[Case],
    n_requests: int,
    n_clients: int,
    per_second: float | None,
    limit: float,
) -> dict[str, Any]:
    latencies: list[float] = []
    wrong = 0
    start = time.perf_counter()

    async def client(number: int) -> None:
        nonlocal wrong
        reader, writer = await asyncio.open_connection(_HOST, port)
        try:
            for i in range(number, n_requests, n_clients):
                begun = time.perf_counter()
                if per_second is not None:
                    due = start + i / per_second
                    await asyncio.sleep(max(due - begun, 0.0))
                    begun = due
                case = cases[i % len(cases)]
                writer.write(_request(case.body))
                status, content = await _response(reader)
                latencies.append(time.perf_counter() - begun)
                wrong += status != 200 or not _same(json.loads(content), case.answer)
        finally:
            writer.close()

    clients = [asyncio.create_task(client(number)) for number in range(n_clients)]
    _, unfinished = await asyncio.wait(clients, timeout=limit)
    for task in unfinished:
        task.cancel()
    seconds = time.perf_counter() - start
    failed = [task for task in clients if task not in unfinished and task.exception() is not None]
    return {
        "requests": n_requests,
        "clients": n_clients,
        "due_per_second": per_second,
        "answered": len(latencies),
        "lost": n_requests - len(latencies),
        "wrong": wrong,
        "failed_clients": len(failed),
        "requests_per_second": len(latencies) / seconds,
        "latency_ms": {
            name: 1e3 * float(np.quantile(latencies, level))
            for name, level in (("median", 0.5), ("p99", 0.99), ("largest", 1.0))
        },
    }


def _request(body: bytes) -> bytes:
    head = f"POST /predict HTTP/1.1\r\nHost: {_HOST}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def _response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length:")[2].partition("\r\n")[0])
    return int(head.split()[1]), await reader.readexactly(length)


def _same(found: Any, wanted: Any) -> bool:
    """Whether two answers agree; numbers to the last digits."""
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict)
            and found.keys() == wanted.keys()
            and all(_same(found[key], value) for key, value in wanted.items())
        )
    if isinstance(wanted, list):
        same_length = isinstance(found, list) and len(found) == len(wanted)
        return same_length and all(map(_same, found, wanted))
    if isinstance(wanted, float):
        return isinstance(found, float) and math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-12)
    return bool(found == wanted)
