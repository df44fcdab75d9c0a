"""Shared by the protocols: fit all runs of a cell as one program, draw samples, score rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.experiments.cell import Cell
from benchmarks.timing import timed
from nkcme import metrics
from nkcme.errors import NkcmeError
from nkcme.estimators import ESTIMATORS, ConditionalEstimator
from nkcme.evaluation import Evaluation

#: The result of a run: its share of the row, or the error that ended it.
Outcome = dict[str, Any] | Exception

#: The random stream of test rows, apart from those of training data and true draws.
TEST_STREAM = 2


def fit_and_score(
    cell: Cell,
    runs: Sequence[int],
    training: Callable[[int], tuple[np.ndarray, np.ndarray]],
    score: Callable[[ConditionalEstimator, int], dict[str, Any]],
) -> Iterator[tuple[int, Outcome]]:
    """Fit all runs as one program, run k with random state k, then score one after the other."""
    datasets = [training(run) for run in runs]
    estimator = make_estimator(cell)
    models, seconds = timed(lambda: estimator.fit_many(datasets, random_states=list(runs)))
    for run, model in zip(runs, models, strict=True):
        try:
            outcome = score(model, run)
        except Exception as error:
            yield run, error
        else:
            outcome["seconds"] |= {"fit_all": seconds, "fitted_together": len(runs)}
            outcome["steps"] = getattr(model, "n_steps_", None)
            yield run, outcome


def make_estimator(cell: Cell) -> Any:
    """The estimator of a cell with its parameters, not fitted."""
    if cell.estimator not in ESTIMATORS:
        raise NkcmeError(
            f"{cell.method} needs the estimator {cell.estimator}; there are {', '.join(ESTIMATORS)}"
        )
    return ESTIMATORS[cell.estimator](**cell.parameters)


def draw_samples(
    model: ConditionalEstimator, X: np.ndarray, sampling: str, n_draws: int, seed: int
) -> np.ndarray:
    """Samples (n_draws, n_rows) by the method's `sampling`: quantiles, herded or independent."""
    if sampling == "quantiles":
        return model.predict_quantiles(X, (np.arange(n_draws) + 0.5) / n_draws).T
    return model.sample(X, n_draws, method=sampling, random_state=seed)


def distribution_scores(evaluation: Evaluation) -> tuple[dict[str, float | None], list[str]]:
    """Scores of the predicted distributions, and notes on scores that are not finite."""
    scores: dict[str, float | None] = {
        "crps": float(evaluation.crps.mean()),
        "coverage": interval_coverage(evaluation),
        "width": metrics.interval_width(evaluation.interval),
    }
    zero = int(np.isneginf(evaluation.log_density).sum())
    if zero:
        note = f"nll is infinite: density 0 at {zero} of {len(evaluation)} rows"
        return scores | {"nll": None}, [note]
    return scores | {"nll": metrics.nll(evaluation.log_density)}, []


def interval_coverage(evaluation: Evaluation) -> float:
    """The share of y in 90 % intervals. Where y has point masses, an interval that ends on one
    counts only the part of it that belongs to the 90 %: by the random PIT."""
    if not evaluation.point_mass.any():
        return metrics.coverage(evaluation.y, evaluation.interval)
    return float(np.mean((evaluation.pit >= 0.05) & (evaluation.pit <= 0.95)))
