"""A fitted model evaluated on a whole table, in blocks of rows: inputs of scores and charts.

It needs an estimator with `predict_dist`. Memory grows by a few numbers per row for every model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from nkcme import metrics
from nkcme.distributions import blocks
from nkcme.distributions.base import Distribution
from nkcme.errors import NkcmeError, TableError
from nkcme.short_repr import shapes_in_repr
from nkcme.tables.target import as_target

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw

    Table = nw.DataFrame | np.ndarray

#: The level of the intervals that are scored and drawn.
NOMINAL = 0.9
_LEVELS = ((1 - NOMINAL) / 2, 0.5, (1 + NOMINAL) / 2)


@shapes_in_repr
@dataclass(frozen=True)
class Evaluation:
    """The predictions of a model for each row, beside the observed ``y``; arrays (n_rows,).

    ``lower`` and ``upper`` are the ends of the central 90 % interval, ``pit`` is the predicted
    probability of values up to y, and ``log_density`` the log density at y, or the log probability
    of y where its ``point_mass`` is positive. There ``pit`` is random within the jump of the CDF.
    """

    y: np.ndarray
    mean: np.ndarray
    median: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    pit: np.ndarray
    crps: np.ndarray
    log_density: np.ndarray
    point_mass: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    def rows(self, chosen: np.ndarray) -> Evaluation:
        """The evaluation of the chosen rows."""
        return Evaluation(*(getattr(self, field.name)[chosen] for field in fields(self)))

    @property
    def interval(self) -> np.ndarray:
        """The ends of the intervals, (n_rows, 2)."""
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
        """The same scores of a prediction that uses all these y but no features, for reference.

        The prediction is the distribution of y over all rows; for the log density, the normal one
        with the same mean and standard deviation (none if y is constant). QICE and coverage have
        no such reference, because a prediction without features is calibrated.
        """
        n, ordered = len(self), np.sort(self.y)
        lower, upper = np.quantile(self.y, [_LEVELS[0], _LEVELS[-1]])
        spread = float(self.y.std())
        # The mean CRPS of an empirical distribution at its own points is half the mean distance
        # of two points.
        rank = 2 * np.arange(1, n + 1) - n - 1
        # The entropy of a normal distribution.
        density = {"nll": 0.5 * math.log(2 * math.pi * math.e) + math.log(spread)} if spread else {}
        return density | {
            "rmse": spread,
            "crps": float(rank @ ((ordered - ordered[0]) / n) / n),
            "interval_width": float(upper - lower),
        }


def evaluate(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """The scores of a fitted model on a table.

    Parameters
    ----------
    model : estimator
        A fitted estimator of one output with ``predict_dist``.
    X : table
        An array, or a pandas or polars frame.
    y : array_like of shape (n_rows,)
        The observed values.

    Returns
    -------
    dict
        ``rows``, the number of rows; each score by its name in `metrics.EXPLANATIONS`; and
        ``qice_floor``, the expected QICE of a perfect model.

    Raises
    ------
    NkcmeError
        If the model predicts no distributions.
    TableError
        If ``X`` is no table, or if ``y`` does not fit to it.
    """
    evaluation = evaluate_rows(model, X, y)
    n_rows = len(evaluation)
    return {"rows": n_rows, **evaluation.scores(), "qice_floor": metrics.qice_floor(n_rows)}


def evaluate_rows(model: Any, X: Any, y: Any) -> Evaluation:
    """The predictions of a fitted model with one output for every row of a table."""
    need_distributions(model)
    table = as_table(X)
    target = matching_target(y, len(table))
    found = list(_evaluate_blocks(model, table, target))
    names = [field.name for field in fields(Evaluation)]
    return Evaluation(*(np.concatenate([getattr(b, name) for b in found]) for name in names))


def matching_target(y: Any, n_rows: int) -> np.ndarray:
    """One y for each of the rows of a table, (n_rows,)."""
    target = as_target(y)
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    if target.ndim != 1:
        raise TableError(f"expected one y per row, got {target.shape[1]}; choose one output")
    if len(target) != n_rows:
        raise TableError(f"X has {n_rows} rows and y has {len(target)}: they must have the same")
    return target


def need_distributions(model: Any) -> None:
    """Raise unless a model predicts distributions."""
    if not hasattr(model, "predict_dist"):
        raise NkcmeError(
            f"a {type(model).__name__} has no predict_dist, so it predicts no distributions; pass "
            "an estimator of nkcme, or a DistributionPipeline that ends in one"
        )


def _evaluate_blocks(model: Any, table: Table, target: np.ndarray) -> Iterator[Evaluation]:
    for rows in blocks.row_slices(len(target), blocks.BLOCK_ROWS):
        y = target[rows]
        dist = model.predict_dist(native(table[rows]))
        lower, median, upper = dist.ppf(_LEVELS).T
        point_mass = dist.pmf(y)
        # Where y has a positive probability, a PIT that is random within it is uniform.
        uniform = np.random.default_rng(rows.start).uniform(size=len(y))
        yield Evaluation(
            y=y,
            mean=dist.mean(),
            median=median,
            lower=lower,
            upper=upper,
            pit=metrics.pit(dist.cdf(y) - uniform * point_mass),
            crps=dist.crps(y),
            log_density=dist.smoothed().logpdf(y),
            point_mass=point_mass,
        )


def as_table(X: Any) -> Table:
    """X as a table that allows to select rows by slices and by arrays of integers."""
    import narwhals.stable.v1 as nw  # slow to import, and the command line may not need it

    try:
        table = nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(table, nw.DataFrame):
            table = np.asarray(X)
            if table.dtype.kind in "US" and not isinstance(X, np.ndarray):
                table = np.array(X, dtype=object)  # numbers in a list stay numbers beside text
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise TableError(f"X cannot be read as a table: {reason}") from error
    if len(table.shape) != 2 or 0 in table.shape:
        raise TableError(f"X must be a table of at least one row and column, got {table.shape}")
    return table


def native(table: Table) -> Any:
    """The table as the frame or array that the user passed."""
    return table if isinstance(table, np.ndarray) else table.to_native()


def used_columns(model: Any, X: Any) -> Any:
    """X without the columns that a model does not use, such as keys, where columns have names."""
    table = as_table(X)
    unused = set(getattr(getattr(model, "encoder_", None), "unused_names", ()))
    if isinstance(table, np.ndarray) or not unused:
        return X
    return native(table[:, [name for name in table.columns if name not in unused]])


# --- scorers for scikit-learn's model selection: higher is better ---------------------------------


def crps_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Minus the mean continuous ranked probability score: a scorer for model selection.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted, with ``predict_dist``, also as the last step of a pipeline.
    X : table
        The inputs.
    y : array_like of shape (n_rows,)
        The observed values.

    Returns
    -------
    float
        Higher is better.

    Examples
    --------
    ::

        GridSearchCV(NKCME(), {"n_atoms": [50, 100]}, scoring=crps_scorer).fit(X, y)
    """
    return -float(np.mean(_predicted(estimator, X).crps(np.asarray(y, np.float64).reshape(-1))))


def log_density_scorer(estimator: Any, X: Any, y: Any) -> float:
    """The mean log density at the observed y: a scorer for model selection.

    Embeddings are read smoothed.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted, with ``predict_dist``, also as the last step of a pipeline.
    X : table
        The inputs.
    y : array_like of shape (n_rows,) or (n_rows, d)
        The observed values.

    Returns
    -------
    float
        Higher is better.
    """
    dist = _predicted(estimator, X).smoothed()
    target = np.asarray(y, np.float64)
    if dist.n_outputs == 1:
        target = target.reshape(-1)
    return float(np.mean(dist.logpdf(target)))


def _predicted(estimator: Any, X: Any) -> Distribution:
    """The distributions that an estimator predicts, also at the end of a pipeline."""
    from sklearn.pipeline import Pipeline  # seconds, which refusals do not wait for

    if isinstance(estimator, Pipeline):
        return estimator[-1].predict_dist(estimator[:-1].transform(X))
    return estimator.predict_dist(X)
