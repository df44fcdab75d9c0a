"""What only a new process shows: start-up with and without compiled programs, and peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

_STREAM = """
import resource, json, sys, time
import numpy as np
from nkcme import NKCME, presets
rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 10)); y = X[:, 0] + rng.normal(size=2000)
model = NKCME(**presets.QUICK, random_state=0, epochs=20).fit(X, y)
model.predict_quantiles(X, np.linspace(.1, .9, 9))
rows = rng.normal(size=(1_000_000, 10))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
q = model.predict_quantiles(rows, np.linspace(.1, .9, 9))
seconds = time.perf_counter() - start
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"rows": len(q), "quantiles": 9, "seconds": seconds,
                  "peak_growth_mib": (after - before) / 1024}))
"""

_COLD = """
import time
start = time.perf_counter()
import json
import numpy as np
import jax
from jax import monitoring
spent = {"compile": 0.0}
def listen(event, duration, **_):
    if "backend_compile" in event or "cache_retrieval" in event:
        spent["compile"] += duration
monitoring.register_event_duration_secs_listener(listen)
from nkcme import NKCME, presets
imported = time.perf_counter() - start
rng = np.random.default_rng(0)
X = rng.normal(size=(500, 13)); y = X[:, 0] + rng.normal(size=500)
begun = time.perf_counter()
NKCME(**presets.QUICK, random_state=0).fit(X, y)
fit = time.perf_counter() - begun
print(json.dumps({"import_seconds": imported, "fit_seconds": fit,
                  "compile_seconds": spent["compile"], "compile_share": spent["compile"] / fit,
                  "whole_process_seconds": time.perf_counter() - start}))
"""


def cold_start() -> dict[str, Any]:
    """Seconds to fit 500 x 13 rows, with an empty compilation cache and with a filled one."""
    with tempfile.TemporaryDirectory() as cache:
        empty = _run(_COLD, cache)
        return {"empty_cache": empty, "filled_cache": _run(_COLD, cache)}


def streaming_prediction() -> dict[str, Any]:
    """Seconds and growth of peak memory for nine quantiles of a million rows."""
    return _run(_STREAM)


def _run(code: str, cache: str | None = None) -> dict[str, Any]:
    """The JSON that a program prints last; ``cache`` replaces the user's cache directory."""
    environment = dict(os.environ)
    if cache is not None:
        environment["XDG_CACHE_HOME"] = cache
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    return json.loads(done.stdout.splitlines()[-1])
