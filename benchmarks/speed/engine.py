"""How fast: our engine beside the plain way, in one process on the same data.

    python -m benchmarks.speed.engine

writes results/speed-DEVICE.json. Ratios are what counts; seconds are this machine's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.experiments.cells import draw
from benchmarks.experiments.provenance import device_name
from benchmarks.experiments.specs import published
from benchmarks.speed import record
from benchmarks.speed.plain import PlainRun
from nkcme import NKCME, presets
from nkcme.datasets.toy import N_DRAWS, TOYS, evaluate_was1

SEEDS = range(10)
PAPER_STEPS = 100_000


def throughput(repeats: int) -> dict[str, Any]:
    """Seconds a step of the paper's recipe, ten seeds: the plain way and the engine, in turns."""
    data = [TOYS["bimodal"].make(seed=s) for s in SEEDS]
    plain = PlainRun(np.stack([X for X, _ in data]), np.stack([y for _, y in data]))
    plain.run(20)
    ours = {n: NKCME(random_state=0, **presets.PAPER_TOY | {"epochs": n}) for n in (20, 120)}
    for estimator in ours.values():
        estimator.fit_many(data)  # compile
    plain_seconds, our_seconds = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        plain.run(500)
        plain_seconds.append((time.perf_counter() - start) / 500)
        took = {n: _seconds(lambda e=e: e.fit_many(data)) for n, e in ours.items()}
        # The difference of two lengths leaves out what does not grow with the steps.
        our_seconds.append((took[120] - took[20]) / (100 * (len(data[0][1]) // 50)))
    plain_step, our_step = float(np.median(plain_seconds)), float(np.median(our_seconds))
    return {
        "plain_seconds_a_step": plain_step,
        "engine_seconds_a_step": our_step,
        "ratio": plain_step / our_step,
        "plain_all": plain_seconds,
        "engine_all": our_seconds,
    }


def time_to_paper(plain_step: float) -> list[dict[str, Any]]:
    """Our default until it is better than the paper, against the paper's recipe.

    The plain way's time is its measured step times the recipe's 100,000 steps.
    """
    rows = []
    for toy in TOYS:
        data = [TOYS[toy].make(seed=s) for s in SEEDS]
        first = _seconds(lambda data=data: NKCME(**presets.QUICK, random_state=0).fit_many(data))
        start = time.perf_counter()
        models = NKCME(**presets.QUICK, random_state=0).fit_many(data)
        seconds = time.perf_counter() - start
        paper_seconds = _seconds(
            lambda data=data: NKCME(random_state=0, **presets.PAPER_TOY).fit_many(data)
        )
        rows.append(
            {
                "toy": toy,
                "default_was1_x100": _was1(models, toy),
                "paper_was1_x100": published("was1_x100", toy, "nkcme-joint").mean,
                "default_seconds": seconds,
                "default_seconds_with_compilation": first,
                "paper_recipe_plain_seconds": plain_step * PAPER_STEPS,
                "paper_recipe_engine_seconds": paper_seconds,
                "ratio_to_plain": plain_step * PAPER_STEPS / seconds,
                "ratio_to_paper_recipe_on_engine": paper_seconds / seconds,
            }
        )
    return rows


def _was1(models: list[NKCME], toy: str) -> float:
    """Mean WAS1 x100 of the models of the seeds, by mid-quantiles."""
    values = [
        evaluate_was1(TOYS[toy], lambda X, m=m, s=s: draw(m, X, "quantiles", N_DRAWS, s), s)
        for s, m in zip(SEEDS, models, strict=True)
    ]
    return 100 * float(np.mean(values))


def single_fit() -> dict[str, Any]:
    """One fit of one table of 5,000 rows: one network of ours against the paper's recipe."""
    X, y = TOYS["ring"].make(seed=0)
    seconds = {}
    for name, parameters in (("default", presets.QUICK), ("paper", presets.PAPER_TOY)):
        estimator = NKCME(random_state=0, **parameters)
        estimator.fit(X, y)
        seconds[name] = _seconds(lambda e=estimator: e.fit(X, y))
    return {**seconds, "ratio": seconds["paper"] / seconds["default"]}


def growth() -> list[dict[str, Any]]:
    """Seconds a step by the number of rows: it must not grow."""
    rng = np.random.default_rng(0)
    rows = []
    for n in (1_000, 10_000, 100_000, 1_000_000):
        X = rng.normal(size=(n, 10))
        y = X[:, 0] + rng.normal(size=n)
        one_epoch = max(n // 256, 1)
        estimator = NKCME(**presets.QUICK, random_state=0, epochs=max(2000 // one_epoch, 1))
        estimator.fit(X, y)  # compile
        start = time.perf_counter()
        estimator.fit(X, y)
        total = time.perf_counter() - start
        encode = _seconds(lambda e=estimator, X=X, y=y: e._encode_training(X, y, None, None, None))
        rows.append(
            {
                "rows": n,
                "steps": estimator.n_steps_,
                "fit_seconds": total,
                "preprocessing_seconds": encode,
                "seconds_a_step": (total - encode) / estimator.n_steps_,
            }
        )
    return rows


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


def _process(code: str, cache: str | None = None) -> dict[str, Any]:
    environment = dict(os.environ)
    if cache is not None:
        environment["XDG_CACHE_HOME"] = cache
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    return json.loads(told.stdout.splitlines()[-1])


def cold_start() -> dict[str, Any]:
    """A new process that fits 500 x 13 rows, with an empty compilation cache and a filled one."""
    with tempfile.TemporaryDirectory() as cache:
        empty = _process(_COLD, cache)
        return {"empty_cache": empty, "filled_cache": _process(_COLD, cache)}


def _seconds(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    results: dict[str, Any] = {}
    results["cold_start"] = cold_start()
    print("cold start", json.dumps(results["cold_start"]), flush=True)
    results["streaming_prediction"] = _process(_STREAM)
    print("streaming", json.dumps(results["streaming_prediction"]), flush=True)
    results["throughput"] = throughput(arguments.repeats)
    print(f"engine is {results['throughput']['ratio']:.1f} times the plain way", flush=True)
    results["single_fit"] = single_fit()
    print(f"default fit is {results['single_fit']['ratio']:.1f} times shorter", flush=True)
    results["time_to_paper"] = time_to_paper(results["throughput"]["plain_seconds_a_step"])
    for row in results["time_to_paper"]:
        print(
            f"{row['toy']:8s} WAS1 {row['default_was1_x100']:.2f} (paper "
            f"{row['paper_was1_x100']}): {row['ratio_to_plain']:.1f} times shorter than the plain "
            f"way, {row['ratio_to_paper_recipe_on_engine']:.1f} than the recipe on our engine",
            flush=True,
        )
    results["growth"] = growth()
    for row in results["growth"]:
        print(f"{row['rows']:8d} rows: {1e3 * row['seconds_a_step']:.3f} ms a step", flush=True)
    path = record.write(
        f"speed-{device_name()}", "python -m benchmarks.speed.engine", results, arguments.out
    )
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
