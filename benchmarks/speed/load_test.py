"""A load test of `nkcme serve` on the loopback interface: every answer is compared with the right
one."""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import math
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

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
    loop = asyncio.get_running_loop()
    requests = [_request(case.body) for case in cases]
    clients: list[_Client] = []
    for number in range(n_clients):
        own = range(number, n_requests, n_clients)
        _, client = await loop.create_connection(
            functools.partial(_Client, own, requests, per_second), _HOST, port
        )
        clients.append(client)
    # A collection of garbage here would look like a slow answer.
    gc.collect()
    gc.disable()
    try:
        start = loop.time()
        for client in clients:
            client.begin(start)
        await asyncio.wait([client.done for client in clients], timeout=limit)
        seconds = loop.time() - start
    finally:
        gc.enable()
    for client in clients:
        client.close()
    answers = [answer for client in clients for answer in client.answers]
    latencies = [answer.seconds for answer in answers]
    # Not while requests are sent: clients and server share the cores.
    right = [answer.is_right(cases[answer.number % len(cases)]) for answer in answers]
    return {
        "requests": n_requests,
        "clients": n_clients,
        "due_per_second": per_second,
        "answered": len(answers),
        "lost": n_requests - len(answers),
        "wrong": right.count(False),
        "failed_clients": sum(client.failed for client in clients),
        "requests_per_second": len(answers) / seconds,
        "latency_ms": {
            name: 1e3 * float(np.quantile(latencies, level))
            for name, level in (("median", 0.5), ("p99", 0.99), ("largest", 1.0))
        },
    }


class _Answer(NamedTuple):
    """What came back for a request, and after how many seconds."""

    number: int
    seconds: float
    content: bytes

    def is_right(self, case: Case) -> bool:
        head, _, body = self.content.partition(_END)
        return int(head.split()[1]) == 200 and _same(json.loads(body), case.answer)


_END = b"\r\n\r\n"


class _Client(asyncio.Protocol):
    """One connection that sends its requests one after the other.

    It does as little as possible between them: no streams, no tasks, no reading of answers.
    """

    def __init__(self, numbers: Iterable[int], requests: list[bytes], per_second: float | None):
        self._numbers, self._requests, self._per_second = iter(numbers), requests, per_second
        self._loop = asyncio.get_running_loop()
        self._start = self._due = 0.0
        self._number = -1
        self._received = b""
        self.done: asyncio.Future[None] = self._loop.create_future()
        self.answers: list[_Answer] = []
        self.failed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def begin(self, start: float) -> None:
        """Send the first request when it is due."""
        self._start = start
        self._next()

    def close(self) -> None:
        self._transport.close()

    def _next(self) -> None:
        number = next(self._numbers, None)
        if number is None:
            self.done.set_result(None)
            return
        self._number, self._due = number, self._loop.time()
        if self._per_second is None:
            self._send()
        else:
            self._due = self._start + number / self._per_second
            self._loop.call_at(self._due, self._send)

    def _send(self) -> None:
        self._transport.write(self._requests[self._number % len(self._requests)])

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(_END)
        if not end:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        seconds = self._loop.time() - self._due
        self.answers.append(_Answer(self._number, seconds, self._received))
        self._received = b""
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.failed = True
            self.done.set_result(None)


def _request(body: bytes) -> bytes:
    head = f"POST /predict HTTP/1.1\r\nHost: {_HOST}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _same(found: Any, wanted: Any) -> bool:
    """Whether two answers agree; numbers to the rounding of networks in single precision, which
    depends on the rows that are predicted together."""
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
        return isinstance(found, float) and math.isclose(found, wanted, rel_tol=1e-5, abs_tol=1e-5)
    return bool(found == wanted)
