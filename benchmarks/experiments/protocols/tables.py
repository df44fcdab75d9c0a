"""Tables in CSV files over their folds, for this library's methods and for peers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import norm

from benchmarks.experiments import peers, table_scores
from benchmarks.experiments.cell import Cell
from benchmarks.experiments.methods import PEERS
from benchmarks.experiments.protocols.fitting import Outcome, fit_and_score
from benchmarks.experiments.table_files import FoldedTable, load_table
from benchmarks.experiments.table_scores import LEVELS, Predicted
from benchmarks.experiments.table_specs import TableCell
from benchmarks.timing import timed
from nkcme import metrics
from nkcme.distributions import blocks
from nkcme.errors import NkcmeError
from nkcme.estimators import ConditionalEstimator
from nkcme.tables.columns import RawColumn, Table
from nkcme.tables.encoding import TableEncoder


def perform(cell: Cell, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """Train and score one model per fold."""
    assert isinstance(cell, TableCell)
    data = load_table(cell.file, cell.protocol["n_folds"])
    return (_perform_peer if cell.method in PEERS else _perform_ours)(cell, data, runs)


# --- this library's methods -------------------------------------------------------------------


def _perform_ours(
    cell: Cell, data: FoldedTable, runs: Sequence[int]
) -> Iterator[tuple[int, Outcome]]:
    """Fit the folds as one program, or as a few where their encoded columns differ in number."""

    def training(fold: int) -> tuple[Any, np.ndarray]:
        rows, _ = data.fold(fold)
        return data.X.iloc[rows], data.y[rows]

    def score(model: ConditionalEstimator, fold: int) -> dict[str, Any]:
        _, rows = data.fold(fold)
        predicted, seconds = predict(model, data.X.iloc[rows], data.y[rows])
        return {**table_scores.score(data.y[rows], predicted), "seconds": {"predict": seconds}}

    # A rare category can be missing from the training rows of one fold.
    groups: dict[int, list[int]] = {}
    for fold in runs:
        groups.setdefault(TableEncoder.fit(training(fold)[0]).n_outputs, []).append(fold)
    for group in groups.values():
        yield from fit_and_score(cell, group, training, score)


def predict(model: ConditionalEstimator, X: Any, y: np.ndarray) -> tuple[Predicted, float]:
    """The predictions for a table, and the seconds of distributions, means and quantiles."""
    seconds, found = 0.0, []
    for rows in blocks.row_slices(len(y), blocks.BLOCK_ROWS):
        (dist, mean, quantiles), more = timed(partial(_ask, model, X.iloc[rows]))
        seconds += more
        upper = dist.cdf(y[rows])
        pit = np.stack([upper - dist.pmf(y[rows]), upper], axis=1)
        # Of the continuous law, to compare with methods that know no support.
        log_density = dist.without_support().smoothed().logpdf(y[rows])
        found.append(Predicted(quantiles, mean, dist.crps(y[rows]), log_density, pit))
    return Predicted(*(np.concatenate(parts) for parts in zip(*found, strict=True))), seconds


def _ask(model: ConditionalEstimator, X: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    dist = model.predict_dist(X)
    return dist, dist.mean(), dist.ppf(LEVELS)


# --- peers ------------------------------------------------------------------------------------


def _perform_peer(
    cell: Cell, data: FoldedTable, runs: Sequence[int]
) -> Iterator[tuple[int, Outcome]]:
    """One process per fold; a fold that fails does not end the others."""
    X, categories = as_numbers(data.X)
    for fold in runs:
        train, test = data.fold(fold)
        given = peers.FoldData(X[train], data.y[train], X[test], categories)
        try:
            prediction = peers.predict(cell, given, _asked_levels(cell), seed=fold)
        except NkcmeError as error:
            yield fold, error
        else:
            predicted = _from_peer(cell, prediction, data.y[test])
            yield fold, table_scores.score(data.y[test], predicted) | prediction.provenance()


def as_numbers(X: Any) -> tuple[np.ndarray, tuple[int, ...]]:
    """A table as float64, and the positions of its columns of categories, which become codes.

    The codes count the categories in their alphabetical order; -1 is a missing value.
    """
    columns = list(Table.read(X, "X"))
    categories = tuple(k for k, column in enumerate(columns) if column.kind == "category")
    numbers = [
        _codes(column) if k in categories else column.numbers() for k, column in enumerate(columns)
    ]
    return np.column_stack(numbers), categories


def _codes(column: RawColumn) -> np.ndarray:
    codes = np.full(len(column.array), -1.0)
    codes[~column.missing] = np.unique(column.present.astype(str), return_inverse=True)[1]
    return codes


def _asked_levels(cell: Cell) -> np.ndarray:
    """Evenly spaced levels for the CRPS, followed by those that are scored one by one."""
    even = peers.even_levels(cell.protocol["n_draws"])
    return even if cell.protocol["draws"] == "independent" else np.append(even, LEVELS)


def _from_peer(cell: Cell, prediction: peers.Prediction, y: np.ndarray) -> Predicted:
    """The CRPS and the quantiles of draws, or those of predicted quantiles."""
    n = cell.protocol["n_draws"]
    if cell.protocol["draws"] == "independent":
        crps = metrics.crps_ensemble(y, prediction.values, fair=True)
        return Predicted(_quantiles_of_draws(prediction.values), prediction.mean, crps, None)
    crps = metrics.crps_ensemble(y, prediction.values[:n])
    density = None
    if prediction.scale is not None:
        density = norm.logpdf(y, prediction.mean, prediction.scale)
    return Predicted(prediction.values[n:].T, prediction.mean, crps, density)


def _quantiles_of_draws(draws: np.ndarray) -> np.ndarray:
    """Quantiles (n_rows, len(LEVELS)) such that a share k / (n + 1) lies below the k-th of n draws.

    NaN at levels beyond the lowest and the highest draw.
    """
    levels = np.array(LEVELS)
    quantiles = np.quantile(draws, levels, axis=0, method="weibull")
    lowest = 1 / (len(draws) + 1)
    quantiles[(levels < lowest) | (levels > 1 - lowest)] = np.nan
    return quantiles.T
