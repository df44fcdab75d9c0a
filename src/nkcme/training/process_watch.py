"""Finding out that a process of a run has died, and which.

A process whose partner has died waits for it in the middle of a sum. So each keeps a connection to
the first one, over which both send a sign of life every few seconds. A connection that closes, or
stays silent, is that of a process that is gone; the first process names it to all others.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable

#: Seconds between signs of life, and without one until a process counts as gone.
SIGN_SECONDS = 3.0
LOST_SECONDS = 30.0

#: Seconds in which the main thread may end by itself after a loss was noticed.
_GRACE_SECONDS = 10.0

_ALIVE, _DONE, _LOST = 0, 1, 2
_MESSAGE = struct.Struct("<BI")  # what, and the number of a process


class ProcessWatch:
    """The connections of one process to those it must know to be alive.

    Parameters
    ----------
    n_processes, process_id : int
    connections : dict of int to socket
        By the number of the process: of the first to all others, of others to the first.
    """

    def __init__(self, n_processes: int, process_id: int, connections: dict[int, socket.socket]):
        self.n_processes, self.process_id = n_processes, process_id
        self._connections = connections
        self._lock = threading.Lock()
        self._lost = threading.Event()
        self._ended = threading.Event()
        self._who = -1
        for number, connection in connections.items():
            connection.settimeout(LOST_SECONDS)
            self._start(self._listen, number, connection)
        self._start(self._sign)

    def lost(self, seconds: float = 0.0) -> str | None:
        """One line on the process that was lost, waited for so many seconds; None if none was."""
        if not self._lost.wait(seconds):
            return None
        name = "process 0, the coordinator," if self._who == 0 else f"process {self._who}"
        return (
            f"{name} of {self.n_processes} has died; fit again with the same checkpoint to continue"
        )

    def end(self) -> None:
        """Let the others know that this process ends by itself."""
        self._ended.set()
        self._send(_DONE, self.process_id)

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True, name="nkcme-watch").start()

    def _sign(self) -> None:
        while not self._lost.is_set() and not self._ended.wait(SIGN_SECONDS):
            self._send(_ALIVE, self.process_id)

    def _send(self, what: int, number: int) -> None:
        with self._lock:
            for connection in self._connections.values():
                try:
                    connection.sendall(_MESSAGE.pack(what, number))
                except OSError:
                    continue  # its listener notices

    def _listen(self, number: int, connection: socket.socket) -> None:
        while True:
            try:
                message = _received(connection, _MESSAGE.size)
            except OSError:
                message = b""
            if not message:
                return self._note(number)
            what, who = _MESSAGE.unpack(message)
            if what == _DONE:
                return None
            if what == _LOST:
                return self._note(who)

    def _note(self, number: int) -> None:
        """A process is lost: let the others know, and end this one if it does not end itself."""
        with self._lock:
            if self._lost.is_set() or self._ended.is_set():
                return
            self._who = number
            self._lost.set()
        self._send(_LOST, number)
        time.sleep(_GRACE_SECONDS)
        if not self._ended.is_set():
            print(f"nkcme: {self.lost()}", file=sys.stderr, flush=True)
            os._exit(1)


def watch_processes(
    host: str, n_processes: int, process_id: int, agreed: Callable[[int], int]
) -> ProcessWatch:
    """Connect a process with the others, and watch them.

    ``agreed(port)`` returns the port of the first process to all of them.
    """
    if process_id:
        port = agreed(0)
        connection = socket.create_connection((host, port), LOST_SECONDS)
        connection.sendall(_MESSAGE.pack(_ALIVE, process_id))
        return ProcessWatch(n_processes, process_id, {0: connection})
    with socket.create_server((host, 0)) as server:
        server.settimeout(LOST_SECONDS)
        agreed(server.getsockname()[1])
        connections: dict[int, socket.socket] = {}
        while len(connections) < n_processes - 1:
            connection, _ = server.accept()
            connection.settimeout(LOST_SECONDS)
            connections[_MESSAGE.unpack(_received(connection, _MESSAGE.size))[1]] = connection
    return ProcessWatch(n_processes, process_id, connections)


def _received(connection: socket.socket, size: int) -> bytes:
    """So many bytes, or none where the connection was closed."""
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            return b""
        data += more
    return data
