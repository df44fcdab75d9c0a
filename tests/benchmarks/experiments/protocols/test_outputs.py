"""The protocol of two outputs: the true distribution scores like a perfect model."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from benchmarks.experiments import specs
from benchmarks.experiments.rows import Rows
from benchmarks.experiments.run import run_cells
from benchmarks.pages.page import result_text
from nkcme.datasets.plane import PLANE
from nkcme.estimators import ESTIMATORS

SMALL = {
    "n_train": 50,
    "n_points": 5,
    "n_draws": 400,
    "n_directions": 10,
    "n_test": 40,
    "n_test_draws": 50,
}


class Oracle:
    """Predicts the true distribution; ``shift`` is added to its draws."""

    def __init__(self, problem: str = "ring", shift: float = 0.0):
        self.problem = PLANE[problem]
        self.shift = shift

    def fit_many(self, datasets, random_states):
        assert all(X.shape == (50, 1) and y.shape == (50, 2) for X, y in datasets)
        return [self for _ in random_states]

    def sample(self, X, n, random_state):
        draws = self.problem.sample(X[:, 0], np.random.default_rng(random_state), n)
        return draws + self.shift

    def predict_dist(self, X):
        return self._At(self.problem, X[:, 0])

    @dataclasses.dataclass
    class _At:
        problem: object
        x: np.ndarray

        def logpdf(self, y):
            return np.log(self.problem.pdf(self.x, y))


def cell(problem, method, **parameters):
    found = next(c for c in specs.outputs_cells() if (c.dataset, c.method) == (problem, method))
    return dataclasses.replace(
        found,
        estimator="Oracle",
        parameters={"problem": problem, **parameters},
        protocol=SMALL,
        n_runs=2,
    )


@pytest.mark.parametrize("problem", PLANE)
def test_the_truth_scores_like_a_perfect_model_and_a_shift_costs_its_length(
    tmp_path, problem, monkeypatch
):
    monkeypatch.setitem(ESTIMATORS, "Oracle", Oracle)
    rows, notes = Rows(tmp_path), []
    perfect, shifted = cell(problem, "nkcme"), cell(problem, "nsf", shift=0.5)
    assert run_cells([perfect, shifted], rows, notes.append).failed == 0
    for right, wrong in zip(rows.of(perfect), rows.of(shifted), strict=True):
        good, bad = right["metrics"], wrong["metrics"]
        assert good["nll"] == pytest.approx(good["nll_floor"])
        assert good["energy_score"] == pytest.approx(good["energy_score_floor"], abs=0.03)
        assert good["sliced_was1_x100"] == pytest.approx(good["sliced_was1_x100_floor"], rel=0.6)
        # Along a direction v the shift is 0.5 (v1 + v2): on average 0.5 * 2 sqrt(2) / pi.
        expected = 100 * 0.5 * 2 * np.sqrt(2) / np.pi
        assert bad["sliced_was1_x100"] == pytest.approx(expected, rel=0.2)
        assert bad["energy_score"] > good["energy_score"] + 0.02
    assert "sliced_was1_x100" in notes[0]
    text = result_text([perfect, shifted], rows)
    assert text.splitlines()[0] == "|  |  | NKCME() | NSF | perfect model |"
    assert [line.count("**") for line in text.splitlines()[2:4]] == [2, 2]
