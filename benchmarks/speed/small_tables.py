"""Small tables: one network of ours beside the paper's recipe, on published folds and on diabetes.

    NKCME_DATA=DIR python -m benchmarks.speed.small_tables [--folds 6]

writes results/small-tables-DEVICE.json. DIR holds the UCI sets in their published layout. It is a
check that `presets.QUICK` suits a few hundred rows; `python -m benchmarks uci` is the benchmark.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold

from benchmarks.experiments.provenance import device_name
from benchmarks.speed import record
from nkcme import NKCME, metrics, presets

Fold = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

#: Folder, and what the paper's recipe for it adds to its preset.
SETS: dict[str, dict[str, Any]] = {
    "bostonHousing": presets.PAPER_UCI_SMALL,
    "concrete": presets.PAPER_UCI_SMALL,
    "energy": presets.PAPER_UCI_SMALL,
    "kin8nm": presets.PAPER_UCI_SMALL | {"batch_size": 100},
    "diabetes": presets.PAPER_UCI_SMALL,
}


def folds(name: str, n: int) -> list[Fold]:
    """Training X and y, test X and y."""
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
        parts = KFold(n, shuffle=True, random_state=0).split(X)
        return [(X[a], y[a], X[b], y[b]) for a, b in parts]
    directory = Path(os.environ["NKCME_DATA"]) / name / "data"
    table = np.loadtxt(directory / "data.txt")
    index = lambda what: np.loadtxt(directory / f"index_{what}.txt", dtype=int)  # noqa: E731
    X, y = table[:, index("features")], table[:, int(index("target"))]
    rows = [(index(f"train_{k}"), index(f"test_{k}")) for k in range(n)]
    return [(X[a], y[a], X[b], y[b]) for a, b in rows]


def run(name: str, recipe: str, parameters: dict[str, Any], n_folds: int) -> dict[str, Any]:
    """Fit all folds at once and average their scores."""
    data = folds(name, n_folds)
    start = time.perf_counter()
    estimator = NKCME(random_state=0, **presets.QUICK | parameters)
    models = estimator.fit_many([(X, y) for X, y, _, _ in data])
    seconds = time.perf_counter() - start
    scores: dict[str, list[float]] = {}
    counts = np.zeros(10, int)
    for model, (_, _, X, y) in zip(models, data, strict=True):
        dist = model.predict_dist(X)
        signed = model.head == "signed"
        draws = dist.herd(1000) if signed else dist.rvs(1000, random_state=0)
        interval = np.quantile(draws, [0.05, 0.95], axis=0).T
        counts += metrics.decile_counts(y, draws)
        for score, value in {
            "qice_percent": 100 * metrics.qice(y, draws),
            "rmse": metrics.rmse(y, draws.mean(axis=0)),
            "crps": float(np.mean(metrics.crps_ensemble(y, draws))),
            "coverage_90": metrics.coverage(y, interval),
        }.items():
            scores.setdefault(score, []).append(value)
    return {
        "set": name,
        "recipe": recipe,
        "folds": n_folds,
        "steps": models[0].n_steps_,
        "fit_seconds_all_folds": seconds,
        "qice_percent_pooled": 100 * metrics.qice_from_counts(counts),
        **{score: float(np.mean(values)) for score, values in scores.items()},
        "by_fold": scores,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folds", type=int, default=6)
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    arguments = parser.parse_args()
    rows = []
    for name, paper in SETS.items():
        for recipe, parameters in (("quick", {}), ("paper-joint", paper)):
            rows.append(row := run(name, recipe, parameters, arguments.folds))
            print(
                f"{name:14s} {recipe:12s} QICE {row['qice_percent']:.2f} %  RMSE {row['rmse']:.4g}"
                f"  CRPS {row['crps']:.4g}  coverage {row['coverage_90']:.3f}"
                f"  {row['fit_seconds_all_folds']:.1f} s",
                flush=True,
            )
    command = f"NKCME_DATA=DIR python -m benchmarks.speed.small_tables --folds {arguments.folds}"
    name = f"small-tables-{device_name()}"
    print(f"wrote {record.write(name, command, {'rows': rows}, arguments.out)}")


if __name__ == "__main__":
    main()
