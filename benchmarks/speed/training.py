"""Speed of the training engine, against a plain loop in one process on the same data.

``python -m benchmarks speed`` writes results/speed-DEVICE.json. Compare ratios; seconds depend on
the machine.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.experiments.paper import published
from benchmarks.experiments.protocols.fitting import draw_samples
from benchmarks.experiments.protocols.scaling import fit_seconds
from benchmarks.provenance import device_name, write_result
from benchmarks.speed.new_process import cold_start, streaming_prediction
from benchmarks.speed.plain_training import PlainTraining
from benchmarks.timing import seconds_of, timed
from nkcme import NKCME, presets
from nkcme.datasets.toy import N_DRAWS, TOYS, evaluate_was1

SEEDS = range(10)
PAPER_STEPS = 100_000


def throughput(repeats: int) -> dict[str, Any]:
    """Seconds per step of the paper's recipe with ten seeds: plain loop and engine, alternating."""
    data = [TOYS["bimodal"].make(seed=s) for s in SEEDS]
    plain = PlainTraining(np.stack([X for X, _ in data]), np.stack([y for _, y in data]))
    plain.run(20)
    ours = {n: NKCME(random_state=0, **presets.PAPER_TOY | {"epochs": n}) for n in (20, 120)}
    for estimator in ours.values():
        estimator.fit_many(data)  # compile
    plain_seconds, our_seconds = [], []
    for _ in range(repeats):
        plain_seconds.append(seconds_of(lambda: plain.run(500)) / 500)
        took = {n: seconds_of(partial(e.fit_many, data)) for n, e in ours.items()}
        # The difference of two lengths excludes everything that does not grow with the steps.
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
    """One network of ours, which scores better than the paper, against the paper's recipe.

    The time of the plain loop is its measured step times the recipe's 100,000 steps.
    """
    rows = []
    for toy in TOYS:
        data = [TOYS[toy].make(seed=s) for s in SEEDS]
        first = seconds_of(partial(NKCME(**presets.QUICK, random_state=0).fit_many, data))
        models, seconds = timed(partial(NKCME(**presets.QUICK, random_state=0).fit_many, data))
        paper_seconds = seconds_of(
            partial(NKCME(random_state=0, **presets.PAPER_TOY).fit_many, data)
        )
        paper = published("was1_x100", toy, "nkcme-joint")
        assert paper is not None
        rows.append(
            {
                "toy": toy,
                "default_was1_x100": _was1(models, toy),
                "paper_was1_x100": paper.mean,
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
    """Mean WAS1 x 100 over the models of the seeds."""
    values = [
        evaluate_was1(
            TOYS[toy],
            partial(draw_samples, model, sampling="quantiles", n_draws=N_DRAWS, seed=seed),
            seed,
        )
        for seed, model in zip(SEEDS, models, strict=True)
    ]
    return 100 * float(np.mean(values))


def single_fit() -> dict[str, Any]:
    """Seconds of one fit of 5,000 rows: one network of ours, and the paper's recipe."""
    X, y = TOYS["ring"].make(seed=0)
    seconds = {}
    for name, parameters in (("default", presets.QUICK), ("paper", presets.PAPER_TOY)):
        estimator = NKCME(random_state=0, **parameters)
        estimator.fit(X, y)  # compile
        seconds[name] = seconds_of(partial(estimator.fit, X, y))
    return {**seconds, "ratio": seconds["paper"] / seconds["default"]}


def growth() -> list[dict[str, Any]]:
    """Seconds per step by number of rows, which must not grow."""
    rng = np.random.default_rng(0)
    rows = []
    for n in (1_000, 10_000, 100_000, 1_000_000):
        X = rng.normal(size=(n, 10))
        y = X[:, 0] + rng.normal(size=n)
        epochs = max(2000 // max(n // 256, 1), 1)
        short, long = (
            NKCME(**presets.QUICK, random_state=0, epochs=e) for e in (epochs, 2 * epochs)
        )
        fit = fit_seconds(short, long, X, y)
        rows.append(
            {
                "rows": n,
                "steps": fit.n_steps,
                "fit_seconds": fit.total,
                "seconds_without_steps": fit.rest,
                "seconds_a_step": fit.step,
            }
        )
    return rows


def main(repeats: int, out: Path) -> None:
    """Measure everything, print a line for each result, and write the file."""
    results: dict[str, Any] = {}
    results["cold_start"] = cold_start()
    print("cold start", json.dumps(results["cold_start"]), flush=True)
    results["streaming_prediction"] = streaming_prediction()
    print("streaming prediction", json.dumps(results["streaming_prediction"]), flush=True)
    results["throughput"] = throughput(repeats)
    print(f"engine: {results['throughput']['ratio']:.1f} times the plain loop", flush=True)
    results["single_fit"] = single_fit()
    print(f"one fit: {results['single_fit']['ratio']:.1f} times shorter than the paper's recipe")
    results["time_to_paper"] = time_to_paper(results["throughput"]["plain_seconds_a_step"])
    for row in results["time_to_paper"]:
        print(
            f"{row['toy']:8s} WAS1 {row['default_was1_x100']:.2f} (paper "
            f"{row['paper_was1_x100']}): {row['ratio_to_plain']:.1f} times shorter than the plain "
            f"loop, {row['ratio_to_paper_recipe_on_engine']:.1f} than the recipe on our engine",
            flush=True,
        )
    results["growth"] = growth()
    for row in results["growth"]:
        print(f"{row['rows']:8d} rows: {1e3 * row['seconds_a_step']:.3f} ms per step", flush=True)
    command = f"python -m benchmarks speed --repeats {repeats}"
    print(f"Wrote {write_result(f'speed-{device_name()}', command, results, out)}")
