"""A folder of Parquet files predicted by one worker, by two, in two shards, on Ray and by Spark.

Each is a command in a new process, on one thread per worker. The rows of all are compared, and the
bytes of the files of those that are `nkcme predict`.
"""

from __future__ import annotations

import hashlib
import os
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow.parquet import ParquetFile

from benchmarks.provenance import device_name, write_result
from benchmarks.speed.watched_commands import run_watched
from benchmarks.timing import timed
from nkcme import NKCME
from nkcme.tables.files import to_frame, write_table
from nkcme.tables.row_hash import row_hash

_LEVELS = ",".join(f"0.{i}" for i in range(1, 10))
_FILES = 10
_TRAINING_ROWS = 5000

#: The way in which a worker of two is killed, and that of Spark, which writes files of its own.
_KILLED, _SPARK = "killed worker", "spark"

#: The options of each way to predict the folder; those of one way run one after the other.
WAYS: dict[str, list[list[str]]] = {
    "one worker": [[]],
    "two workers": [["--workers", "2"]],
    "two shards": [["--shard", "1/2"], ["--shard", "2/2"]],
    "ray": [["--cluster", "local"]],
    _KILLED: [["--workers", "2"]],
    _SPARK: [[]],
}


def main(n_rows: int, ways: list[str], place: Path, out: Path) -> None:
    """Measure everything and write ``scale-predict-DEVICE.json``."""
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        folder = Path(scratch)
        _fit(folder / "model")
        _write_rows(folder / "rows", n_rows)
        measured = {way: _predict(folder, way) for way in ways}
    bytes_of_files = {measured[way].pop("files") for way in ways if way != _SPARK}
    results: dict[str, Any] = {
        "rows": n_rows,
        "quantiles": 9,
        "ways": measured,
        "same_bytes": len(bytes_of_files) <= 1,
        "same_rows": len({result.pop("digest") for result in measured.values()}) == 1
        and all(result["rows"] == n_rows for result in measured.values()),
    }
    if _SPARK in ways:
        measured[_SPARK].pop("files")
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
    """Seconds, memory, and digests of the files and of the rows."""
    out = folder / way.replace(" ", "-")
    places = [str(folder / "model"), str(folder / "rows")]
    command = [sys.executable, "-m", "nkcme", "predict", *places, "--out", str(out)]
    command += ["--quantiles", _LEVELS]
    if way == _SPARK:
        command = [sys.executable, "-m", "benchmarks.speed.spark_prediction", *places]
        command += [str(out), _LEVELS]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    kills = out if way == _KILLED else None

    before = _processor_seconds()
    peaks, seconds = timed(
        lambda: [run_watched([*command, *own], environment, kills) for own in WAYS[way]]
    )
    used = _processor_seconds() - before
    n_rows, digest = _digest_of_rows(out)
    files = hashlib.sha256()
    for path in sorted(out.glob("*.parquet")):
        files.update(path.name.encode() + path.read_bytes())
    print(f"{way}: {seconds:.1f} s", flush=True)
    return {
        "rows": n_rows,
        "seconds": seconds,
        "processor_seconds": used,
        "largest_process_mib": max(peaks),
        "files": files.hexdigest(),
        "digest": digest,
    }


def _digest_of_rows(folder: Path) -> tuple[int, int]:
    """The number of rows in the files of a folder, and the sum of their hashes: it does not depend
    on their order, and a row that is lost or doubled changes it."""
    n_rows, total = 0, 0
    for path in sorted(folder.glob("*.parquet")):
        with ParquetFile(path) as opened:
            for batch in opened.iter_batches():
                hashed = np.zeros(batch.num_rows, np.uint64)
                for column in batch.columns:
                    hashed = row_hash(hashed ^ column.to_numpy().view(np.uint64), 0)
                n_rows += batch.num_rows
                total += int(hashed.sum())
    return n_rows, total % 2**64


def _processor_seconds() -> float:
    """Processor time of all finished processes below this one; it ignores other programs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
