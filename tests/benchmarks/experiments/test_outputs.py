"""The benchmark of two outputs: a perfect model scores as the truth does, and the page says so."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from benchmarks.app import run
from benchmarks.experiments import specs
from benchmarks.experiments.rows import Rows
from benchmarks.experiments.run import run_cells
from benchmarks.pages.page import page, result_text
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
    """Draws from a known law; ``shift`` moves the draws of what it says."""

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


@pytest.fixture(autouse=True)
def _oracle(monkeypatch):
    monkeypatch.setitem(ESTIMATORS, "Oracle", Oracle)


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
def test_the_truth_scores_as_a_perfect_model_does_and_a_shift_costs_its_length(tmp_path, problem):
    rows, said = Rows(tmp_path), []
    perfect, shifted = cell(problem, "nkcme"), cell(problem, "nsf", shift=0.5)
    assert run_cells([perfect, shifted], rows, said.append).failed == 0
    for right, wrong in zip(rows.of(perfect), rows.of(shifted), strict=True):
        mine, theirs = right["metrics"], wrong["metrics"]
        assert mine["nll"] == pytest.approx(mine["nll_floor"])
        assert mine["energy_score"] == pytest.approx(mine["energy_score_floor"], abs=0.03)
        assert mine["sliced_was1_x100"] == pytest.approx(mine["sliced_was1_x100_floor"], rel=0.6)
        # Along a direction v the shift is 0.5 (v1 + v2): over the half circle 2 sqrt(2) / pi of it.
        expected = 100 * 0.5 * 2 * np.sqrt(2) / np.pi
        assert theirs["sliced_was1_x100"] == pytest.approx(expected, rel=0.2)
        assert theirs["energy_score"] > mine["energy_score"] + 0.02
    assert "sliced_was1_x100" in said[0]
    text = result_text([perfect, shifted], rows)
    assert text.splitlines()[0] == "|  |  | NKCME() | NSF | a perfect model |"
    assert [line.count("**") for line in text.splitlines()[2:4]] == [2, 2]


def test_without_rows_the_page_says_so(tmp_path):
    text = page(Rows(tmp_path), {}, {})
    assert "No rows yet." in text.partition("## Two outputs")[2].partition("\n## ")[0]


def test_the_command_knows_its_problems(tmp_path, capsys):
    assert run(["outputs", "--sets", "moon", "--rows", str(tmp_path)]) == 2
    assert "ring, banana, mixture" in capsys.readouterr().err
