"""NKCME() as it comes on a small and on a large generated table: how long, and how good.

    python -m benchmarks.speed.table_sizes [--rows 300 500000]

writes results/table-sizes-DEVICE.json. y is a smooth function of four of ten inputs, and skewed
noise whose spread follows a fifth, so that a perfect model's score is known. Seconds are those of
one fit each, in the order given, compilation included.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.experiments.provenance import device_name
from benchmarks.speed import record
from nkcme import NKCME, metrics

N_TEST = 5000
N_DRAWS = 1000


def center_and_spread(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    center = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2
    return center, np.exp(0.5 * X[:, 4])


def draw(X: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """True draws (n, len(X))."""
    center, spread = center_and_spread(X)
    return center + 0.5 * spread * (rng.exponential(size=(n, len(X))) - 1.0)


def run(n_rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(n_rows)
    X, X_test = (rng.uniform(-2, 2, size=(n, 10)) for n in (n_rows, N_TEST))
    y, y_test = draw(X, 1, rng)[0], draw(X_test, 1, rng)[0]
    start = time.perf_counter()
    model = NKCME(random_state=0).fit(X, y)
    fitted = time.perf_counter()
    interval = model.predict_interval(X_test, coverage=0.9)
    predicted = time.perf_counter()
    draws, truth = model.sample(X_test, N_DRAWS, random_state=0), draw(X_test, N_DRAWS, rng)
    return {
        "rows": n_rows,
        "columns": X.shape[1],
        "fit_seconds": fitted - start,
        "predict_seconds": predicted - fitted,
        "predicted_rows": N_TEST,
        "members": model.n_members_,
        "centred": model.center_ is not None,
        "coverage_90": metrics.coverage(y_test, interval),
        "crps": float(np.mean(metrics.crps_ensemble(y_test, draws))),
        "crps_of_true_draws": float(np.mean(metrics.crps_ensemble(y_test, truth))),
        "rmse": metrics.rmse(y_test, draws.mean(axis=0)),
        "rmse_of_true_mean": metrics.rmse(y_test, center_and_spread(X_test)[0]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 500_000])
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    arguments = parser.parse_args()
    rows = []
    for n_rows in arguments.rows:
        rows.append(row := run(n_rows))
        print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    sizes = " ".join(map(str, arguments.rows))
    command = f"python -m benchmarks.speed.table_sizes --rows {sizes}"
    name = f"table-sizes-{device_name()}"
    print(f"wrote {record.write(name, command, {'tables': rows}, arguments.out)}")


if __name__ == "__main__":
    main()
