"""Predictions for simulated tables that equal the truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.experiments.simulation_specs import DESIGNS
from benchmarks.experiments.simulations.laws import Law


class LawPrediction:
    """A law of simulated tables with the interface of a `Distribution`."""

    def __init__(self, law: Law):
        self.law = law

    def cdf(self, y: Any) -> np.ndarray:
        return _at(self.law.cdf, y)

    def pmf(self, y: Any) -> np.ndarray:
        return _at(self.law.pmf, y)

    def ppf(self, q: Any) -> np.ndarray:
        return self.law.ppf(q)

    def crps(self, y: np.ndarray) -> np.ndarray:
        return self.law.crps(y)


def _at(function: Any, y: np.ndarray) -> np.ndarray:
    """Points (n_rows, m), or one for each row."""
    return function(y) if y.ndim == 2 else function(y[:, None])[:, 0]


class Oracle:
    """An estimator that knows the law of a design."""

    def __init__(self, design: str, random_state: int = 0):
        self.design = design
        self.random_state = random_state

    def fit_many(self, datasets: list, random_states: list[int]) -> list[Oracle]:
        assert len(datasets) == len(random_states)
        return [Oracle(self.design, k) for k in random_states]

    def predict_dist(self, X: np.ndarray) -> LawPrediction:
        return LawPrediction(DESIGNS[self.design].law(X))
