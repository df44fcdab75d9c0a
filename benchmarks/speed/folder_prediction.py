"""A folder of Parquet files predicted by one worker, by two, in two shards and on Ray.

Each is `nkcme predict` in a new process, on one thread per worker. The bytes of all are compared.
"""

from __future__ import annotations

import hashlib
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.provenance import device_name, write_result
from benchmarks.timing import timed
from nkcme import NKCME
from nkcme.errors import NkcmeError
from nkcme.tables.files import to_frame, write_table

_LEVELS = ",".join(f"0.{i}" for i in range(1, 10))
_FILES = 10
_TRAINING_ROWS = 5000

#: The arguments of each way to predict the folder; those of one way run one after the other.
WAYS: dict[str, list[list[str]]] = {
    "one worker": [[]],
    "two workers": [["--workers", "2"]],
    "two shards": [["--shard", "1/2"], ["--shard", "2/2"]],
    "ray": [["--cluster", "local"]],
}


def main(n_rows: int, ways: list[str], place: Path, out: Path) -> None:
    """Measure everything and write ``scale-predict-DEVICE.json``."""
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        folder = Path(scratch)
        _fit(folder / "model")
        _write_rows(folder / "rows", n_rows)
        measured = {way: _predict(folder, way) for way in ways}
    digests = {result.pop("digest") for result in measured.values()}
    results: dict[str, Any] = {
        "rows": n_rows,
        "quantiles": 9,
        "ways": measured,
        "same_bytes": len(digests) == 1,
    }
    one, two = (measured.get(way, {}).get("seconds") for way in ("one worker", "two workers"))
    if one and two:
        results["share_of_linear"] = one / two / 2
    command = f"python -m benchmarks scale-predict --rows {n_rows} --ways '{','.join(ways)}'"
    print(write_result(f"scale-predict-{device_name()}", command, results, out))


def _table(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Numbers with missing values and a category, and y of known law."""
    columns = {f"x{j}": rng.normal(size=n) for j in range(8)}
    columns["colour"] = rng.choice(["red", "green", "blue"], n)
    noise = np.exp(0.3 * columns["x3"]) * rng.normal(size=n)
    columns["y"] = 2 * columns["x0"] + np.sin(3 * columns["x1"]) + 0.5 * noise
    columns["x4"][rng.random(n) < 0.05] = np.nan
    return columns


def _fit(path: Path) -> None:
    X = _table(_TRAINING_ROWS, np.random.default_rng(0))
    y = X.pop("y")
    NKCME(random_state=0).fit(to_frame(X), y).save(path)


def _write_rows(folder: Path, n_rows: int) -> None:
    folder.mkdir()
    for number in range(_FILES):
        table = _table(n_rows // _FILES, np.random.default_rng(number + 1))
        write_table(to_frame(table), folder / f"part-{number}.parquet")


def _predict(folder: Path, way: str) -> dict[str, Any]:
    """Seconds, the memory of the command without its workers, and a digest of its files."""
    out = folder / way.replace(" ", "-")
    command = [sys.executable, "-m", "nkcme", "predict", str(folder / "model")]
    command += [str(folder / "rows"), "--out", str(out), "--quantiles", _LEVELS]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}

    before = _processor_seconds()
    peaks, seconds = timed(lambda: [_run([*command, *own], environment) for own in WAYS[way]])
    digest = hashlib.sha256()
    for path in sorted(out.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    print(f"{way}: {seconds:.1f} s", flush=True)
    return {
        "seconds": seconds,
        "processor_seconds": _processor_seconds() - before,
        "command_mib": max(peaks),
        "digest": digest.hexdigest(),
    }


def _run(command: list[str], environment: dict[str, str]) -> float:
    """Run a command; its largest resident memory in MiB, from Linux."""
    # Not from getrusage, which counts the memory of the process that starts a command as its own.
    status, peak = "", 0.0
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while process.poll() is None:
            with suppress(OSError):
                status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
            if found := re.search(r"VmHWM:\s+(\d+)", status):
                peak = int(found[1]) / 1024
            time.sleep(0.05)
    if process.returncode:
        raise NkcmeError(f"{' '.join(command)} ended with status {process.returncode}")
    return peak


def _processor_seconds() -> float:
    """Processor time of all finished processes below this one; it ignores other programs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
