"""`NKCME()` with its defaults on a small and on a large generated table: seconds and scores.

``python -m benchmarks table-sizes`` writes results/table-sizes-DEVICE.json. y is a smooth function
of four of ten inputs plus skewed noise with a spread that depends on a fifth, so the score of a
perfect model is known. Seconds are those of one fit each, in the given order, with compilation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.provenance import device_name, write_result
from benchmarks.timing import seconds_of, timed
from nkcme import NKCME, metrics

N_TEST = 5000
N_DRAWS = 1000


def mean_and_spread(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The conditional mean of y, and the factor of its noise."""
    mean = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2
    return mean, np.exp(0.5 * X[:, 4])


def draw(X: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """n draws of y for each row from the true distribution, (n, len(X))."""
    mean, spread = mean_and_spread(X)
    return mean + 0.5 * spread * (rng.exponential(size=(n, len(X))) - 1.0)


def run(n_rows: int) -> dict[str, Any]:
    """Fit and score the default on one table, beside the scores of the true distribution."""
    rng = np.random.default_rng(n_rows)
    X, X_test = (rng.uniform(-2, 2, size=(n, 10)) for n in (n_rows, N_TEST))
    y, y_test = draw(X, 1, rng)[0], draw(X_test, 1, rng)[0]
    model = NKCME(random_state=0)
    fit_seconds = seconds_of(lambda: model.fit(X, y))
    interval, predict_seconds = timed(lambda: model.predict_interval(X_test, coverage=0.9))
    draws, truth = model.sample(X_test, N_DRAWS, random_state=0), draw(X_test, N_DRAWS, rng)
    return {
        "rows": n_rows,
        "columns": X.shape[1],
        "fit_seconds": fit_seconds,
        "predict_seconds": predict_seconds,
        "predicted_rows": N_TEST,
        "members": model.n_members_,
        "location_model": model.center_ is not None,
        "coverage_90": metrics.coverage(y_test, interval),
        "crps": float(np.mean(metrics.crps_ensemble(y_test, draws))),
        "crps_of_true_draws": float(np.mean(metrics.crps_ensemble(y_test, truth))),
        "rmse": metrics.rmse(y_test, draws.mean(axis=0)),
        "rmse_of_true_mean": metrics.rmse(y_test, mean_and_spread(X_test)[0]),
    }


def main(sizes: list[int], out: Path) -> None:
    """Run every size, print its results, and write the file."""
    rows = []
    for n_rows in sizes:
        rows.append(row := run(n_rows))
        print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    command = f"python -m benchmarks table-sizes --sizes {','.join(map(str, sizes))}"
    print(f"Wrote {write_result(f'table-sizes-{device_name()}', command, {'tables': rows}, out)}")
