"""A fitted model asked about a whole table, block of rows by block: what scores and charts need.

Any estimator with `predict_dist` will do. Memory grows by a few numbers a row, whatever the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from scipy.stats import norm
from sklearn.pipeline import Pipeline

from nkcme import metrics
from nkcme.distributions.base import BLOCK_ROWS, Distribution
from nkcme.errors import NkcmeError, TableError
from nkcme.tables.target import as_target

#: The level of the intervals that are scored and drawn.
NOMINAL = 0.9
_LEVELS = ((1 - NOMINAL) / 2, 0.5, (1 + NOMINAL) / 2)

Table = nw.DataFrame | np.ndarray


@dataclass(frozen=True)
class Evaluation:
    """What a model said of each row, beside the ``y`` that was observed there; arrays (n_rows,).

    ``lower`` and ``upper`` are the ends of the central 90 % interval, ``pit`` is the predicted
    probability of values up to y, and ``log_density`` is that of the smoothed reading.
    """

    y: np.ndarray
    mean: np.ndarray
    median: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    pit: np.ndarray
    crps: np.ndarray
    log_density: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    def rows(self, chosen: np.ndarray) -> Evaluation:
        return Evaluation(*(getattr(self, field.name)[chosen] for field in fields(self)))

    @property
    def interval(self) -> np.ndarray:
        """(n_rows, 2)"""
        return np.stack([self.lower, self.upper], axis=1)

    @property
    def inside(self) -> np.ndarray:
        """Whether y lies in its interval."""
        return (self.lower <= self.y) & (self.y <= self.upper)

    def scores(self) -> dict[str, float]:
        """The scores by their names in `metrics.EXPLANATIONS`."""
        tenths = np.minimum((self.pit * 10).astype(int), 9)
        return {
            "rmse": metrics.rmse(self.y, self.mean),
            "crps": float(self.crps.mean()),
            "nll": metrics.nll(self.log_density),
            "qice": metrics.qice_from_counts(np.bincount(tenths, minlength=10)),
            "coverage": metrics.coverage(self.y, self.interval),
            "interval_width": metrics.interval_width(self.interval),
        }

    def scores_without_features(self) -> dict[str, float]:
        """The same scores for one who knows all these y but no features: a yardstick.

        Predicted is the distribution of y over all rows; for the log density, the normal one of
        the same mean and deviation (none where y never varies). There is no such yardstick for
        QICE and coverage, for anybody can be calibrated.
        """
        n, ordered = len(self), np.sort(self.y)
        lower, upper = np.quantile(self.y, [_LEVELS[0], _LEVELS[-1]])
        spread = float(self.y.std())
        # The CRPS of an empirical distribution at its own points is half the mean distance of two.
        rank = 2 * np.arange(1, n + 1) - n - 1
        density = {"nll": float(norm(scale=spread).entropy())} if spread > 0 else {}
        return density | {
            "rmse": spread,
            "crps": float(rank @ ((ordered - ordered[0]) / n) / n),
            "interval_width": float(upper - lower),
        }


def evaluate(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """The number of rows, each score of a model on them, and the QICE of a perfect model."""
    asked = ask_rows(model, X, y)
    return {"rows": len(asked), **asked.scores(), "qice_floor": metrics.qice_floor(len(asked))}


def ask_rows(model: Any, X: Any, y: Any) -> Evaluation:
    """Ask a fitted model with one output about every row of a table."""
    if not hasattr(model, "predict_dist"):
        raise NkcmeError(
            f"a {type(model).__name__} has no predict_dist, so it predicts no distributions to "
            "evaluate; pass a fitted estimator of nkcme"
        )
    table, target = as_table(X), as_target(y)
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    if target.ndim != 1:
        raise TableError(f"expected one y a row, got {target.shape[1]}; choose one output")
    if len(target) != len(table):
        raise TableError(f"X has {len(table)} rows and y has {len(target)}: they must have as many")
    blocks = list(_blocks(model, table, target))
    names = [field.name for field in fields(Evaluation)]
    return Evaluation(*(np.concatenate([getattr(b, name) for b in blocks]) for name in names))


def _blocks(model: Any, table: Table, target: np.ndarray) -> Iterator[Evaluation]:
    for first in range(0, len(target), BLOCK_ROWS):
        rows = slice(first, first + BLOCK_ROWS)
        y = target[rows]
        dist = model.predict_dist(native(table[rows]))
        lower, median, upper = dist.ppf(_LEVELS).T
        yield Evaluation(
            y=y,
            mean=dist.mean(),
            median=median,
            lower=lower,
            upper=upper,
            pit=metrics.pit(dist.cdf(y)),
            crps=dist.crps(y),
            log_density=dist.smoothed().logpdf(y),
        )


def as_table(X: Any) -> Table:
    """X as something whose rows can be chosen by slices and by arrays of numbers."""
    try:
        table = nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(table, nw.DataFrame):
            table = np.asarray(X)
            if table.dtype.kind in "US" and not isinstance(X, np.ndarray):
                table = np.array(X, dtype=object)  # a list's numbers stay numbers beside text
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise TableError(f"X cannot be read as a table: {reason}") from error
    if len(table.shape) != 2 or 0 in table.shape:
        raise TableError(f"X must be a table of at least one row and column, got {table.shape}")
    return table


def native(table: Table) -> Any:
    """The frame or array that the user would know."""
    return table.to_native() if isinstance(table, nw.DataFrame) else table


# --- scorers for scikit-learn's model selection: higher is better ---------------------------------


def crps_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Minus the mean continuous ranked probability score."""
    return -float(np.mean(_predicted(estimator, X).crps(np.asarray(y, np.float64).reshape(-1))))


def log_density_scorer(estimator: Any, X: Any, y: Any) -> float:
    """The mean log density at the observed y, embeddings being read smoothed."""
    dist = _predicted(estimator, X).smoothed()
    target = np.asarray(y, np.float64)
    if dist.n_outputs == 1:
        target = target.reshape(-1)
    return float(np.mean(dist.logpdf(target)))


def _predicted(estimator: Any, X: Any) -> Distribution:
    """The distributions an estimator predicts, also at the end of a pipeline."""
    if isinstance(estimator, Pipeline):
        return estimator[-1].predict_dist(estimator[:-1].transform(X))
    return estimator.predict_dist(X)
