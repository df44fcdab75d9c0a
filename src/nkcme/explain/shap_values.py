"""SHAP values of predicted distributions. The only module that imports shap, which is an extra."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import narwhals.stable.v1 as nw
import numpy as np

from nkcme.distributions.checks import checked_size
from nkcme.errors import NkcmeError, TableError
from nkcme.evaluation import as_table, need_distributions
from nkcme.explain.mixed_rows import MixedRows
from nkcme.explain.statistics import Statistics

if TYPE_CHECKING:
    from nkcme.evaluation import Table


def shap_values(
    model: Any,
    X: Any,
    background: Any,
    *,
    statistics: Sequence[str | float] = ("mean", "spread", 0.05, 0.5, 0.95),
    n_background: int = 50,
    n_permutations: int = 2,
    random_state: int = 0,
) -> Any:
    """How much each input moves the mean, the spread and quantiles of each row.

    The values of a row add up to the difference between its prediction and the average prediction
    for the background rows, exactly, in each statistic. All statistics come from the same
    predictions, n_permutations * (2 * n_columns + 1) * n_background for each row of X.

    Parameters
    ----------
    model : estimator
        A fitted estimator of one output with ``predict_dist``, or a model of `nkcme.runtime`,
        which is faster.
    X : table
        The rows to explain.
    background : table
        Rows to compare with, such as the training rows, with the columns of X in the same order.
    statistics : sequence of str or float
        "mean", "spread" (the width of the central 90 % interval), or levels of quantiles.
    n_background : int
        Of more background rows, so many are chosen at random.
    n_permutations : int
        Random orders in which inputs are exchanged, each forwards and backwards. One is exact
        where no more than two inputs interact.
    random_state : int
        The seed.

    Returns
    -------
    shap.Explanation
        ``values`` (n_rows, n_columns, n_statistics), ``base_values`` (n_rows, n_statistics),
        ``data`` (n_rows, n_columns), ``feature_names`` and ``output_names``, for the figures of
        the shap package.

    Raises
    ------
    NkcmeError
        If shap is not installed, or if a statistic is unknown.
    TableError
        If the tables are none, or differ in their columns.
    """
    need_distributions(model)
    asked = Statistics(statistics)
    n_background, n_permutations = checked_size(n_background), checked_size(n_permutations)
    if not n_background or not n_permutations:
        raise NkcmeError("shap_values needs at least one background row and one permutation")
    table, others = as_table(X), as_table(background)
    shap = need_shap()
    rng = np.random.default_rng(random_state)
    if len(others) > n_background:
        others = others[np.sort(rng.choice(len(others), n_background, replace=False))]
    rows = MixedRows(_stacked(table, others))
    # shap masks numbers: each value is named by the row of the table that it comes from, which
    # works for columns of any kind.
    n, m, p = len(table), len(others), table.shape[1]
    own = np.repeat(np.arange(float(n))[:, None], p, axis=1)
    behind = np.repeat(np.arange(float(n), n + m)[:, None], p, axis=1)

    def predicted(numbers: np.ndarray) -> np.ndarray:
        return asked.of(model.predict_dist(rows.take(numbers.astype(np.int64))))

    state = np.random.get_state()  # noqa: NPY002  shap seeds the global generator
    try:
        masker = shap.maskers.Independent(behind, max_samples=m)
        explainer = shap.explainers.Permutation(predicted, masker, seed=random_state)
        found = explainer(own, max_evals=n_permutations * (2 * p + 1), silent=True)
    finally:
        np.random.set_state(state)  # noqa: NPY002
    return shap.Explanation(
        values=found.values.reshape(n, p, len(asked.names)),
        base_values=found.base_values.reshape(n, len(asked.names)),
        data=_values(table),
        feature_names=list(rows.names),
        output_names=asked.names,
    )


def need_shap() -> Any:
    """The shap package, or one line that says how to get it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its figures use what matplotlib will deprecate
            import shap
    except ImportError as error:
        raise NkcmeError(
            f"SHAP values need the package shap, and {error.name} is not installed; install "
            "nkcme[shap]"
        ) from error
    return shap


def _stacked(table: Table, others: Table) -> Table:
    """The rows of both tables, which must have the same columns."""
    if isinstance(table, nw.DataFrame) and isinstance(others, nw.DataFrame):
        if (table.columns, table.implementation) == (others.columns, others.implementation):
            return nw.concat([table, others])
    elif isinstance(table, np.ndarray) and isinstance(others, np.ndarray):  # noqa: SIM102
        if table.shape[1] == others.shape[1]:
            return np.concatenate([table, others])
    raise TableError(
        "X and the background must be tables of one kind with the same columns in the same order"
    )


def _values(table: Table) -> np.ndarray:
    return table.to_numpy() if isinstance(table, nw.DataFrame) else table
