"""The runtime beside the full library: start, one row, a million rows; and the server under load.

Each is measured in a new process, which has only the libraries that it imports.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.provenance import device_name, write_result
from benchmarks.speed.load_test import Case, load_test, served
from benchmarks.timing import seconds_of

_LEVELS = [round(0.1 * i, 1) for i in range(1, 10)]

#: How each way loads a model.
_LOAD = {"runtime": "from nkcme.runtime import load", "library": "from nkcme import load"}

_START = """
import json, sys, time
import numpy
start = time.perf_counter()
{load}
model = load(sys.argv[1])
print(json.dumps(time.perf_counter() - start))
"""

_ONE_ROW = """
import json, os, sys, time
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
import numpy as np
{load}
model = load(sys.argv[1])
x, n, levels = np.load(sys.argv[2]), int(sys.argv[3]), {levels}
def ask(i):
    dist = model.predict_dist(x[i : i + 1])
    return dist.mean(), dist.ppf(levels), dist.interval(0.9)
for i in range(20):
    ask(i)
seconds = []
for i in range(n):
    start = time.perf_counter()
    ask(i % len(x))
    seconds.append(time.perf_counter() - start)
print(json.dumps(seconds))
"""

_MANY_ROWS = """
import json, sys, time
import numpy as np
{load}
model = load(sys.argv[1])
x, n = np.load(sys.argv[2]), int(sys.argv[3])
rows = x[np.random.default_rng(0).integers(0, len(x), n)]
model.predict_quantiles(rows[:20_000], {levels})
start = time.perf_counter()
quantiles = model.predict_quantiles(rows, {levels})
seconds = time.perf_counter() - start
np.save(sys.argv[4], quantiles[:10_000])
print(json.dumps(seconds))
"""


def main(repeats: int, n_rows: int, n_requests: int, out: Path) -> None:
    """Measure everything and write ``runtime-speed-DEVICE.json``."""
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        model, rows = Path(folder) / "model", Path(folder) / "rows.npy"
        results["model"] = _fit(model, rows)
        results["start"] = _start(model, repeats)
        print(_line("import and load", results["start"], "ms"), flush=True)
        results["one_row"] = _one_row(model, rows)
        print(_line("one row", results["one_row"], "ms"), flush=True)
        results["many_rows"] = _many_rows(model, rows, n_rows)
        print(_line(f"{n_rows} rows", results["many_rows"], "s"), flush=True)
        results["serve"] = _serve(model, rows, n_requests)
        for name, row in results["serve"].items():
            print(
                f"serve, {name}: {row['requests_per_second']:.0f} requests per second, p99 "
                f"{row['latency_ms']['p99']:.1f} ms, {row['wrong']} wrong, {row['lost']} lost"
            )
    command = (
        f"python -m benchmarks runtime-speed --repeats {repeats} --rows {n_rows} "
        f"--requests {n_requests}"
    )
    print(f"Wrote {write_result(f'runtime-speed-{device_name()}', command, results, out)}")


def _fit(model: Path, rows: Path) -> dict[str, Any]:
    """Save the default model of a table of 1,000 rows with eight inputs, as Concrete has."""
    from nkcme import NKCME

    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, size=(1000, 8))
    signal = 10.0 * np.sin(x[:, 0] * x[:, 1]) + 5.0 * x[:, 2] ** 2 + 8.0 * x[:, 3] + 30.0
    y = signal + (1.0 + np.abs(x[:, 4])) * rng.normal(size=len(x))
    fitted = NKCME(random_state=0, verbose=False)
    seconds = seconds_of(lambda: fitted.fit(x, y))
    fitted.save(model)
    np.save(rows, x)
    size = sum(file.stat().st_size for file in model.iterdir())
    center = "none" if fitted.center_ is None else fitted.center_.summary()
    return {
        "rows": len(x),
        "inputs": x.shape[1],
        "center": center,
        "members": fitted.n_members_,
        "megabytes": size / 1e6,
        "fit_seconds": seconds,
    }


def _start(model: Path, repeats: int) -> dict[str, Any]:
    """Milliseconds to import and load a model, beyond Python and NumPy."""
    times = {way: [1e3 * _run(_START, way, model) for _ in range(max(repeats, 5))] for way in _LOAD}
    return {way: {"median_ms": float(np.median(t)), "all_ms": t} for way, t in times.items()}


def _one_row(model: Path, rows: Path) -> dict[str, Any]:
    """Milliseconds for the mean, nine quantiles and an interval of one row, on one core."""
    numbers = {"runtime": 5000, "library": 500}
    results = {}
    for way, n in numbers.items():
        seconds = np.array(_run(_ONE_ROW, way, model, rows, n, threads=1))
        results[way] = {
            "rows": n,
            "median_ms": 1e3 * float(np.median(seconds)),
            "p99_ms": 1e3 * float(np.quantile(seconds, 0.99)),
        }
    return results


def _many_rows(model: Path, rows: Path, n_rows: int) -> dict[str, Any]:
    """Seconds for nine quantiles of many rows, and how far the two ways are apart."""
    results: dict[str, Any] = {"rows": n_rows, "quantiles": len(_LEVELS)}
    with tempfile.TemporaryDirectory() as folder:
        for way in _LOAD:
            saved = Path(folder) / f"{way}.npy"
            results[way] = {"seconds": _run(_MANY_ROWS, way, model, rows, n_rows, saved)}
        quantiles = [np.load(Path(folder) / f"{way}.npy") for way in _LOAD]
    spread = float(np.std(quantiles[1]))
    results["largest_difference"] = float(np.max(np.abs(np.subtract(*quantiles)))) / spread
    results["ratio"] = results["library"]["seconds"] / results["runtime"]["seconds"]
    return results


def _serve(model: Path, rows: Path, n_requests: int) -> dict[str, Any]:
    """One-row requests to a server with one worker, and with one for each core."""
    from nkcme.runtime import load

    predictor, x = load(model), np.load(rows)[:200]
    cases = []
    for row in x:
        dist = predictor.predict_dist(row[None])
        levels = [*_LEVELS, 0.05, 0.95]
        *quantiles, low, high = dist.ppf(levels)[0].tolist()
        answer = {
            "mean": float(dist.mean()[0]),
            "quantiles": dict(zip(map(repr, _LEVELS), quantiles, strict=True)),
            "intervals": {"0.9": [low, high]},
        }
        question = {"rows": [row.tolist()], "quantiles": _LEVELS, "intervals": [0.9]}
        cases.append(Case(json.dumps(question).encode(), {"predictions": [answer]}))
    results = {}
    for workers in (1, 2):
        with served(model, workers) as port:
            load_test(
                port, cases, n_requests=200, n_clients=16, per_second=None, limit=60.0
            )  # warm
            name = f"{workers} worker{'s' if workers > 1 else ''}"
            results[f"{name}, 500 per second"] = load_test(
                port, cases, n_requests=5000, n_clients=16, per_second=500.0, limit=120.0
            )
            results[f"{name}, as fast as answered"] = load_test(
                port, cases, n_requests=n_requests, n_clients=16, per_second=None, limit=300.0
            )
    return results


def _run(program: str, way: str, *arguments: object, threads: int | None = None) -> Any:
    """What a program prints as JSON, run in a new process."""
    text = program.format(load=_LOAD[way], levels=_LEVELS)
    environment = dict(os.environ)
    if threads is not None:
        environment |= {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "OPENBLAS")}
    done = subprocess.run(
        [sys.executable, "-c", text, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return json.loads(done.stdout)


def _line(what: str, results: dict[str, Any], unit: str) -> str:
    """The two ways side by side."""
    key = "seconds" if unit == "s" else "median_ms"
    pair = (f"{way} {results[way][key]:.3g} {unit}" for way in _LOAD)
    return f"{what}: {', '.join(pair)}"
