"""The UCI sets over their published folds, for this library's methods and for peers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.experiments import paper, peers
from benchmarks.experiments.cell import Cell
from benchmarks.experiments.methods import PEERS
from benchmarks.experiments.protocols.fitting import (
    Outcome,
    distribution_scores,
    draw_samples,
    fit_and_score,
)
from benchmarks.experiments.table_scores import interval_shares
from benchmarks.timing import timed
from nkcme import metrics
from nkcme.errors import NkcmeError
from nkcme.estimators import ConditionalEstimator
from nkcme.evaluation import evaluate_rows

if TYPE_CHECKING:
    from nkcme.datasets.uci_formats import UciTable


def perform(cell: Cell, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """Train and score one model per fold."""
    from nkcme.datasets.uci import load_uci  # slow, and not needed by other experiments

    data = load_uci(cell.dataset)
    if cell.method in PEERS:
        return _perform_peer(cell, data, runs)

    def training(fold: int) -> tuple[np.ndarray, np.ndarray]:
        rows, _ = data.fold(fold)
        return data.X[rows], data.y[rows]

    def score(model: ConditionalEstimator, fold: int) -> dict[str, Any]:
        _, rows = data.fold(fold)
        return _score(cell, model, data.X[rows], data.y[rows], fold)

    return fit_and_score(cell, runs, training, score)


def _score(
    cell: Cell, model: ConditionalEstimator, X: np.ndarray, y: np.ndarray, fold: int
) -> dict[str, Any]:
    """QICE and RMSE by the same samples, as in the paper; the other scores by the distribution."""
    draws, sample_seconds = timed(
        lambda: draw_samples(model, X, cell.protocol["draws"], cell.protocol["n_draws"], fold)
    )
    evaluation, predict_seconds = timed(lambda: evaluate_rows(model, X, y))
    bins = metrics.decile_counts(y, draws)
    if evaluation.point_mass.any():  # samples that equal y tell nothing of its place among them
        bins = np.bincount(np.minimum((10 * evaluation.pit).astype(int), 9), minlength=10)
        # Published densities are continuous: so is this one, before it is confined to the values.
        density = model.predict_dist(X).without_support().logpdf(y)
        evaluation = replace(evaluation, log_density=density)
    scores, notes = distribution_scores(evaluation)
    return {
        "metrics": {
            "qice_percent": 100 * metrics.qice_from_counts(bins),
            "rmse": paper.rmse_scale(cell.dataset) * metrics.rmse(y, draws.mean(axis=0)),
            **interval_shares(np.stack([evaluation.pit, evaluation.pit], axis=1)),
            **scores,
        },
        "bins": bins.tolist(),
        "notes": notes,
        "seconds": {"sample": sample_seconds, "predict": predict_seconds},
    }


def _perform_peer(cell: Cell, data: UciTable, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """One process per fold; a fold that fails does not end the others."""
    for fold in runs:
        train_rows, test_rows = data.fold(fold)
        try:
            given = peers.FoldData(data.X[train_rows], data.y[train_rows], data.X[test_rows])
            outcome = peers.perform_fold(cell, given, data.y[test_rows], seed=fold)
        except NkcmeError as error:
            yield fold, error
        else:
            yield fold, outcome
