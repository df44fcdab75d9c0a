"""The paper's toy problems: Wasserstein distance to true draws, and scores on new rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.experiments.cell import Cell
from benchmarks.experiments.protocols.fitting import (
    TEST_STREAM,
    Outcome,
    distribution_scores,
    draw_samples,
    fit_and_score,
)
from benchmarks.timing import timed
from nkcme import metrics
from nkcme.datasets.toy import Toy, evaluate_was1, load_toy
from nkcme.estimators import ConditionalEstimator
from nkcme.evaluation import ask_rows

#: The samples of seed 0 are kept at this number of evaluation points, for the figures.
_SHOWN_POINTS = 40


def perform(cell: Cell, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """Train and score one model per seed."""
    toy = load_toy(cell.dataset)
    n_train = cell.protocol["n_train"]
    return fit_and_score(
        cell,
        runs,
        lambda seed: toy.make(n_train, seed),
        lambda model, seed: _score(cell, toy, model, seed),
    )


def _score(cell: Cell, toy: Toy, model: ConditionalEstimator, seed: int) -> dict[str, Any]:
    """WAS1 by the paper's protocol; the other scores by the predicted distribution on new rows."""
    kept: list[np.ndarray] = []

    def sampler(X: np.ndarray) -> np.ndarray:
        kept.append(draw_samples(model, X, cell.protocol["draws"], cell.protocol["n_draws"], seed))
        return kept[-1]

    n_points, n_test = cell.protocol["n_points"], cell.protocol["n_test"]
    was1, sample_seconds = timed(lambda: evaluate_was1(toy, sampler, seed, n_points))
    outcome: dict[str, Any] = {
        "metrics": {"was1_x100": 100 * was1},
        "seconds": {"sample": sample_seconds},
    }
    if seed == 0:
        shown = slice(None, None, max(n_points // _SHOWN_POINTS, 1))
        outcome["samples"] = {
            "x": toy.evaluation_points(n_points)[shown].round(4).tolist(),
            "y": kept[0][:, shown].round(4).tolist(),
        }
    if n_test:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(TEST_STREAM,)))
        x = toy.sample_x(n_test, rng)
        y = toy.sample(x, rng)
        evaluation, predict_seconds = timed(lambda: ask_rows(model, x[:, None], y))
        bins = np.bincount(np.minimum((evaluation.pit * 10).astype(int), 9), minlength=10)
        scores, outcome["notes"] = distribution_scores(evaluation)
        outcome["seconds"]["predict"] = predict_seconds
        outcome["bins"] = bins.tolist()
        outcome["metrics"] |= {"qice_percent": 100 * metrics.qice_from_counts(bins), **scores}
    return outcome
