"""An estimator that fits in no time and cells to run it in, for tests; and a process that is slow.

    python fake_bench.py ROWS SECONDS

runs the cells with a pause of so many seconds in each fit, so that a test can kill it between two.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from benchmarks.experiments.rows import Rows
from benchmarks.experiments.run import run_cells
from benchmarks.experiments.specs import Cell
from nkcme.estimators import ESTIMATORS

PAUSE = 0.0


class FakeDistribution:
    """N(0, 1) at every row."""

    def __init__(self, n: int):
        self.n = n

    def mean(self) -> np.ndarray:
        return np.zeros(self.n)

    def ppf(self, q: Any) -> np.ndarray:
        return np.tile(norm.ppf(q), (self.n, 1))

    def cdf(self, y: np.ndarray) -> np.ndarray:
        return norm.cdf(y)

    def smoothed(self) -> FakeDistribution:
        return self

    def crps(self, y: np.ndarray) -> np.ndarray:
        return np.abs(y)

    def logpdf(self, y: np.ndarray) -> np.ndarray:
        return norm.logpdf(y)


class Fake:
    """Says N(0, 1) whatever it sees; ``broken`` fails to fit, or to predict where fitted by 1."""

    def __init__(self, broken: str = "", random_state: int = 0):
        self.broken = broken
        self.random_state = random_state

    def fit_many(self, datasets: list, random_states: list[int]) -> list[Fake]:
        assert len(datasets) == len(random_states)
        time.sleep(PAUSE)
        if self.broken == "fit":
            raise RuntimeError("this one\nnever fits")
        return [Fake(self.broken, k) for k in random_states]

    def sample(self, X: Any, n: int, *, method: str, random_state: int) -> np.ndarray:
        assert method == "independent"
        if self.broken == "sample" and self.random_state == 1:
            raise ValueError("cannot draw")
        return np.random.default_rng(random_state).normal(size=(n, len(X)))

    def predict_dist(self, X: Any) -> FakeDistribution:
        return FakeDistribution(len(X))


def cell(dataset: str = "ring", **changes: Any) -> Cell:
    about = {
        "experiment": "toy",
        "dataset": dataset,
        "method": "mdn",
        "estimator": "Fake",
        "parameters": {},
        "protocol": {
            "draws": "independent", "n_draws": 50, "n_train": 20, "n_points": 200, "n_test": 30,
        },
        "n_runs": 3,
    }  # fmt: skip
    return Cell(**about | changes)


if __name__ == "__main__":
    ESTIMATORS["Fake"] = Fake
    PAUSE = float(sys.argv[2])
    cells = [cell(name) for name in ("bimodal", "skewed", "ring")]
    run_cells(cells, Rows(Path(sys.argv[1])), print)
