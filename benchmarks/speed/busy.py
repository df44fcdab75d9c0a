"""A fit on a machine that is not its own: regressors in the background, and busy processes beside.

``python -m benchmarks busy-speed`` writes results/busy-DEVICE.json. Every fit is in a new process,
after one that filled the cache of compiled programs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.provenance import device_name, write_result
from nkcme.training.cores import available_cores

#: How many loops that never wait run beside a fit.
N_BUSY = 2

_FIT = """
import json, sys, time
import numpy as np
from nkcme import NKCME
from nkcme.estimators.nkcme import location_regressors
n_rows, n_threads = json.loads(sys.argv[1])
if n_threads is not None:
    location_regressors._background_threads = lambda n_cores: n_threads
rng = np.random.default_rng(0)
X = rng.normal(size=(n_rows, 8))
y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n_rows)
start, spent = time.perf_counter(), time.process_time()
NKCME(center="mean", random_state=0).fit(X, y)
print(json.dumps([time.perf_counter() - start, time.process_time() - spent]))
"""


def main(n_rows: int, repeats: int, out: Path) -> None:
    """Time a fit as it is, with regressors in one thread meanwhile, and beside busy processes."""
    runs: dict[str, list[list[float]]] = {"alone": [], "in the background": [], "beside": []}
    _fit(n_rows)
    load = [os.getloadavg()[0]]
    for _ in range(repeats):
        runs["alone"].append(_fit(n_rows))
        runs["in the background"].append(_fit(n_rows, n_threads=1))
        with _busy_processes():
            runs["beside"].append(_fit(n_rows))
        load.append(os.getloadavg()[0])
    measured: dict[str, Any] = {
        name: {
            "median_seconds": float(np.median([seconds for seconds, _ in each])),
            "least_seconds": min(seconds for seconds, _ in each),
            "median_processor_seconds": float(np.median([spent for _, spent in each])),
            "all": each,
        }
        for name, each in runs.items()
    }
    alone, beside = (measured[name]["median_seconds"] for name in ("alone", "beside"))
    cores = available_cores()
    results = {
        "rows": n_rows,
        "repeats": repeats,
        "load_averages": load,  # more than the fit's own where the machine was shared
        "busy_processes": N_BUSY,
        "slower_beside_busy_processes": beside / alone,
        "slower_by_their_share": (cores + N_BUSY) / cores,
        "fits": measured,
    }
    print(json.dumps(results, indent=2))
    write_result(f"busy-{device_name()}", "python -m benchmarks busy-speed", results, out)


def _fit(n_rows: int, n_threads: int | None = None) -> list[float]:
    """The seconds of a fit on the clock, and on the processors."""
    arguments = [sys.executable, "-c", _FIT, json.dumps([n_rows, n_threads])]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def _busy_processes() -> Iterator[None]:
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(N_BUSY)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
