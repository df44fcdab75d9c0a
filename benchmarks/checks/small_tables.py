"""Small tables: one network of ours against the paper's recipe, on UCI folds and on diabetes.

``python -m benchmarks small-tables`` writes results/small-tables-DEVICE.json. It checks that
`presets.QUICK` suits a few hundred rows; ``python -m benchmarks uci`` is the benchmark.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold

from benchmarks.experiments.protocols.fitting import draw_samples
from benchmarks.provenance import device_name, write_result
from benchmarks.timing import timed
from nkcme import NKCME, metrics, presets
from nkcme.datasets.uci import load_uci

Fold = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

#: Data sets, and the paper's recipe for each.
SETS: dict[str, dict[str, Any]] = {
    "boston": presets.PAPER_UCI_SMALL,
    "concrete": presets.PAPER_UCI_SMALL,
    "energy": presets.PAPER_UCI_SMALL,
    "kin8nm": presets.PAPER_UCI_SMALL | {"batch_size": 100},
    "diabetes": presets.PAPER_UCI_SMALL,
}


def folds(name: str, n: int) -> list[Fold]:
    """The first n folds of a data set: training X and y, test X and y."""
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
        rows = list(KFold(n, shuffle=True, random_state=0).split(X))
    else:
        table = load_uci(name)
        X, y, rows = table.X, table.y, [table.fold(k) for k in range(n)]
    return [(X[train], y[train], X[test], y[test]) for train, test in rows]


def run(name: str, recipe: str, parameters: dict[str, Any], n_folds: int) -> dict[str, Any]:
    """Fit all folds as one program and average their scores."""
    data = folds(name, n_folds)
    estimator = NKCME(random_state=0, **presets.QUICK | parameters)
    models, seconds = timed(lambda: estimator.fit_many([(X, y) for X, y, _, _ in data]))
    scores: dict[str, list[float]] = {}
    counts = np.zeros(10, int)
    for model, (_, _, X, y) in zip(models, data, strict=True):
        sampling = "herd" if model.head == "signed" else "independent"
        draws = draw_samples(model, X, sampling, 1000, seed=0)
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


def main(n_folds: int, out: Path) -> None:
    """Run both recipes on every data set, print a line for each, and write the file."""
    rows = []
    for name, paper in SETS.items():
        for recipe, parameters in (("quick", {}), ("paper-joint", paper)):
            rows.append(row := run(name, recipe, parameters, n_folds))
            print(
                f"{name:8s} {recipe:12s} QICE {row['qice_percent']:.2f} %  RMSE {row['rmse']:.4g}"
                f"  CRPS {row['crps']:.4g}  coverage {row['coverage_90']:.3f}"
                f"  {row['fit_seconds_all_folds']:.1f} s",
                flush=True,
            )
    command = f"python -m benchmarks small-tables --folds {n_folds}"
    print(f"Wrote {write_result(f'small-tables-{device_name()}', command, {'rows': rows}, out)}")
