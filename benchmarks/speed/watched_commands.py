"""A command whose processes are watched: their memory, and one of them is killed if wanted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from nkcme.errors import NkcmeError

#: What the command lines of worker processes contain, unlike those of their helpers.
_WORKER = "spawn_main"


def run_watched(command: list[str], environment: dict[str, str], kills: Path | None) -> float:
    """Run a command; the largest resident memory in MiB of any of its processes, from Linux.

    With ``kills`` one of its workers is killed once that folder has a file.
    """
    # Not from getrusage, which counts the memory of the process that starts a command as its own.
    peak, killed = 0.0, kills is None
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while process.poll() is None:
            own = list(_processes(process.pid))
            peak = max([peak, *map(_peak_mib, own)])
            if not killed and kills is not None and any(kills.glob("*.parquet")):
                killed = _kill_worker(own)
            time.sleep(0.05)
    if process.returncode:
        raise NkcmeError(f"{' '.join(command)} ended with status {process.returncode}")
    if not killed:
        raise NkcmeError("the command ended before a worker was killed; predict more rows")
    return peak


def _processes(number: int) -> Iterator[int]:
    """A process and all that it and they have started."""
    yield number
    with suppress(OSError):
        for task in Path(f"/proc/{number}/task").iterdir():
            for child in (task / "children").read_text(encoding="utf-8").split():
                yield from _processes(int(child))


def _peak_mib(number: int) -> float:
    with suppress(OSError):
        status = Path(f"/proc/{number}/status").read_text(encoding="utf-8")
        if found := re.search(r"VmHWM:\s+(\d+)", status):
            return int(found[1]) / 1024
    return 0.0


def _kill_worker(processes: list[int]) -> bool:
    """Kill the last worker among the processes of a command, if there is one."""
    for number in reversed(processes):
        with suppress(OSError):
            if _WORKER in Path(f"/proc/{number}/cmdline").read_text(encoding="utf-8"):
                os.kill(number, signal.SIGKILL)
                return True
    return False
