"""Two outputs with known dependence: scores of joint predictions beside a perfect model's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.experiments.cell import Cell
from benchmarks.experiments.protocols.fitting import TEST_STREAM, Outcome, fit_and_score
from benchmarks.timing import timed
from nkcme import metrics
from nkcme.datasets.plane import load_plane
from nkcme.datasets.problem import Problem
from nkcme.estimators import ConditionalEstimator

#: The random stream of true draws and of draws from a perfect model.
_TRUTH_STREAM = 3


def perform(cell: Cell, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """Train and score one model per seed."""
    problem = load_plane(cell.dataset)
    return fit_and_score(
        cell,
        runs,
        lambda seed: problem.make(cell.protocol["n_train"], seed),
        lambda model, seed: _score(cell.protocol, problem, model, seed),
    )


def _score(
    protocol: dict[str, Any], problem: Problem, model: ConditionalEstimator, seed: int
) -> dict[str, Any]:
    """Draws against true draws at even points and against new rows; a perfect model's as well."""
    truth, test = (
        np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream,)))
        for stream in (_TRUTH_STREAM, TEST_STREAM)
    )
    points = problem.evaluation_points(protocol["n_points"])
    n_draws, n_test_draws = protocol["n_draws"], protocol["n_test_draws"]
    true_draws = problem.sample(points, truth, n_draws)
    x = problem.sample_x(protocol["n_test"], test)
    y = problem.sample(x, test)

    def scores(
        sampler: Callable[[np.ndarray, int], np.ndarray], log_density: np.ndarray
    ) -> dict[str, float]:
        sliced = metrics.sliced_wasserstein1(
            sampler(points, n_draws), true_draws, protocol["n_directions"]
        )
        return {
            "sliced_was1_x100": 100 * float(sliced.mean()),
            "energy_score": float(metrics.energy_score(y, sampler(x, n_test_draws)).mean()),
            "nll": metrics.nll(log_density),
        }

    log_density, predict_seconds = timed(lambda: model.predict_dist(x[:, None]).logpdf(y))
    ours, sample_seconds = timed(
        lambda: scores(lambda at, n: model.sample(at[:, None], n, random_state=seed), log_density)
    )
    perfect = scores(lambda at, n: problem.sample(at, truth, n), np.log(problem.pdf(x, y)))
    return {
        "metrics": ours | {f"{name}_floor": value for name, value in perfect.items()},
        "seconds": {"sample": sample_seconds, "predict": predict_seconds},
    }
