"""A fake estimator that fits in no time, cells to run it in, and a benchmark that can be killed.

    python fake_bench.py ROWS

runs three cells. In the second one it prints "waiting" and blocks, so that a test can kill it after
the first cell is finished.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from benchmarks.experiments.cell import Cell
from benchmarks.experiments.rows import Rows
from benchmarks.experiments.run import run_cells
from nkcme.estimators import ESTIMATORS


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

    def pmf(self, y: np.ndarray) -> np.ndarray:
        return np.zeros(np.shape(y))

    def without_support(self) -> FakeDistribution:
        return self

    def smoothed(self) -> FakeDistribution:
        return self

    def crps(self, y: np.ndarray) -> np.ndarray:
        return np.abs(y)

    def logpdf(self, y: np.ndarray) -> np.ndarray:
        return norm.logpdf(y)


class Fake:
    """Predicts N(0, 1) everywhere.

    With ``broken="fit"`` it cannot be fitted, with ``broken="sample"`` the model with random state
    1 cannot sample.
    """

    def __init__(self, broken: str = "", random_state: int = 0):
        self.broken = broken
        self.random_state = random_state

    def fit_many(self, datasets: list, random_states: list[int]) -> list[Fake]:
        assert len(datasets) == len(random_states)
        if self.broken == "fit":
            raise RuntimeError("the fit\nfailed")
        return [Fake(self.broken, k) for k in random_states]

    def sample(self, X: Any, n: int, *, method: str, random_state: int) -> np.ndarray:
        assert method == "independent"
        if self.broken == "sample" and self.random_state == 1:
            raise ValueError("cannot sample")
        return np.random.default_rng(random_state).normal(size=(n, len(X)))

    def predict_dist(self, X: Any) -> FakeDistribution:
        return FakeDistribution(len(X))


def cell(dataset: str = "ring", **changes: Any) -> Cell:
    """A cell of the toy experiment for the fake estimator."""
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


def three_cells() -> list[Cell]:
    """A benchmark of three cells."""
    return [cell(name) for name in ("bimodal", "skewed", "ring")]


class _Blocking(Fake):
    """Blocks in its second fit, which is that of the second cell."""

    fits = 0

    def fit_many(self, datasets: list, random_states: list[int]) -> list[Fake]:
        type(self).fits += 1
        if self.fits == 2:
            print("waiting", flush=True)
            signal.pause()
        return super().fit_many(datasets, random_states)


if __name__ == "__main__":
    ESTIMATORS["Fake"] = _Blocking  # type: ignore[assignment]
    run_cells(three_cells(), Rows(Path(sys.argv[1])), lambda note: None)
